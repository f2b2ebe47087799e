"""A one-sided rank test of two samples of scores.

Mann and Whitney 1947; normal approximation with ties and continuity corrected, exact for small samples without ties.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import mannwhitneyu

from mlflow_privacy_gate.stats.auc import interval_of
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.results import RankTest
from mlflow_privacy_gate.stats.scores import sort_scores


def rank_test(query_scores: npt.ArrayLike, held_out_scores: npt.ArrayLike) -> RankTest:
    """Test whether the query rows score higher than held-out rows; a small ``p_value`` says that they do.

    ``query_scores`` (m,), ``held_out_scores`` (n,), errors as in :func:`mlflow_privacy_gate.stats.attack_auc`. Where every score is
    equal the p-value is 1.
    """
    scores = sort_scores(query_scores, held_out_scores)
    placements = place(scores)
    constant = scores.members[0] == scores.members[-1] == scores.non_members[0] == scores.non_members[-1]
    p_value = 1.0 if constant else _one_sided_p(scores.members, scores.non_members)
    return RankTest(p_value, placements.auc, interval_of(placements, 0.95))


def _one_sided_p(query: npt.NDArray[np.float64], held_out: npt.NDArray[np.float64]) -> float:
    return float(mannwhitneyu(query, held_out, alternative="greater").pvalue)
