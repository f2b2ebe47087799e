"""What a test of a given size can see, and the size it needs.

Without leakage the AUC's standard error is about sqrt((m + n + 1)/(12 m n)) (Mann and Whitney 1947): 1/sqrt(6 n) for n rows a side.
All tests here are one-sided, at 5 % unless said otherwise: only an AUC above 0.5 is leakage.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.stats import norm

from mlflow_privacy_gate.errors import UsageError

# The one-sided 5 % point as the policy's rule states it, to three decimals: the rule must give the same count everywhere.
_ONE_SIDED_5_PERCENT = Fraction("1.645")


def smallest_detectable_auc(n_members: int, n_non_members: int, *, power: float = 0.8, level: float = 0.05) -> float:
    """Return the smallest true AUC that a one-sided test at ``level`` catches with probability ``power``; at most 1.0.

    ``n_members`` and ``n_non_members`` are rows, at least 1. ``power`` and ``level`` are fractions in (0, 1). UsageError otherwise.
    """
    if n_members < 1 or n_non_members < 1:
        raise UsageError(f"expected at least one row a side, got {n_members} members and {n_non_members} non-members")
    _require_fraction("power", power)
    _require_fraction("level", level)
    null_error = math.sqrt((n_members + n_non_members + 1) / (12 * n_members * n_non_members))
    return min(1.0, 0.5 + float(norm.isf(level) + norm.ppf(power)) * null_error)


def rows_needed(margin: float, *, power: float = 0.9) -> int:
    """Return the rows a side that tell a true AUC of ``margin`` from 0.5 with probability ``power``: 571 for 0.55 at 0.9.

    ``margin`` is an AUC in (0.5, 1], ``power`` a fraction in (0, 1); UsageError otherwise.
    """
    _require_fraction("power", power)
    effect = float(_excess(margin))
    return math.ceil((float(norm.ppf(0.95) + norm.ppf(power)) / effect) ** 2 / 6)


def minimum_rows(margin: float, min_rows_per_side: int) -> int:
    """Return the rows a side below which a verdict at ``margin`` is inconclusive: 181 at 0.55, 1,128 at 0.52.

    The larger of ``min_rows_per_side`` and the rows at which noise alone stays under the margin 95 times in 100, counted exactly from
    the decimal digits of ``margin``, an AUC in (0.5, 1]; UsageError otherwise.
    """
    return max(min_rows_per_side, math.ceil((_ONE_SIDED_5_PERCENT / _excess(margin)) ** 2 / 6))


def _excess(margin: float) -> Fraction:
    if not 0.5 < margin <= 1.0:
        raise UsageError(f"margin: expected an AUC in (0.5, 1], got {margin!r}")
    return Fraction(repr(float(margin))) - Fraction(1, 2)


def _require_fraction(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise UsageError(f"{name}: expected a fraction in (0, 1), got {value!r}")
