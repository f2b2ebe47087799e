"""Columns that tell the splits apart are named, time first, and noise is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from mlflow_privacy_gate.attacks.differences import column_differences
from mlflow_privacy_gate.attacks.encoding import encode

ROWS = 600
IS_MEMBER = np.repeat([True, False], ROWS)


def differences(**columns: object) -> list[tuple[str, str]]:
    encoded = [encode(name, pd.Series(values)) for name, values in columns.items()]
    return [(found.column, found.test) for found in column_differences(encoded, IS_MEMBER)]


def test_time_columns_come_first_then_the_largest_distance() -> None:
    rng = np.random.default_rng(0)
    found = differences(
        shifted=rng.normal(size=2 * ROWS) + 0.5 * IS_MEMBER,
        moved=rng.normal(size=2 * ROWS) + 2.0 * IS_MEMBER,
        noise=rng.normal(size=2 * ROWS),
        when=pd.Timestamp("2020") + pd.to_timedelta(rng.integers(0, 300, 2 * ROWS) + 60 * IS_MEMBER, "D"),
    )
    assert found == [("when", "KS"), ("moved", "KS"), ("shifted", "KS")]


def test_a_category_and_a_pattern_of_missing_values_are_seen() -> None:
    rng = np.random.default_rng(1)
    site = rng.choice(list("abcd"), 2 * ROWS).astype(object)
    site[:200] = "e"
    income = np.where(np.arange(2 * ROWS) % 2, -1.0, 1.0)
    income[:ROWS:16] = income[1:ROWS:16] = np.nan  # one row in eight, of both values alike
    assert differences(site=site, income=income) == [("site", "chi-square"), ("income", "KS")]


def test_the_chi_square_is_the_textbooks_where_no_category_is_rare() -> None:
    rng = np.random.default_rng(2)
    words = rng.choice(list("abc"), 2 * ROWS)
    words[:60] = "a"
    (found,) = column_differences([encode("w", pd.Series(words))], IS_MEMBER)
    table = pd.crosstab(IS_MEMBER, words).to_numpy()
    assert found.p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue, rel=1e-9)
    shares = table / table.sum(axis=1, keepdims=True)
    assert found.distance == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)


def test_rare_categories_on_uneven_sides_raise_no_alarm() -> None:
    rng, sides = np.random.default_rng(3), np.repeat([True, False], [60, 3_000])
    raised = 0
    for _ in range(100):
        words = (rng.zipf(1.5, 3_060) % 190).astype(str)
        raised += bool(column_differences([encode("rare", pd.Series(words))], sides))
    assert raised <= 4  # 1 % expected; without taking rare categories together it is 20 %


def test_a_constant_column_raises_no_alarm() -> None:
    assert differences(constant=["x"] * (2 * ROWS), zero=np.zeros(2 * ROWS)) == []
