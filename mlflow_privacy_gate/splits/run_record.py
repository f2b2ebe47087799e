"""What a run records of its datasets, held against splits: nobody can change it afterwards, unlike a manifest or a choice of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlflow_privacy_gate.evidence.subject import DatasetInput
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS, described, normalised

_SIDES: Mapping[str, Mapping[str, int]] = {"members": MEMBERS, "non-members": NON_MEMBERS}


def contradiction(
    inputs: Sequence[DatasetInput], *, role: str, rows: int, mlflow_digest: str | None = None
) -> str | None:
    """Say how the run's record contradicts one side (``members`` or ``non-members``), or None.

    ``rows``: of the whole side. ``mlflow_digest``: the one that a manifest names for it; None where only the number of rows can be
    compared. A run that records nothing for this side contradicts nothing.
    """
    recorded = [one for one in inputs if normalised(one.context) in _SIDES[role]]
    if not recorded:
        return None
    if mlflow_digest is not None:
        agrees = any(one.digest == mlflow_digest for one in recorded)
        what = f"of digest {mlflow_digest}"
    else:
        counts = [one.num_rows for one in recorded if one.num_rows is not None]
        agrees = not counts or rows in counts
        what = f"of {rows:,} rows"
    return None if agrees else f"{role}: the run records none {what}, but {described(recorded)}"
