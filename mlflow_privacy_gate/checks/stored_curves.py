"""What a check drew of its scores, kept beside the run: a report made again, as under an edited policy, shows the same plots.

The file has no signature, like the report itself; it names the attestation it belongs to, feeds no verdict, and is read strictly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mlflow_privacy_gate.cards.particulars import AttackCurves
from mlflow_privacy_gate.vocabulary import ARTIFACT_FOLDER

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.registry._interface import Registry

CURVES_ARTIFACT = f"{ARTIFACT_FOLDER}/curves.json"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    schema_version: Literal[1]
    attestation_sha256: str
    curves: tuple[AttackCurves, ...]


def curves_json(curves: Sequence[AttackCurves], *, attestation_sha256: str) -> bytes:
    """Return the bytes to store; no row's score is in them."""
    file = {"schema_version": 1, "attestation_sha256": attestation_sha256, "curves": [asdict(one) for one in curves]}
    return (json.dumps(file, allow_nan=False) + "\n").encode("utf-8")


def stored_curves(registry: Registry, model: ResolvedModel, *, attestation_sha256: str) -> tuple[AttackCurves, ...]:
    """Give the curves that were stored with this very test; none where there are none, or they cannot be drawn."""
    stored = registry.read_artifact(model, CURVES_ARTIFACT)
    if stored is None:
        return ()
    try:
        file = _File.model_validate_json(stored)
    except ValidationError:
        return ()
    if file.attestation_sha256 != attestation_sha256 or not all(map(_drawable, file.curves)):
        return ()
    return file.curves


def _drawable(curves: AttackCurves) -> bool:
    roc, bars = curves.roc, curves.histogram
    if roc is not None and not (
        len(roc.fpr) == len(roc.tpr) > 1
        and all(0 <= rate <= 1 for rate in (*roc.fpr, *roc.tpr))
        and all(before <= after for side in (roc.fpr, roc.tpr) for before, after in pairwise(side))
        and 0 < roc.smallest_fpr <= 1
    ):
        return False
    return bars is None or (
        len(bars.edges) - 1 == len(bars.members) == len(bars.non_members) > 0
        and all(before < after for before, after in pairwise(bars.edges))
        and all(count is None or count >= 0 for count in (*bars.members, *bars.non_members))
        and min(bars.rows_members, bars.rows_non_members) > 0
    )
