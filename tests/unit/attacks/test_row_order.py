"""The seeded order of rows comes from their content alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks.row_order import seeded_order


def frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    table: pd.DataFrame = pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "s": rng.choice(list("abc"), rows),
            "nested": [[int(place), "v"] for place in rng.integers(0, 9, rows)],
        }
    )
    table["mixed"] = pd.Series([1, "1", None, 2.5] * (rows // 4), dtype=object)
    return table


def test_the_same_rows_are_drawn_however_they_were_sorted() -> None:
    table = frame(400)
    shuffled = table.sample(frac=1, random_state=1)
    drawn, again = (seeded_order(each, 123, 50) for each in (table, shuffled))
    pd.testing.assert_frame_equal(
        table.iloc[drawn.rows].reset_index(drop=True), shuffled.iloc[again.rows].reset_index(drop=True)
    )


def test_another_seed_draws_other_rows_from_the_whole_file() -> None:
    table = frame(2_000)
    drawn, other = (set(seeded_order(table, salt, 200).rows.tolist()) for salt in (1, 2))
    assert len(drawn & other) < 60
    assert min(drawn) < 100
    assert max(drawn) > 1_900


def test_equal_rows_stand_together_and_count_as_one() -> None:
    table = pd.concat([frame(100)] * 2, ignore_index=True)
    order = seeded_order(table, 9, 200)
    assert order.distinct.tolist() == [place // 2 for place in range(200)]
    assert np.array_equal(order.rows[::2] % 100, order.rows[1::2] % 100)


def test_the_frame_is_left_as_it_was() -> None:
    table = frame(40)
    before = table.copy(deep=True)
    seeded_order(table, 5, 10)
    pd.testing.assert_frame_equal(table, before)
