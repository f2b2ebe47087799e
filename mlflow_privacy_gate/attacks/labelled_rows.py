"""Features and label of the rows under test as one table of numbers, for attackers that learn from rows without asking the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks._interface import FloatArray, IntArray
from mlflow_privacy_gate.attacks.encoding import MOST_CATEGORIES, encode
from mlflow_privacy_gate.errors import ObservationError


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """n rows as numbers: ``table`` (n, d + 1) float64, NaN where missing, the label last.

    ``categories`` (d + 1,): which columns are unordered.
    """

    table: FloatArray
    categories: tuple[bool, ...]

    def order(self, *then_by: FloatArray) -> IntArray:
        """Give an order of rows that comes from their content alone, rows that are equal beside each other, then by other values (n,)."""
        return np.lexsort((*then_by, *self.table.T))

    def groups(self, order: IntArray) -> IntArray:
        """Number the different rows along an order: equal rows have one number."""
        ordered = self.table[order]
        before, after = ordered[:-1], ordered[1:]
        differs = ((before != after) & ~(np.isnan(before) & np.isnan(after))).any(axis=1)
        return np.concatenate(([0], np.cumsum(differs))).astype(np.intp)


def labelled_rows(features: object, true_column: IntArray) -> LabelledRows:
    """Put features (n, d) of any types, and each row's label as its column among the classes (n,), into one table.

    ObservationError where there are not as many rows as labels.
    """
    frame = features if isinstance(features, pd.DataFrame) else pd.DataFrame(np.asarray(features))
    if len(frame) != true_column.size:
        raise ObservationError(f"features: {len(frame)} rows for {true_column.size} labels")
    columns = [encode(name, frame.iloc[:, position]) for position, name in enumerate(frame.columns)]
    label = true_column.astype(np.float64)
    categories = (*(column.kind == "category" for column in columns), bool((label < MOST_CATEGORIES).all()))
    return LabelledRows(np.column_stack([*(column.numbers for column in columns), label]), categories)
