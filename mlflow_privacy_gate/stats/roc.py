"""The ROC curve as whole-number points, and the balanced accuracy of its best threshold."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.stats.results import BalancedAccuracy, RocPoints
from mlflow_privacy_gate.stats.scores import sort_scores


def roc_points(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike) -> RocPoints:
    """Return every attainable (false positives, true positives) of "member if score >= threshold", thresholds descending.

    One point per distinct score and (0, 0); nothing is interpolated, dropped or replaced by a hull, so the area under the points is
    :func:`mlflow_privacy_gate.stats.attack_auc` to the bit. Parameters and errors as there.
    """
    scores = sort_scores(member_scores, non_member_scores)
    thresholds = np.unique(np.concatenate((scores.members, scores.non_members)))[::-1]
    true_positives = len(scores.members) - np.searchsorted(scores.members, thresholds, side="left")
    false_positives = len(scores.non_members) - np.searchsorted(scores.non_members, thresholds, side="left")
    return RocPoints(np.concatenate(([0], false_positives)), np.concatenate(([0], true_positives)))


def balanced_accuracy(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike) -> BalancedAccuracy:
    """Return the balanced accuracy of the best threshold, beside what noise reaches when its best threshold is chosen likewise.

    ``value`` = max (TPR + TNR)/2, from whole numbers. It is chosen on the rows it is measured on, so it is above 0.5 on noise too:
    ``null_value`` = 0.5 + E[D]/2 with E[D] = sqrt(π (m + n)/(8 m n)), the mean of the one-sided Kolmogorov-Smirnov distance without
    leakage or ties (Smirnov 1939; a little high on few rows and with ties). Parameters and errors as in
    :func:`mlflow_privacy_gate.stats.attack_auc`.
    """
    points = roc_points(member_scores, non_member_scores)
    m, n = int(points.true_positives[-1]), int(points.false_positives[-1])
    advantage = int(np.max(points.true_positives * n - points.false_positives * m))
    null_value = min(1.0, 0.5 + math.sqrt(math.pi * (m + n) / (8 * m * n)) / 2)
    return BalancedAccuracy((m * n + advantage) / (2 * m * n), null_value)
