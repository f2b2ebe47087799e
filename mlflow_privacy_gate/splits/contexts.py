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

The lowest rank wins, and what it wins over is named. MLflow keeps no time with a dataset, so anyone may add one after the training: two
different datasets of the winning rank are never chosen between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.subject import DatasetInput
from mlflow_privacy_gate.vocabulary import ReasonCode

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


def preferred(inputs: Sequence[DatasetInput], ranks: Mapping[str, int]) -> tuple[DatasetInput, ...]:
    """Return the datasets of the lowest rank that any has, in the order given; none where no context is known."""
    ranked = [(ranks[normalised(one.context)], one) for one in inputs if normalised(one.context) in ranks]
    best = min((rank for rank, _ in ranked), default=0)
    return tuple(one for rank, one in ranked if rank == best)


def others(candidates: Sequence[DatasetInput], *, digest: str, rows: int | None) -> tuple[DatasetInput, ...]:
    """Return the candidates that are not the dataset of that MLflow digest and number of ``rows``.

    Of a dataset whose source is code (autologging records one, often of features only) the number of rows is all that can be compared;
    where one of several such has the right number, the others were other fits.
    """
    code = [one for one in candidates if one.source_type == "code" and one.digest != digest]
    agreeing = rows is None or any(one.num_rows in {None, rows} for one in code)
    return tuple(one for one in candidates if one.digest != digest and (one.source_type != "code" or not agreeing))


def choose(
    inputs: Sequence[DatasetInput], ranks: Mapping[str, int], *, role: str
) -> tuple[DatasetInput, tuple[str, ...]]:
    """Return the dataset for one side and notes on the choice; SplitsUnavailable (PG104) where different ones fit equally, or none does."""
    candidates = preferred(inputs, ranks)
    if not candidates:
        raise SplitsUnavailable(f"the run records no {role}: {described(inputs)}; {_ASK}{_once(role)}")
    chosen = next((one for one in candidates if one.source_type != "code"), candidates[0])
    if others(candidates, digest=chosen.digest, rows=chosen.num_rows):
        raise SplitsUnavailable(several(candidates, role=role), code=ReasonCode.PG104)
    notes = [f"{role}: dataset {chosen.name!r}, recorded with context {chosen.context!r}"]
    code = [one for one in candidates if one.digest != chosen.digest]
    if code:
        notes.append(f"{role}: passed over {described(code)}, which name code, not rows")
    lesser = [one for one in inputs if normalised(one.context) in ranks and one not in candidates]
    if lesser:
        notes.append(f"{role}: not tested, for their contexts come after {chosen.context!r}: {described(lesser)}")
    return chosen, tuple(notes)


def several(candidates: Sequence[DatasetInput], *, role: str) -> str:
    """Say that different datasets may be one side, which, and what to do."""
    return (
        f"the run records {len(candidates)} datasets that may be the {role}: {described(candidates)}. MLflow does not say when each was "
        "added, so nobody can tell which the model knows; log the model and one pair of splits in a run of their own"
    )


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
