"""How a number is printed: a plain decimal, four digits, and more where four would hide on which side of a limit it lies.

Every AUC, rate and margin is a fraction in [0, 1]; nothing is printed as a percentage except where a name says so
(``TPR at 0.1% FPR``). There is no exponent notation, and no NaN or infinity is ever printed as if it were a result.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.policy.wording import number

_FOUR_DIGITS = Decimal("0.0001")


def plain(value: float, *, limit: float | None = None) -> str:
    """Print ``value`` with four digits after the point, or with as many as show on which side of ``limit`` it lies.

    0.55004 against a limit of 0.55 is printed as ``0.55004``; exactly 0.55 as ``0.5500``. CardError for NaN and infinity.
    """
    exact_value = _decimal(value)
    rounded = exact_value.quantize(_FOUR_DIGITS, rounding=ROUND_HALF_EVEN)
    if limit is None:
        text = f"{rounded:f}"
    elif exact_value == _decimal(limit):
        text = f"{rounded if rounded == exact_value else exact_value.normalize():f}"
    else:
        text = number(value, against=float(_decimal(limit)))
    return text if Decimal(text) else text.removeprefix("-")


def headroom(margin: float, attack_auc: float) -> str:
    """Print margin minus attack AUC with its sign, taken on their decimals; what is not zero is never printed as zero."""
    return signed(float(_decimal(margin) - _decimal(attack_auc)))


def signed(value: float) -> str:
    """Print a difference with its sign; one that is not zero is never printed as zero."""
    text = plain(value, limit=0.0)
    return text if text.startswith("-") else f"+{text}"


def exact(value: float) -> str:
    """Print ``value`` with all its digits and no exponent, as a limit stands in a policy: ``0.55``."""
    return f"{_decimal(value).normalize():f}"


def interval(low: float | None, high: float | None) -> str | None:
    """Print a two-sided interval as ``0.5012 to 0.5934``, or give None where either end is missing."""
    return None if low is None or high is None else f"{plain(low)} to {plain(high)}"


def p_value(value: float) -> str:
    """Print a p-value with four digits; a smaller one as ``below 0.0001``, since none is zero."""
    return "below 0.0001" if value < 0.0001 else plain(value)


def count(value: int) -> str:
    """Print a count with thousands set apart: ``1,200``."""
    return f"{value:,}"


def percentage(fraction: float) -> str:
    """Print a fraction as a percentage for a name: 0.001 gives ``0.1%``."""
    return f"{(_decimal(fraction) * 100).normalize():f}%"


def _decimal(value: float) -> Decimal:
    if not math.isfinite(value):
        raise CardError(
            f"got {value} where a card prints a number; expected a finite one (the test's result is broken)"
        )
    return Decimal(repr(float(value)))
