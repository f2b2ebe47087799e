from __future__ import annotations

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks.telling_columns import held_constant, most_telling_first

RNG = np.random.default_rng(0)
LABELS = pd.Series(RNG.integers(0, 2, 200), name="label")
FEATURES: pd.DataFrame = pd.DataFrame(
    {
        "noise": RNG.normal(size=200),
        "word": np.where(LABELS == 1, "yes", "no"),
        "constant": np.ones(200),
        "weak": LABELS + RNG.normal(scale=2, size=200),
        "strong": LABELS + RNG.normal(scale=0.2, size=200),
        "day": pd.to_datetime("2026-01-01") + pd.to_timedelta(RNG.integers(0, 50, 200), unit="D"),
    }
)


def test_columns_come_in_the_order_of_what_they_say_about_the_label() -> None:
    ordered = most_telling_first(FEATURES, LABELS, of_classes=True)
    assert ordered[:3] == ("word", "strong", "weak")
    assert ordered[-1] == "constant"
    assert set(ordered) == set(FEATURES.columns)


def test_columns_are_ordered_for_a_regression_too_and_missing_values_do_not_stop_it() -> None:
    features = FEATURES[["noise", "strong"]].copy()
    features.loc[:20, "noise"] = np.nan
    assert most_telling_first(features, LABELS.astype(float), of_classes=False)[0] == "strong"


def test_a_column_held_constant_keeps_its_type_and_says_nothing_more() -> None:
    held = held_constant(FEATURES, ("word", "strong", "day"))
    assert held.dtypes.equals(FEATURES.dtypes)
    assert held[["word", "strong", "day"]].nunique().tolist() == [1, 1, 1]
    assert held["weak"].equals(FEATURES["weak"])
    assert FEATURES["strong"].nunique() == 200


def test_booleans_and_empty_columns_are_held_constant_or_left() -> None:
    frame: pd.DataFrame = pd.DataFrame({"flag": [True, True, False], "empty": [None, None, None], "count": [1, 2, 9]})
    frame["whole"] = pd.array([3, None, 5], dtype="Int64")
    frame["kind"] = pd.Categorical(["x", "y", "y"])
    frame["nested"] = [[1], [2], [3]]
    held = held_constant(frame, tuple(frame.columns))
    assert held.dtypes.equals(frame.dtypes)
    assert held["whole"].tolist() == [3, 3, 3]
    assert held["kind"].tolist() == ["x", "x", "x"]
    assert held["nested"].tolist() == [[1], [1], [1]]
    assert held["flag"].tolist() == [True, True, True]
    assert held["empty"].isna().all()
    assert held["count"].tolist() == [2, 2, 2]
