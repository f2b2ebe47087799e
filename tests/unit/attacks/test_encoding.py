"""A column of any type becomes numbers that keep its order and its gaps."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlflow_privacy_gate.attacks.encoding import encode

DAY = 86_400e9
SECOND_OF_MARCH_1970 = 60 * DAY


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["1970-03-02", "NaT", "1970-03-01"])),
        pd.Series(pd.to_datetime(["1970-03-02", "NaT", "1970-03-01"])).astype("datetime64[s]"),
        pd.Series(pd.to_datetime(["1970-03-02", "NaT", "1970-03-01"])).dt.tz_localize("UTC"),
        pd.Series([date(1970, 3, 2), None, date(1970, 3, 1)]),
        pd.Series(["1970-03-02", None, "1970-03-01T00:00:00"]),
        pd.Series(["1970-03-02", None, "1970-03-01"], dtype="string"),
        pd.Series(pd.PeriodIndex(["1970-03-02", None, "1970-03-01"], freq="D")),
        pd.Series(pd.to_timedelta([60, None, 59], unit="D")),
    ],
    ids=lambda column: str(column.dtype),
)
def test_times_of_every_type_become_nanoseconds(column: pd.Series[Any]) -> None:
    encoded = encode("when", column)
    assert encoded.kind == "time"
    np.testing.assert_array_equal(encoded.numbers, [SECOND_OF_MARCH_1970, np.nan, SECOND_OF_MARCH_1970 - DAY])


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pd.Series([2, 1, 3]), [2, 1, 3]),
        (pd.Series([2, None, 3], dtype="Int64"), [2, np.nan, 3]),
        (pd.Series([2.5, np.nan, -1.0], dtype="float32"), [2.5, np.nan, -1]),
        (pd.Series([2, None, 3.5], dtype=object), [2, np.nan, 3.5]),
        (pd.Series([True, False, True]), [1, 0, 1]),
        (pd.Series([True, None, False], dtype="boolean"), [1, np.nan, 0]),
        (pd.Series([np.inf, -np.inf, 0.0]), [np.finfo(np.float32).max, -np.finfo(np.float32).max, 0]),
    ],
    ids=str,
)
def test_numbers_and_booleans_stay_what_they_are(column: pd.Series[Any], numbers: list[float]) -> None:
    encoded = encode("x", column)
    assert encoded.kind == "number"
    np.testing.assert_array_equal(encoded.numbers, numbers)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "a", "b"]),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pd.Series(["b", None, "a", "b"], dtype="string"),
        pd.Series([("x", 2), None, ("x", 1), ("x", 2)]),
        pd.Series([["x", 2], None, ["x", 1], ["x", 2]]),
        pd.Series([Decimal("2.5"), None, Decimal("1.5"), Decimal("2.5")]),
        pd.Series([2j, np.nan, 1j, 2j]),
        pd.Series(["2020-01-01", None, "1970", "2020-01-01"]),
    ],
    ids=str,
)
def test_anything_else_becomes_the_rank_of_its_text(column: pd.Series[Any]) -> None:
    encoded = encode("x", column)
    assert encoded.kind == "category"
    assert np.isnan(encoded.numbers[1])
    assert set(encoded.numbers[[0, 2, 3]]) == {0.0, 1.0}
    assert encoded.numbers[0] == encoded.numbers[3]


def test_a_long_list_of_different_texts_is_no_category() -> None:
    assert encode("id", pd.Series([f"P-{place:05}" for place in range(201)])).kind == "text"
