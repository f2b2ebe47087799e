"""Statistics of an attack: exact AUC, intervals, TPR at low FPR, power. Pure functions of arrays, usable without MLflow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow_privacy_gate.stats.auc import attack_auc, delong_interval
    from mlflow_privacy_gate.stats.bootstrap import bootstrap_intervals
    from mlflow_privacy_gate.stats.differential_privacy import auc_ceiling, epsilon_lower_bound, tpr_ceiling
    from mlflow_privacy_gate.stats.low_fpr import tpr_at_fpr, tpr_p_value, tpr_upper_bound
    from mlflow_privacy_gate.stats.multiplicity import holm, max_auc_interval
    from mlflow_privacy_gate.stats.power import minimum_rows, rows_needed, smallest_detectable_auc
    from mlflow_privacy_gate.stats.rank_sum import rank_test
    from mlflow_privacy_gate.stats.results import (
        AttackSummary,
        BalancedAccuracy,
        BootstrapIntervals,
        EpsilonBound,
        Interval,
        RankTest,
        RocPoints,
        TprAtFpr,
    )
    from mlflow_privacy_gate.stats.roc import balanced_accuracy, roc_points
    from mlflow_privacy_gate.stats.scores import tie_share
    from mlflow_privacy_gate.stats.summary import summarise

_ROOM = "mlflow_privacy_gate.stats"
_EXPORTS = {
    "AttackSummary": f"{_ROOM}.results",
    "BalancedAccuracy": f"{_ROOM}.results",
    "BootstrapIntervals": f"{_ROOM}.results",
    "EpsilonBound": f"{_ROOM}.results",
    "Interval": f"{_ROOM}.results",
    "RankTest": f"{_ROOM}.results",
    "RocPoints": f"{_ROOM}.results",
    "TprAtFpr": f"{_ROOM}.results",
    "attack_auc": f"{_ROOM}.auc",
    "auc_ceiling": f"{_ROOM}.differential_privacy",
    "balanced_accuracy": f"{_ROOM}.roc",
    "bootstrap_intervals": f"{_ROOM}.bootstrap",
    "delong_interval": f"{_ROOM}.auc",
    "epsilon_lower_bound": f"{_ROOM}.differential_privacy",
    "holm": f"{_ROOM}.multiplicity",
    "max_auc_interval": f"{_ROOM}.multiplicity",
    "minimum_rows": f"{_ROOM}.power",
    "rank_test": f"{_ROOM}.rank_sum",
    "roc_points": f"{_ROOM}.roc",
    "rows_needed": f"{_ROOM}.power",
    "smallest_detectable_auc": f"{_ROOM}.power",
    "summarise": f"{_ROOM}.summary",
    "tie_share": f"{_ROOM}.scores",
    "tpr_at_fpr": f"{_ROOM}.low_fpr",
    "tpr_ceiling": f"{_ROOM}.differential_privacy",
    "tpr_p_value": f"{_ROOM}.low_fpr",
    "tpr_upper_bound": f"{_ROOM}.low_fpr",
}

__all__ = [
    "AttackSummary",
    "BalancedAccuracy",
    "BootstrapIntervals",
    "EpsilonBound",
    "Interval",
    "RankTest",
    "RocPoints",
    "TprAtFpr",
    "attack_auc",
    "auc_ceiling",
    "balanced_accuracy",
    "bootstrap_intervals",
    "delong_interval",
    "epsilon_lower_bound",
    "holm",
    "max_auc_interval",
    "minimum_rows",
    "rank_test",
    "roc_points",
    "rows_needed",
    "smallest_detectable_auc",
    "summarise",
    "tie_share",
    "tpr_at_fpr",
    "tpr_ceiling",
    "tpr_p_value",
    "tpr_upper_bound",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
