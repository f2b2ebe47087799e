"""Everything the gate asks of one attack's scores, from one sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from mlflow_privacy_gate.stats.auc import interval_of
from mlflow_privacy_gate.stats.low_fpr import tpr_of, upper_bound_of
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.results import AttackSummary
from mlflow_privacy_gate.stats.scores import share_of_tied_rows, sort_scores


def summarise(
    member_scores: npt.ArrayLike,
    non_member_scores: npt.ArrayLike,
    *,
    fprs: Sequence[float] = (0.01, 0.001),
    level: float = 0.95,
) -> AttackSummary:
    """Return AUC, DeLong interval, TPR at each FPR with its upper bound, and the share of tied rows, sorting only once.

    The same numbers, to the bit, as ``attack_auc``, ``delong_interval``, ``tpr_at_fpr``, ``tpr_upper_bound`` and ``tie_share`` give
    one by one. Parameters and errors as there. Ten million scores need their sorted copy and little more.
    """
    scores = sort_scores(member_scores, non_member_scores)
    placements = place(scores)
    return AttackSummary(
        auc=placements.auc,
        interval=interval_of(placements, level),
        tpr={float(fpr): tpr_of(scores, fpr) for fpr in fprs},
        tpr_upper={float(fpr): upper_bound_of(scores, fpr) for fpr in fprs},
        tie_share=share_of_tied_rows(scores),
    )
