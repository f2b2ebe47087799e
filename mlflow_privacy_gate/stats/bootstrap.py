"""Stratified bootstrap intervals that never sort twice.

Members and non-members are resampled with replacement, each side at its own size (Efron and Tibshirani 1993, percentile interval).
The scores are sorted before any draw, so row order cannot matter. A replicate of the AUC is how often each sorted row was drawn: a
cumulative sum gives every placement. A replicate of TPR at FPR needs no row at all: its threshold is an order statistic, whose
place among n resampled rows is floor(n · Beta(n - k, k + 1)), and the members above it are binomial. Both are exact in distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.auc import degenerate_interval
from mlflow_privacy_gate.stats.low_fpr import allowed_false_positives, lower_bound_of, upper_bound_of
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.results import BootstrapIntervals, FloatArray, IntegerArray, Interval
from mlflow_privacy_gate.stats.scores import SortedScores, sort_scores

_LEVEL = 0.95
_BATCH_ROWS = 1 << 16  # rows drawn at a time: enough to spare Python's overhead, few enough for the processor's cache


def bootstrap_intervals(
    member_scores: npt.ArrayLike,
    non_member_scores: npt.ArrayLike,
    *,
    fprs: Sequence[float] = (0.01, 0.001),
    replicates: int = 1000,
    rng: np.random.Generator,
) -> BootstrapIntervals:
    """Return 95 % percentile intervals of the attack AUC and of the TPR at each FPR, both sides resampled.

    ``fprs`` are fractions in [0, 1]; ``replicates`` at least 1; ``rng`` is the only source of randomness. ``upper`` is the one-sided
    95 % bound for the AUC and :func:`mlflow_privacy_gate.stats.tpr_upper_bound` (97.5 %) for a TPR: the bootstrap of a TPR is for display,
    the bound is for limits. Where all replicates agree the interval is ``degenerate`` and the exact bound stands instead.
    Scores and errors as in :func:`mlflow_privacy_gate.stats.attack_auc`.
    """
    if replicates < 1:
        raise UsageError(f"replicates: expected at least 1, got {replicates}")
    scores = sort_scores(member_scores, non_member_scores)
    auc = _auc_interval(scores, replicates, rng)
    return BootstrapIntervals(auc, {float(fpr): _tpr_interval(scores, fpr, replicates, rng) for fpr in fprs})


def _auc_interval(scores: SortedScores, replicates: int, rng: np.random.Generator) -> Interval:
    degenerate = degenerate_interval(place(scores), _LEVEL)
    if degenerate is not None:
        return degenerate
    low, high, upper = np.quantile(_auc_replicates(scores, replicates, rng), [0.025, 0.975, _LEVEL])
    return Interval(float(low), float(high), float(upper), f"stratified bootstrap, {replicates} replicates")


def _auc_replicates(scores: SortedScores, replicates: int, rng: np.random.Generator) -> FloatArray:
    m, n = len(scores.members), len(scores.non_members)
    below = np.searchsorted(scores.non_members, scores.members, side="left")
    not_above = np.searchsorted(scores.non_members, scores.members, side="right")
    batch = max(1, _BATCH_ROWS // (m + n))
    twice_wins = np.empty(replicates, dtype=np.int64)
    for start in range(0, replicates, batch):
        size = min(batch, replicates - start)
        drawn_before = np.zeros((size, n + 1), dtype=np.int64)
        np.cumsum(_times_drawn(rng, n, size), axis=1, out=drawn_before[:, 1:])
        placements = np.take(drawn_before, below, axis=1) + np.take(drawn_before, not_above, axis=1)
        twice_wins[start : start + size] = np.einsum("ij,ij->i", placements, _times_drawn(rng, m, size))
    return twice_wins / (2 * m * n)


def _times_drawn(rng: np.random.Generator, rows: int, replicates: int) -> IntegerArray:
    """Draw ``rows`` rows with replacement, ``replicates`` times over; return how often each row came up, (replicates, rows)."""
    drawn = rng.integers(0, rows, size=(replicates, rows))
    drawn += np.arange(replicates)[:, np.newaxis] * rows
    return np.bincount(drawn.ravel(), minlength=replicates * rows).reshape(replicates, rows)


def _tpr_interval(scores: SortedScores, fpr: float, replicates: int, rng: np.random.Generator) -> Interval:
    values = _tpr_replicates(scores, fpr, replicates, rng)
    upper = upper_bound_of(scores, fpr)
    if values.min() == values.max():
        return Interval(
            lower_bound_of(scores, fpr), upper, upper, "order statistic and Clopper-Pearson", degenerate=True
        )
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high), upper, f"stratified bootstrap, {replicates} replicates")


def _tpr_replicates(scores: SortedScores, fpr: float, replicates: int, rng: np.random.Generator) -> FloatArray:
    m, n = len(scores.members), len(scores.non_members)
    allowed = allowed_false_positives(fpr, n)
    if allowed == n:
        return np.ones(replicates)
    place_of_threshold = np.minimum((n * rng.beta(n - allowed, allowed + 1, size=replicates)).astype(np.int64), n - 1)
    above = m - np.searchsorted(scores.members, scores.non_members[place_of_threshold], side="right")
    return rng.binomial(m, above / m) / m
