"""A count below ten is neither printed nor given away by its neighbours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.cards.small_cells import hidden_cells, printed_counts


def test_counts_from_ten_on_are_printed() -> None:
    assert printed_counts([10, 1200]) == ("10", "1,200")


def test_a_small_count_takes_its_smallest_neighbour_with_it() -> None:
    assert printed_counts([1101, 100, 3]) == ("1,101", "not shown", "fewer than 10")


def test_two_small_counts_hide_each_other() -> None:
    assert printed_counts([1101, 9, 3]) == ("1,101", "fewer than 10", "fewer than 10")


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=12))
def test_no_small_count_can_be_worked_out_from_the_sum(counts: list[int]) -> None:
    hidden = hidden_cells(counts)
    assert {position for position, number in enumerate(counts) if number < 10} <= hidden
    assert len(hidden) != 1 or len(counts) == 1
    together = sum(counts[position] for position in hidden)
    assert together == 0 or together >= 10 or len(hidden) == len(counts)
