"""Attack AUC, exact, and its interval by DeLong's variance.

DeLong, DeLong and Clarke-Pearson 1988, "Comparing the areas under two or more correlated receiver operating characteristic
curves"; Sun and Xu 2014 for the O(n log n) form.
"""

from __future__ import annotations

import math

import numpy.typing as npt
from scipy.stats import norm

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.placements import Placements, place
from mlflow_privacy_gate.stats.results import Interval
from mlflow_privacy_gate.stats.scores import sort_scores


def attack_auc(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike) -> float:
    """Return the share of member/non-member pairs in which the member scores higher, ties counted one half.

    The exact Mann-Whitney statistic U/(m·n) from whole-number counts, rounded once to the nearest float64: 11/20 is 0.55 itself and
    not "above 0.55". Never flipped: a value below 0.5 stays below.

    ``member_scores`` (m,) and ``non_member_scores`` (n,): any one-dimensional array-like of real numbers, higher = more
    member-like; infinities rank like other values. Row order does not matter, to the bit.
    Raises ObservationError for NaN, missing values, an empty side, another shape or type. Source: Mann and Whitney 1947.
    """
    return place(sort_scores(member_scores, non_member_scores)).auc


def delong_interval(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the interval of the attack AUC by DeLong's variance, and the one-sided ``upper`` bound of the same level.

    At an AUC of exactly 1 or 0 DeLong's variance is zero and says nothing: the interval is then the exact binomial bound for
    min(m, n) independent pairs without a miss. Where every score is equal it is [0.5, 0.5]; with one row on a side, [0, 1]. All
    three are marked ``degenerate``. Parameters and errors as in :func:`attack_auc`; ``level`` lies in (0, 1), else UsageError.
    """
    return interval_of(place(sort_scores(member_scores, non_member_scores)), level)


def interval_of(placements: Placements, level: float) -> Interval:
    """Return the DeLong interval of placements that are counted already."""
    require_level(level)
    degenerate = degenerate_interval(placements, level)
    if degenerate is not None:
        return degenerate
    auc, error = placements.auc, standard_error(placements)
    half_width = float(norm.ppf((1 + level) / 2)) * error
    return Interval(
        low=max(0.0, auc - half_width),
        high=min(1.0, auc + half_width),
        upper=min(1.0, auc + float(norm.ppf(level)) * error),
        method="DeLong",
    )


def standard_error(placements: Placements) -> float:
    """Return DeLong's standard error of the AUC; needs two rows a side. The sums are exact, only the last steps round."""
    m, n = placements.members, placements.non_members
    wins, losses = placements.twice_wins, 2 * m * n - placements.twice_wins
    member_part = (m * placements.member_squares - wins * wins) / (4 * n * n * m * m * (m - 1))
    non_member_part = (n * placements.non_member_squares - losses * losses) / (4 * m * m * n * n * (n - 1))
    return math.sqrt(member_part + non_member_part)


def degenerate_interval(placements: Placements, level: float) -> Interval | None:
    """Return what stands where the scores have no spread to measure, or None where DeLong's variance can be used."""
    smaller_side = min(placements.members, placements.non_members)
    if smaller_side == 1:
        return Interval(0.0, 1.0, 1.0, "none: one row on a side", degenerate=True)
    if placements.auc in (0.0, 1.0):
        return _binomial_bound(placements.auc, smaller_side, level)
    if standard_error(placements) == 0.0:
        return Interval(0.5, 0.5, 0.5, "none: every score is equal", degenerate=True)
    return None


def _binomial_bound(auc: float, pairs: int, level: float) -> Interval:
    two_sided = ((1 - level) / 2) ** (1 / pairs)
    one_sided = (1 - level) ** (1 / pairs)
    method = f"binomial bound: perfect separation of {pairs} pairs"
    if auc == 1.0:
        return Interval(two_sided, 1.0, 1.0, method, degenerate=True)
    return Interval(0.0, 1 - two_sided, 1 - one_sided, method, degenerate=True)


def require_level(level: float) -> None:
    """Raise UsageError unless ``level`` is a fraction in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"level: expected a fraction in (0, 1), got {level!r} (95 % is 0.95)")
