"""Counts below ten are never printed, nor can they be worked out from the counts around them."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_privacy_gate.cards.numbers import count

SMALLEST_CELL = 10
BELOW = f"fewer than {SMALLEST_CELL}"


def hidden_cells(counts: Sequence[int]) -> frozenset[int]:
    """Give the positions to hide among counts whose sum is known: all below ten and, where they would give themselves away, more.

    The sum minus the printed counts is known: so never one alone is hidden, and never some that come to fewer than ten together.
    """
    rising = sorted(range(len(counts)), key=lambda position: counts[position])
    hidden = [position for position in rising if counts[position] < SMALLEST_CELL]
    for position in rising[len(hidden) :]:
        if len(hidden) != 1 and not 0 < sum(counts[p] for p in hidden) < SMALLEST_CELL:
            break
        hidden.append(position)
    return frozenset(hidden)


def printed_counts(counts: Sequence[int]) -> tuple[str, ...]:
    """Print counts whose sum is known, each hidden one as ``fewer than 10`` or, where it is larger, ``not shown``."""
    hidden = hidden_cells(counts)
    return tuple(
        count(number) if position not in hidden else BELOW if number < SMALLEST_CELL else "not shown"
        for position, number in enumerate(counts)
    )
