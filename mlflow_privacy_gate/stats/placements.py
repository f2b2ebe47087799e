"""Where each side's rows stand among the other's, counted in whole numbers: what AUC and DeLong's variance are made of.

For a member score x let w(x) = 2·#{non-members below x} + #{non-members equal to x}, and for a non-member score y let
v(y) = 2·#{members below y} + #{members equal to y}. AUC = Σ w / (2mn); DeLong's variance needs Σ w² and Σ v² (Sun and Xu 2014).
Both sums of squares come from one pass over the smaller side: v is a step function of the other side's rank, so summation by
parts turns its sum of squares into a weighted sum over the side that was searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlflow_privacy_gate.stats.results import FloatArray, IntegerArray
from mlflow_privacy_gate.stats.scores import SortedScores

_BLOCK_ROWS = 1 << 16
_INTEGER_LIMIT = 2**62


@dataclass(frozen=True)
class Placements:
    """Exact sums of placements. ``twice_wins`` = Σ w = 2·(pairs won by the member) + (tied pairs).

    ``member_squares`` = Σ w², ``non_member_squares`` = Σ v² (Python integers, so nothing overflows).
    """

    members: int
    non_members: int
    twice_wins: int
    member_squares: int
    non_member_squares: int

    @property
    def auc(self) -> float:
        """The AUC, correctly rounded: Python divides whole numbers exactly."""
        return self.twice_wins / (2 * self.members * self.non_members)

    @property
    def mirrored(self) -> Placements:
        """The same placements with the two sides exchanged."""
        return Placements(
            self.non_members,
            self.members,
            2 * self.members * self.non_members - self.twice_wins,
            self.non_member_squares,
            self.member_squares,
        )


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of equal scores in one block: where each starts, where its value first occurs, its length, its ranks on the other side."""

    start: IntegerArray
    first: IntegerArray
    length: IntegerArray
    below: IntegerArray
    not_above: IntegerArray


def place(scores: SortedScores) -> Placements:
    """Count the placements of both sides in O(n log n) time and constant extra memory."""
    if len(scores.members) > len(scores.non_members):
        return _place(scores.non_members, scores.members).mirrored
    return _place(scores.members, scores.non_members)


def _place(few: FloatArray, many: FloatArray) -> Placements:
    m, n = len(few), len(many)
    twice_wins = centred_squares = weighted = tied_squares = 0
    for runs in _runs(few, many, block=max(1, min(_BLOCK_ROWS, _INTEGER_LIMIT // max(4 * m * n, n * n)))):
        placement = runs.below + runs.not_above
        centred = placement - n
        twice_wins += int(np.dot(runs.length, placement))
        centred_squares += int(np.dot(runs.length * centred, centred))
        # Σ (2i + 1) over the run, times the placement: the summation by parts.
        weighted += int(np.dot(runs.length * (2 * runs.start + runs.length), placement))
        squares_of_ties = runs.length * (2 * (runs.start - runs.first) + runs.length)
        tied_squares += int(np.dot(squares_of_ties, runs.not_above - runs.below))
    return Placements(
        members=m,
        non_members=n,
        twice_wins=twice_wins,
        member_squares=centred_squares + 2 * n * twice_wins - m * n * n,
        non_member_squares=4 * m * m * n - 2 * weighted - tied_squares,
    )


def _runs(few: FloatArray, many: FloatArray, block: int) -> Iterator[_Runs]:
    """Give the runs of equal scores of ``few``, block by block; a run that crosses a block's edge comes in pieces."""
    for offset in range(0, len(few), block):
        chunk = few[offset : offset + block]
        edges = np.flatnonzero(chunk[1:] != chunk[:-1]) + 1
        local = np.concatenate(([0], edges))
        values = chunk[local]
        window_start = int(np.searchsorted(many, values[0], side="left"))
        window = many[window_start : int(np.searchsorted(many, values[-1], side="right"))]
        below = np.searchsorted(window, values, side="left")
        not_above = below.copy()
        inside = np.flatnonzero(below < len(window))
        tied = inside[window[below[inside]] == values[inside]]
        not_above[tied] = np.searchsorted(window, values[tied], side="right")
        start = local + offset
        first = start.copy()
        first[0] = np.searchsorted(few, values[0], side="left")
        length = np.diff(local, append=len(chunk))
        yield _Runs(start, first, length, below + window_start, not_above + window_start)
