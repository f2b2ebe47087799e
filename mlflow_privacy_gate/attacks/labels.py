"""Labels of a split, mapped to the columns of a model's answer through the model's own classes and nothing else.

Labels are matched to ``classes`` by value: 1.0 is the class 1, True is the class 1 where the classes are 0 and 1, and "1" is not the
class 1. Reading a column by the label's own value instead turns a leak into a pass for labels such as -1/1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks._interface import IntArray
from mlflow_privacy_gate.attacks.arrays import refuse_masked
from mlflow_privacy_gate.errors import ObservationError

UNKNOWN = -1


def columns_of(labels: object, classes: object, *, what: str = "labels") -> IntArray:
    """Return for each label its column in ``classes``, or -1 where the model does not know that label.

    ``labels``: (n,) or (n, 1) of any type (array, list, Series, one-column frame, categorical, nullable). ``classes``: (C,), no repeats.
    ObservationError where a label is missing, the shape is another, or a class stands twice.
    """
    values = label_values(labels, what=what)
    known = _classes_index(classes)
    left, right = _comparable(values, known)
    return np.asarray(right.get_indexer(left), dtype=np.intp)


def label_values(labels: object, *, what: str = "labels") -> pd.Index[Any]:
    """Return labels of any accepted shape and type as a flat index without missing values."""
    values = _flat(labels, what)
    missing = np.flatnonzero(np.asarray(values.isna()))
    if missing.size:
        raise ObservationError(
            f"{what}: {missing.size} of {len(values)} are missing (first at row {missing[0]}); "
            "a row without a label cannot be judged: drop such rows before the split is logged"
        )
    return values


def _flat(labels: object, what: str) -> pd.Index[Any]:
    if isinstance(labels, pd.DataFrame):
        if labels.shape[1] != 1:
            raise ObservationError(f"{what}: expected one column, got {labels.shape[1]}: {list(labels.columns)[:5]}")
        labels = labels.iloc[:, 0]
    refuse_masked(labels, what)
    if not isinstance(labels, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        # numpy would write the labels of a list that holds numbers and texts as texts
        labels = np.asarray(labels, dtype=object if isinstance(labels, (list, tuple)) else None)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise ObservationError(f"{what}: expected shape (n,) or (n, 1), got {labels.shape}")
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = np.asarray(labels)
    values: pd.Index[Any] = pd.Index(labels).infer_objects(copy=False)
    return values


def _classes_index(classes: object) -> pd.Index[Any]:
    known = label_values(classes, what="classes")
    if not known.is_unique:
        raise ObservationError(f"classes: {list(known[known.duplicated()][:5])} stand more than once")
    return known


def _comparable(values: pd.Index[Any], known: pd.Index[Any]) -> tuple[pd.Index[Any], pd.Index[Any]]:
    """Bring labels and classes to types that pandas compares by value; booleans equal numbers only among 0 and 1."""
    value_is_bool, known_is_bool = (pd.api.types.is_bool_dtype(index.dtype) for index in (values, known))
    numeric = pd.api.types.is_numeric_dtype
    if value_is_bool and not known_is_bool and numeric(known.dtype) and set(known.tolist()) <= {0, 1}:
        values = values.astype("int64")
    elif known_is_bool and not value_is_bool and numeric(values.dtype):
        known = known.astype("int64")
    if not numeric(values.dtype) or not numeric(known.dtype):
        return values.astype(object), known.astype(object)
    return values, known
