"""Counts below ten are never printed, nor can they be worked out from the counts around them."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_privacy_gate.cards.numbers import count

SMALLEST_CELL = 10
BELOW = f"fewer than {SMALLEST_CELL}"


def hidden_cells(counts: Sequence[int]) -> frozenset[int]:
    """Give the positions to hide among counts whose sum is known: all below ten and, where that is one alone, the next smallest too.

    Without the second, the sum minus the printed counts would give the hidden one away.
    """
    small = {position for position, number in enumerate(counts) if number < SMALLEST_CELL}
    if len(small) == 1 and len(counts) > 1:
        small.add(min((p for p in range(len(counts)) if p not in small), key=lambda p: counts[p]))
    return frozenset(small)


def printed_counts(counts: Sequence[int]) -> tuple[str, ...]:
    """Print counts whose sum is known, each hidden one as ``fewer than 10`` or, where it is larger, ``not shown``."""
    hidden = hidden_cells(counts)
    return tuple(
        count(number) if position not in hidden else BELOW if number < SMALLEST_CELL else "not shown"
        for position, number in enumerate(counts)
    )
