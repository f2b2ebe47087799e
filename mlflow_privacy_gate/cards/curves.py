"""What may be drawn of an attack's scores: a thinned ROC curve and a histogram without small bins; no row's score survives in either."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.cards.small_cells import hidden_cells
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.stats.results import RocPoints

FloatArray = npt.NDArray[np.float64]

_POINTS = 160
_BINS = 24
_TAIL = 0.005  # share of the rows at either end that goes into the open-ended outer bins


@dataclass(frozen=True)
class RocCurve:
    """Points of a ROC curve, rates in [0, 1], ascending, with the smallest false positive rate that the rows can resolve."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    smallest_fpr: float


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts of scores per bin and side; None where a bin holds fewer than ten rows, or would give such a bin away.

    The outer bins take all that lies beyond.

    ``edges`` (k + 1,) are round numbers; ``members`` and ``non_members`` are (k,) each, ``rows_*`` the rows a side.
    """

    edges: tuple[float, ...]
    members: tuple[int | None, ...]
    non_members: tuple[int | None, ...]
    rows_members: int
    rows_non_members: int


def roc_curve(points: RocPoints) -> RocCurve:
    """Thin a ROC curve to at most a few hundred attainable points, evenly on a logarithmic axis, ends included.

    A subset of the points is drawn, none is moved or interpolated; figures are never computed from the thinned curve.
    """
    fpr, tpr = points.fpr, points.tpr
    smallest = 1.0 / int(points.false_positives[-1])
    wanted = np.geomspace(smallest, 1.0, _POINTS)
    last_at_or_below = np.searchsorted(fpr, wanted * (1 + 1e-12), side="right") - 1
    kept = np.unique(np.concatenate([[_last_without_false_positive(fpr)], last_at_or_below, [fpr.size - 1]]))
    return RocCurve(tuple(fpr[kept].tolist()), tuple(tpr[kept].tolist()), smallest)


def _last_without_false_positive(fpr: FloatArray) -> int:
    return int(np.searchsorted(fpr, 0.0, side="right")) - 1


def score_histogram(member_scores: FloatArray, non_member_scores: FloatArray) -> ScoreHistogram:
    """Count scores, (n,) float64 a side, in bins with round edges; bins with fewer than ten rows are left blank.

    Infinite scores fall into the outer bins. CardError for NaN or an empty side.
    """
    if not member_scores.size or not non_member_scores.size:
        raise CardError("a histogram needs scores of members and of non-members; one side is empty")
    both = np.concatenate([member_scores, non_member_scores])
    if np.isnan(both).any():
        raise CardError(f"a histogram cannot be drawn of NaN scores ({int(np.isnan(both).sum())} of {both.size} rows)")
    edges = _round_edges(both[np.isfinite(both)])
    return ScoreHistogram(
        edges=edges,
        members=_counts(member_scores, edges),
        non_members=_counts(non_member_scores, edges),
        rows_members=int(member_scores.size),
        rows_non_members=int(non_member_scores.size),
    )


def _round_edges(finite: FloatArray) -> tuple[float, ...]:
    """Choose edges as multiples of a round step, so that no edge is a row's own score."""
    low, high = (0.0, 1.0) if finite.size == 0 else np.quantile(finite, [_TAIL, 1 - _TAIL]).tolist()
    span = max(high - low, 1e-9 * max(1.0, abs(low), abs(high)))
    magnitude = 10.0 ** math.floor(math.log10(span / _BINS))
    step = next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if span / (magnitude * factor) <= _BINS)
    first, last = math.floor(low / step), math.floor(high / step) + 1
    return tuple(float(f"{number * step:.12g}") for number in range(first, last + 1))


def _counts(scores: FloatArray, edges: tuple[float, ...]) -> tuple[int | None, ...]:
    inner = np.asarray(edges[1:-1], dtype=np.float64)
    counts = np.bincount(np.searchsorted(inner, scores, side="right"), minlength=len(edges) - 1)
    hidden = hidden_cells(counts.tolist())
    return tuple(None if position in hidden else int(number) for position, number in enumerate(counts))
