"""EMA, the ensembled membership audit: does a model still treat a set of rows as its training rows?

1. Per metric (correctness, confidence in the true label, negative entropy; higher = more like a training row) the threshold is the
   tau that best parts a calibration model's training rows from its test rows: the largest (TPR + TNR) / 2 over every observed value,
   with TPR = share of training rows ≥ tau and TNR = share of test rows < tau (the paper prints ≥ for both, and would then call every
   row a member). The largest tau among ties. Compared as whole numbers. A metric that parts nothing (≤ 1/2) is left out.
2. A query row has M = 1 when any metric reaches its threshold.
3. rho is the two-sided p-value of the pooled two-sample t-test of M against as many ones. With z zeros among n rows
   t² = z (n - 1) / (n - z), df = 2n - 2. rho ≤ alpha reads "not memorised"; anything else rules nothing out.

Huang, Li and Li, *EMA: Auditing Data Removal from Trained Models*, MICCAI 2021.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student_t

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.catalogue import scores
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats.scores import real_vector, sort_scores

ALPHA = 0.1
# The metrics under the names of the paper, by the score-only attack that computes each.
METRICS: Mapping[str, str] = {"correctness": "correctness", "confidence": "confidence", "neg_entropy": "entropy"}
FEWEST_ROWS = 2


@dataclass(frozen=True)
class Threshold:
    """Where one metric parts training rows from test rows: tau (``value``) and its balanced accuracy, a fraction in [0, 1].

    ``usable`` is False where the balanced accuracy is at most 1/2, told from whole numbers: such a metric parts nothing.
    """

    value: float
    balanced_accuracy: float
    usable: bool


def metrics(observations: Observations) -> Mapping[str, FloatArray]:
    """Compute the three metrics of a classifier's n rows, each float64 (n,), higher = more like a training row."""
    return {name: scores(attack, observations) for name, attack in METRICS.items()}


def threshold(train: npt.ArrayLike, test: npt.ArrayLike) -> Threshold:
    """Find tau of one metric on a calibration model's training rows (m,) and test rows (n,).

    ObservationError for NaN, an empty side, another shape or type.
    """
    sides = sort_scores(train, test)
    values = np.unique(np.concatenate((sides.members, sides.non_members)))
    m, n = len(sides.members), len(sides.non_members)
    reached = m - np.searchsorted(sides.members, values, side="left")
    below = np.searchsorted(sides.non_members, values, side="left")
    # (TPR + TNR) / 2 times 2mn: whole numbers, so that ties are ties.
    parted = reached.astype(np.int64) * n + below.astype(np.int64) * m
    best = int(parted.max())
    largest = float(values[np.flatnonzero(parted == best)[-1]])
    return Threshold(largest, best / (2 * m * n), best > m * n)


def membership(query: Mapping[str, npt.ArrayLike], thresholds: Mapping[str, Threshold]) -> BoolArray:
    """Say for each of n query rows whether any metric that can be used reaches its threshold, bool (n,).

    ``query``: the metrics of the target on the query rows, (n,) each. ObservationError where a metric that has a threshold is missing,
    lengths differ, or no metric can be used.
    """
    usable = {name: one.value for name, one in thresholds.items() if one.usable}
    if not usable:
        raise ObservationError("EMA: no metric parts the calibration model's training rows from its test rows")
    missing = sorted(set(usable) - set(query))
    if missing:
        raise ObservationError(f"EMA: the query lacks the metric {', '.join(missing)}")
    reached = [real_vector(query[name], name) >= value for name, value in usable.items()]
    if len({one.size for one in reached}) != 1:
        raise ObservationError(f"EMA: metrics of different lengths: {', '.join(str(one.size) for one in reached)}")
    return np.asarray(np.any(reached, axis=0), dtype=np.bool_)


def rho_ema(membership: npt.ArrayLike) -> float:
    """Return rho for the memberships (n,) of a query, each 0 or 1: 1.0 when all are ones, 0.0 when none is.

    ObservationError for fewer than two rows or for other values.
    """
    flags = real_vector(membership, "membership")
    if not np.isin(flags, (0.0, 1.0)).all():
        raise ObservationError("membership: expected 0 or 1 for every row")
    return rho(flags.size, int(np.count_nonzero(flags == 0)))


def rho(rows: int, zeros: int) -> float:
    """Return rho for ``zeros`` rows below every threshold among ``rows``; ObservationError for fewer than two rows."""
    if rows < FEWEST_ROWS:
        raise ObservationError(f"EMA: expected at least {FEWEST_ROWS} query rows, got {rows}")
    if not 0 <= zeros <= rows:
        raise UsageError(f"EMA: expected 0 to {rows} zeros, got {zeros}")
    if zeros in (0, rows):
        return 0.0 if zeros else 1.0
    statistic = math.sqrt(zeros * (rows - 1) / (rows - zeros))
    return 2 * float(student_t.sf(statistic, 2 * rows - 2))


def fewest_zeros(rows: int, alpha: float = ALPHA) -> int:
    """Return how few of ``rows`` must lie below every threshold for rho ≤ alpha, whatever the model says of the others."""
    zeros = 1
    while rho(rows, zeros) > alpha:
        zeros += 1
    return zeros
