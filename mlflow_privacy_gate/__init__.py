"""Membership inference tests for MLflow models, and a registry that refuses promotions without passing evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow_privacy_gate.api import audit_removal, check
    from mlflow_privacy_gate.checks import CheckResult
    from mlflow_privacy_gate.removal import AuditResult
    from mlflow_privacy_gate.splits.logging import log_splits

__all__ = ["AuditResult", "CheckResult", "audit_removal", "check", "log_splits"]

_EXPORTS = {
    "AuditResult": "mlflow_privacy_gate.removal",
    "CheckResult": "mlflow_privacy_gate.checks",
    "audit_removal": "mlflow_privacy_gate.api",
    "check": "mlflow_privacy_gate.api",
    "log_splits": "mlflow_privacy_gate.splits.logging",
}


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
