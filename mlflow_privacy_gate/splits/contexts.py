"""Which recorded datasets are members and non-members, by the context names found in the wild (any letter case).

========================  =============  ====
context                   side           rank
========================  =============  ====
training, train           members        0
testing, test             non-members    0
holdout, hold-out         non-members    1
evaluation, eval          non-members    2
validation, valid, val    non-members    3
========================  =============  ====

The lowest rank wins. Two candidates of that rank are a question for the caller, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.subject import DatasetInput

MEMBERS: Mapping[str, int] = {"training": 0, "train": 0}
NON_MEMBERS: Mapping[str, int] = {
    "testing": 0,
    "test": 0,
    "holdout": 1,
    "hold-out": 1,
    "evaluation": 2,
    "eval": 2,
    "validation": 3,
    "valid": 3,
    "val": 3,
}
# A held-out set under one of these names is, by that name, one that early stopping or tuning looked at.
TUNING = frozenset({"validation", "valid", "val"})
_ASK = "say which with --members and --non-members, or log them with `log_splits`"


def normalised(context: str | None) -> str:
    """Return a context as it is compared: without case and surrounding blanks."""
    return (context or "").strip().casefold()


def choose(
    inputs: Sequence[DatasetInput], ranks: Mapping[str, int], *, role: str
) -> tuple[DatasetInput, tuple[str, ...]]:
    """Return the dataset for one side and notes on the choice; SplitsUnavailable where none or several fit equally."""
    ranked = [(ranks[normalised(one.context)], one) for one in inputs if normalised(one.context) in ranks]
    if not ranked:
        raise SplitsUnavailable(f"the run records no {role}: {described(inputs)}; {_ASK}{_once(role)}")
    best = min(rank for rank, _ in ranked)
    candidates = [one for rank, one in ranked if rank == best]
    loadable = [one for one in candidates if one.source_type != "code"]
    notes: tuple[str, ...] = ()
    if len(candidates) > 1 and len(loadable) == 1:
        passed_over = ", ".join(repr(one.name) for one in candidates if one is not loadable[0])
        notes = (f"{role}: dataset {loadable[0].name!r} taken; {passed_over} of the same context names code, not rows",)
        candidates = loadable
    if len(candidates) > 1:
        raise SplitsUnavailable(
            f"the run records {len(candidates)} datasets that may be the {role}: {described(candidates)}; {_ASK}"
        )
    chosen = candidates[0]
    return chosen, (*notes, f"{role}: dataset {chosen.name!r}, recorded with context {chosen.context!r}")


def described(inputs: Sequence[DatasetInput]) -> str:
    """Say which datasets there are, with their contexts."""
    return (
        ", ".join(f"{one.name!r} (context {one.context or 'none'}, digest {one.digest})" for one in inputs)
        or "no datasets"
    )


def _once(role: str) -> str:
    if role != "non-members":
        return ""
    return (
        ". MLflow keeps one entry for datasets of the same name and digest, with the first context only: "
        "a test set identical to the training set leaves no trace of its own, and could not be used"
    )
