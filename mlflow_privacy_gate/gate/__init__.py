"""The gate: decides one promotion now, from raw attestations, the policy and the clock, as a pure function."""

from __future__ import annotations

from mlflow_privacy_gate.gate.guarding import guarded_alias, guarded_name, guarded_stage
from mlflow_privacy_gate.gate.promotion import Decision, PromotionTarget, Route
from mlflow_privacy_gate.gate.ruling import decide, hopeless, refuse

__all__ = [
    "Decision",
    "PromotionTarget",
    "Route",
    "decide",
    "guarded_alias",
    "guarded_name",
    "guarded_stage",
    "hopeless",
    "refuse",
]
