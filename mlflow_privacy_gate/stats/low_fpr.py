"""TPR at a low false positive rate: what an attacker gets who must almost never be wrong.

Carlini et al. 2022, "Membership inference attacks from first principles", argue for this figure beside the AUC, which hides the
tail: 10 of 1,000 members always on top give an AUC of 0.505.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom, hypergeom

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.results import FloatArray, TprAtFpr, percent
from mlflow_privacy_gate.stats.scores import SortedScores, sort_scores

_FEW_FALSE_POSITIVES = 10
_BOUND_LEVEL = 0.975


def tpr_at_fpr(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike, fpr: float) -> TprAtFpr:
    """Return the largest share of members above a threshold that at most a share ``fpr`` of the non-members exceeds.

    With k = floor(fpr · n), taken from the decimal digits of ``fpr`` (0.29 of 100 is 29, where floats give 28), it is the
    share of members that score above, not level with, the (k+1)-th largest non-member: a point the attacker can really have, never
    interpolated, right with ties. ``fpr`` is a fraction in [0, 1] (0.01 = 1 %), else UsageError. Scores and errors as in
    :func:`mlflow_privacy_gate.stats.attack_auc`.
    """
    return tpr_of(sort_scores(member_scores, non_member_scores), fpr)


def tpr_upper_bound(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike, fpr: float) -> float:
    """Return an upper bound (one-sided 97.5 %) of the TPR at a true false positive rate of ``fpr``, for use as a limit.

    The threshold is an order statistic that lies, with 97.5 % confidence, at or below the true (1 - fpr) quantile: the
    (binom.ppf(0.975, n, fpr) + 1)-th largest non-member. The bound is Clopper and Pearson's upper limit, again one-sided 97.5 %, of the
    share of members strictly above it. (Clopper-Pearson around the estimated threshold alone would ignore that the threshold is estimated.)
    Parameters and errors as in :func:`tpr_at_fpr`.
    """
    return upper_bound_of(sort_scores(member_scores, non_member_scores), fpr)


def tpr_p_value(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike, fpr: float) -> float:
    """Return how often chance alone would put as many members above the threshold of :func:`tpr_at_fpr`; a small value is a leak.

    x members strictly above the (k+1)-th largest non-member means that at least x of the x + k largest scores are members: the tail of
    the hypergeometric distribution, exact where rows are exchangeable, and too large rather than too small with ties.
    Parameters and errors as in :func:`tpr_at_fpr`.
    """
    scores = sort_scores(member_scores, non_member_scores)
    m, n = len(scores.members), len(scores.non_members)
    allowed = allowed_false_positives(fpr, n)
    above = count_above_largest(scores.members, scores.non_members, allowed)
    return float(hypergeom.sf(above - 1, m + n, m, min(above + allowed, m + n)))


def tpr_of(scores: SortedScores, fpr: float) -> TprAtFpr:
    """Return :func:`tpr_at_fpr` of scores that are sorted already."""
    n = len(scores.non_members)
    allowed = allowed_false_positives(fpr, n)
    realised = count_above_largest(scores.non_members, scores.non_members, allowed) / n
    value = count_above_largest(scores.members, scores.non_members, allowed) / len(scores.members)
    resolvable = allowed >= 1
    notes = []
    if not resolvable:
        notes.append(f"not resolvable (smallest FPR {percent(1 / n)})")
    elif allowed < _FEW_FALSE_POSITIVES:
        notes.append(f"rests on {allowed} allowed false positive{'s' if allowed > 1 else ''} among {n} non-members")
    if realised < allowed / n:
        notes.append(f"ties: the largest attainable FPR up to {percent(fpr)} is {percent(realised)}")
    return TprAtFpr(float(fpr), value, realised, resolvable, bool(notes), "; ".join(notes))


def upper_bound_of(scores: SortedScores, fpr: float) -> float:
    """Return :func:`tpr_upper_bound` of scores that are sorted already."""
    require_fpr(fpr)
    m, n = len(scores.members), len(scores.non_members)
    above = count_above_largest(scores.members, scores.non_members, int(binom.ppf(_BOUND_LEVEL, n, float(fpr))))
    return 1.0 if above == m else float(beta.ppf(_BOUND_LEVEL, above + 1, m - above))


def lower_bound_of(scores: SortedScores, fpr: float) -> float:
    """Return the lower counterpart of :func:`upper_bound_of` (one-sided 97.5 %), for display."""
    require_fpr(fpr)
    m, n = len(scores.members), len(scores.non_members)
    rank = int(binom.ppf(1 - _BOUND_LEVEL, n, float(fpr)))
    above = 0 if rank == 0 else count_above_largest(scores.members, scores.non_members, rank - 1)
    return 0.0 if above == 0 else float(beta.ppf(1 - _BOUND_LEVEL, above, m - above + 1))


def allowed_false_positives(fpr: float, non_members: int) -> int:
    """Return floor(fpr · n) from the decimal digits of ``fpr``, one more where that share of n is the very float (1/3 of 3 is 1)."""
    require_fpr(fpr)
    allowed = math.floor(_exact(fpr) * non_members)
    return allowed + 1 if (allowed + 1) / non_members <= fpr else allowed


def count_above_largest(counted: FloatArray, non_members: FloatArray, rank: int) -> int:
    """Count values strictly above the (rank+1)-th largest non-member (all of them where there is none); both arrays ascending."""
    if rank >= len(non_members):
        return len(counted)
    threshold = non_members[len(non_members) - 1 - rank]
    return len(counted) - int(np.searchsorted(counted, threshold, side="right"))


def require_fpr(fpr: object) -> None:
    """Raise UsageError unless ``fpr`` is a fraction in [0, 1]."""
    number = isinstance(fpr, (int, float, np.integer, np.floating)) and not isinstance(fpr, bool)
    if not (number and 0.0 <= float(fpr) <= 1.0):  # type: ignore[arg-type]  # a number
        raise UsageError(f"fpr: expected a fraction in [0, 1], got {fpr!r} (1 % is 0.01)")


def _exact(fpr: float) -> Fraction:
    return Fraction(str(fpr))
