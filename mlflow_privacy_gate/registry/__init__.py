"""MLflow's registry as this project needs it: resolving a model, reading its bytes, publishing what was measured."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow_privacy_gate.registry._interface import Publication, Registry
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

__all__ = ["MlflowRegistry", "Publication", "Registry"]

_EXPORTS = {
    "MlflowRegistry": "mlflow_privacy_gate.registry.mlflow_registry",
    "Publication": "mlflow_privacy_gate.registry._interface",
    "Registry": "mlflow_privacy_gate.registry._interface",
}


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
