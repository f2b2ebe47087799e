"""What a run records of its datasets, held against splits: others can be added afterwards, but none can be taken away or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.splits._interface import LoggedArtifacts
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS, described, normalised, others, preferred, several
from mlflow_privacy_gate.vocabulary import ReasonCode

_SIDES: Mapping[str, Mapping[str, int]] = {"members": MEMBERS, "non-members": NON_MEMBERS}


def contradiction(
    inputs: Sequence[DatasetInput], model: ResolvedModel, *, role: str, rows: int, mlflow_digest: str | None
) -> str | None:
    """Say how the run's record contradicts one side (``members`` or ``non-members``) of a manifest, or None.

    ``rows``: of the whole side. ``mlflow_digest``: the one that the manifest names for it; `log_splits` records a dataset of that digest,
    so a run without one never logged these splits. A dataset of another digest that may as well be this side contradicts too.
    """
    recorded = [one for one in inputs if normalised(one.context) in _SIDES[role]]
    if mlflow_digest is None or not any(one.digest == mlflow_digest for one in recorded):
        return f"{role}: the run records none of digest {mlflow_digest}, but {described(recorded)}"
    candidates = preferred(of_model(inputs, model), _SIDES[role])
    if others(candidates, digest=mlflow_digest, rows=rows):
        return f"{role}: {several(candidates, role=role)}"
    return None


def another_number(inputs: Sequence[DatasetInput], model: ResolvedModel, *, role: str, rows: int) -> str | None:
    """Say how the run's record contradicts a side of which only the number of ``rows`` can be compared, or None.

    A run that records nothing for this side contradicts nothing; one that records different datasets for it does not say which it is.
    """
    candidates = preferred(of_model(inputs, model), _SIDES[role])
    if not candidates:
        return None
    one = next((one for one in candidates if one.source_type != "code"), candidates[0])
    if others(candidates, digest=one.digest, rows=one.num_rows):
        return f"{role}: {several(candidates, role=role)}"
    counts = {one.num_rows for one in candidates}
    if None in counts or rows in counts:
        return None
    return f"{role}: the run records none of {rows:,} rows, but {described(candidates)}"


def of_model(inputs: Sequence[DatasetInput], model: ResolvedModel) -> tuple[DatasetInput, ...]:
    """Return the datasets that may be this model's: all but those tied to another."""
    return tuple(one for one in inputs if one.model_id is None or one.model_id == model.model_id)


def refuse_unowned(artifacts: LoggedArtifacts, model: ResolvedModel, *, what: str) -> None:
    """Refuse splits that name no model, unless this is the only one that their run logged; SplitsUnavailable (PG104) says what to do."""
    logged = artifacts.logged_models(model)
    if logged == (() if model.model_id is None else (model.model_id,)):
        return
    told = (
        f"logged {len(logged)} models ({', '.join(logged[:5])})" if logged else "does not record this model as its own"
    )
    raise SplitsUnavailable(
        f"{what} of run {model.run_id}: it does not say of which model, and the run {told}; log the splits of this one with "
        f"`log_splits(…, run_id={model.run_id!r}, model_id={model.model_id!r})`",
        code=ReasonCode.PG104,
    )
