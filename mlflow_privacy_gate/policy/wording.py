"""Numbers as people read them in findings, tags and cards."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal


def number(value: float, *, against: float | None = None, digits: int = 4) -> str:
    """Write a measured number with four digits, and with more where four would land on the limit it is compared ``against``.

    0.55004 against 0.55 stays 0.55004; limits, written without ``against``, lose their trailing zeros (0.55).
    """
    exact = Decimal(repr(float(value)))
    if not exact.is_finite():
        return str(value)
    if against is None:
        shortest = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
        return f"{(shortest if shortest == exact else exact).normalize():f}"
    limit = Decimal(repr(float(against)))
    while True:
        rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
        if rounded == exact or ((rounded > limit) == (exact > limit) and rounded != limit):
            return f"{rounded:f}"
        digits += 1


def interval(low: float | None, high: float | None) -> str:
    """Write a 95 % interval, or say that there is none."""
    if low is None or high is None:
        return "no interval"
    return f"95 % interval {low:.4f} to {high:.4f}"


def plural(count: int, word: str) -> str:
    """Write ``1 row``, ``1,200 rows``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
