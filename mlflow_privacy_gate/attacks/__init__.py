"""Membership inference attacks: pure functions that give each observed row a score, higher for a likelier member."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow_privacy_gate.attacks.catalogue import applicable, scores
    from mlflow_privacy_gate.attacks.observations import Observations

__all__ = ["Observations", "applicable", "scores"]

_EXPORTS = {
    "Observations": "mlflow_privacy_gate.attacks.observations",
    "applicable": "mlflow_privacy_gate.attacks.catalogue",
    "scores": "mlflow_privacy_gate.attacks.catalogue",
}


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
