"""rho_KS for one audit: shown beside the other answers, never deciding, for its two failures are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.ks import rho_ks
from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.evidence.removal import KsFacts, KsState

if TYPE_CHECKING:
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.removal.asking import AskedSets, Calibration


def ks_facts(model: LoadedModel, asked: AskedSets, calibration: Calibration, *, seed: int) -> KsFacts:
    """Train the recipe on the query rows alone and compare; not run, with the reason, where that cannot be."""
    query = asked.query
    if query.labels.nunique() < 2:
        return KsFacts(KsState.NOT_RUN, reason="a model cannot be trained on query rows that are all of one class")
    try:
        said = model.refit(query.features, query.labels, train_rows=query.said.n, seed=seed)
    except ModelUnusable as exc:  # too few rows for the recipe: nothing that decides is lost
        return KsFacts(KsState.NOT_RUN, reason=exc.message)
    if said is None:
        return KsFacts(KsState.NOT_RUN, reason="the model cannot be trained again from its own parameters")
    found = rho_ks(scores("confidence", query.said), scores("confidence", said), calibration.query_confidence)
    finite = found.value is not None and math.isfinite(found.value)
    state = KsState.FINITE if finite else KsState.UNDEFINED if found.value is None else KsState.INFINITE
    return KsFacts(state, found.value if finite else None, found.target_to_query, found.calibration_to_query)
