"""Labels are mapped through the model's own classes, whatever they are and however they are handed over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlflow_privacy_gate.attacks.labels import columns_of
from mlflow_privacy_gate.errors import ObservationError

PLACES = np.array([1, 0, 0, 1, 1])


@pytest.mark.parametrize(
    "classes",
    [
        [0, 1],
        [-1, 1],
        [1, -1],
        [1, 2],
        [10, 700],
        [2**53, 2**53 + 1],
        [False, True],
        ["<=50K", ">50K"],
        ["true", "false"],
        [0.5, 1.5],
        [np.str_("a"), np.str_("b")],
        [b"a", b"b"],
        [1, "one"],
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")],
    ],
    ids=str,
)
def test_each_label_finds_the_column_of_its_own_class(classes: list[Any]) -> None:
    labels = [classes[place] for place in PLACES]
    assert columns_of(labels, classes).tolist() == PLACES.tolist()
    assert columns_of(np.array(labels, dtype=object), np.array(classes, dtype=object)).tolist() == PLACES.tolist()
    assert columns_of(pd.Series(labels, index=[7, 7, 3, 1, 0]), pd.Index(classes)).tolist() == PLACES.tolist()


LABELS = np.array([5, 2, 2, 5, 9])


@pytest.mark.parametrize(
    "labels",
    [
        LABELS.tolist(),
        LABELS.astype(np.uint8),
        LABELS.astype(np.float32),
        LABELS.astype(object),
        LABELS.reshape(-1, 1),
        pd.DataFrame({"y": LABELS}),
        pd.Series(LABELS, index=[9, 8, 8, 1, 0]),
        pd.Series(LABELS, dtype="category"),
        pd.Series(LABELS).astype(pd.CategoricalDtype([9, 5, 2], ordered=True)),
        pd.Series(LABELS, dtype="Int64"),
        pd.Series(LABELS, dtype="int64[pyarrow]"),
        pd.array(LABELS.tolist(), dtype="Int32"),
        np.ma.masked_array(LABELS, mask=False),
    ],
    ids=lambda labels: f"{type(labels).__name__}-{getattr(labels, 'dtype', '')}",
)
def test_the_container_of_the_labels_changes_nothing(labels: object) -> None:
    assert columns_of(labels, [2, 5]).tolist() == [1, 0, 0, 1, -1]


@pytest.mark.parametrize(
    ("labels", "classes", "columns"),
    [
        (["1", "0"], [0, 1], [-1, -1]),
        ([1, 0], ["0", "1"], [-1, -1]),
        ([True, False], ["True", "False"], [-1, -1]),
        ([True, False], [0, 1], [1, 0]),
        ([1.0, 0.0], [False, True], [1, 0]),
        ([True, False], [1, 2], [-1, -1]),
        ([2, 1, 0], [False, True], [-1, 1, 0]),
        ([1.5, 1.0], [1, 2], [-1, 0]),
        (["a ", "A"], ["a", "b"], [-1, -1]),
    ],
)
def test_labels_are_matched_by_value_and_never_guessed(
    labels: list[Any], classes: list[Any], columns: list[int]
) -> None:
    assert columns_of(labels, classes).tolist() == columns


def test_a_list_of_numbers_and_texts_keeps_them_apart() -> None:
    assert columns_of([1, "1", "one"], np.array([1, "one"], dtype=object)).tolist() == [0, -1, 1]
    assert columns_of([[1], ["one"]], (1, "one")).tolist() == [0, 1]


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, None],
        [0.0, np.nan, 1.0],
        ["a", None, "b"],
        pd.Series([0, None, 1], dtype="Int64"),
        pd.Series(["a", None], dtype="category"),
        pd.Series(["a", pd.NA], dtype="string"),
    ],
    ids=repr,
)
def test_a_missing_label_is_an_error_that_names_its_row(labels: object) -> None:
    with pytest.raises(ObservationError, match=r"labels: 1 of \d are missing \(first at row [12]\)"):
        columns_of(labels, [0, 1])


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "expected shape"),
        (pd.DataFrame({"a": [0], "b": [1]}), [0, 1], "expected one column, got 2"),
        (0, [0, 1], "expected shape"),
        ([0, 1], [0, 1, 1], "stand more than once"),
        ([0, 1], [0, np.nan], "classes: 1 of 2 are missing"),
        (np.ma.masked_array([0, 1], mask=[True, False]), [0, 1], "1 of 2 values are masked"),
    ],
)
def test_labels_and_classes_of_another_shape_are_refused(labels: object, classes: object, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        columns_of(labels, classes)
