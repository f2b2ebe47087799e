"""Numbers are plain decimals, and a rounding never hides on which side of a limit one lies."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.errors import CardError

fractions = st.floats(0, 1, allow_subnormal=False)


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.53121, 0.55, "0.5312"),
        (0.55004, 0.55, "0.55004"),
        (0.54996, 0.55, "0.54996"),
        (0.55, 0.55, "0.5500"),
        (0.5500000001, 0.55, "0.5500000001"),
        (0.550046, 0.550045, "0.55005"),
        (0.953125, 0.953125, "0.953125"),
        (1e-7, None, "0.0000"),
        (1.0, 0.55, "1.0000"),
    ],
)
def test_four_digits_and_more_where_four_would_land_on_the_margin(value: float, limit: float | None, text: str) -> None:
    assert numbers.plain(value, limit=limit) == text


@given(fractions, fractions)
def test_a_printed_number_lies_on_the_side_of_the_margin_where_it_was_measured(value: float, margin: float) -> None:
    shown = Decimal(numbers.plain(value, limit=margin))
    exact = Decimal(repr(margin))
    assert (shown > exact) == (Decimal(repr(value)) > exact)
    assert (shown == exact) == (Decimal(repr(value)) == exact)


@given(fractions, fractions)
def test_no_number_is_printed_with_an_exponent(value: float, margin: float) -> None:
    for text in (numbers.plain(value, limit=margin), numbers.headroom(margin, value), numbers.exact(value)):
        assert set(text) <= set("0123456789.+-")


def test_headroom_has_a_sign_and_is_never_printed_as_zero_when_it_is_not() -> None:
    assert numbers.headroom(0.55, 0.55) == "+0.0000"
    assert numbers.headroom(0.55, 0.55004) == "-0.00004"
    assert numbers.headroom(0.55, 0.5312) == "+0.0188"
    assert numbers.signed(-0.0) == "+0.0000"


def test_a_rate_in_a_name_is_a_percentage() -> None:
    assert [numbers.percentage(rate) for rate in (0.1, 0.01, 0.001, 0.0001)] == ["10%", "1%", "0.1%", "0.01%"]


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_an_error(broken: float) -> None:
    with pytest.raises(CardError):
        numbers.plain(broken)
