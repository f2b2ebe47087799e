from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.policy.wording import interval, number, plural


@pytest.mark.parametrize(
    ("value", "against", "text"),
    [
        (0.55004, 0.55, "0.55004"),
        (0.54996, 0.55, "0.54996"),
        (0.55, 0.55, "0.5500"),
        (0.693147, 0.55, "0.6931"),
        (0.5500000000000002, 0.55, "0.5500000000000002"),
        (1.0, 0.55, "1.0000"),
        (0.55, None, "0.55"),
        (0.5, None, "0.5"),
        (1.0, None, "1"),
        (0.123456, None, "0.123456"),
    ],
)
def test_four_digits_and_more_where_four_would_land_on_the_limit(
    value: float, against: float | None, text: str
) -> None:
    assert number(value, against=against) == text


@given(st.floats(0, 1), st.sampled_from([0.51, 0.52, 0.55, 0.6]))
def test_a_number_as_written_stands_on_the_same_side_of_its_limit(value: float, limit: float) -> None:
    written = float(number(value, against=limit))
    assert (written > limit, written < limit) == (value > limit, value < limit)


def test_an_interval_that_is_missing_is_said_to_be() -> None:
    assert interval(0.5, 0.6) == "95 % interval 0.5000 to 0.6000"
    assert interval(None, 0.6) == "no interval"


def test_one_row_is_not_one_rows() -> None:
    assert (plural(1, "row"), plural(1200, "row")) == ("1 row", "1,200 rows")
