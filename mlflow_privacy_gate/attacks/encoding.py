"""Columns of any type as numbers, so that two frames can be compared column by column and by a tree.

=============  ======================================  ==========================================================
kind           column                                  numbers
=============  ======================================  ==========================================================
time           datetimes, dates, durations, ISO 8601   nanoseconds
number         numbers, booleans                       the value, cut to what a float32 holds
category       up to 200 different values              rank of the value in alphabetical order, unordered in meaning
text           more different values than that         rank of the value in alphabetical order
=============  ======================================  ==========================================================

A missing value is NaN in every kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks._interface import FloatArray

MOST_CATEGORIES = 200
_LARGEST = float(np.finfo(np.float32).max)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """One column: ``name``, ``kind`` as in the table above, ``numbers`` (n,) float64 with NaN where missing."""

    name: str
    kind: str
    numbers: FloatArray


def encode(name: object, column: pd.Series[Any]) -> EncodedColumn:
    """Turn a column into numbers; the same value gives the same number whatever the order of the rows."""
    column = column.infer_objects()
    times = _times(column)
    if times is not None:
        return EncodedColumn(str(name), "time", times)
    if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return EncodedColumn(str(name), "number", np.clip(numbers, -_LARGEST, _LARGEST))
    missing = column.isna().to_numpy(dtype=np.bool_)
    words = np.array([str(value) for value in column[~missing]], dtype=object)
    different, ranks = np.unique(words, return_inverse=True)
    numbers = np.full(len(column), np.nan)
    numbers[~missing] = ranks
    return EncodedColumn(str(name), "category" if different.size <= MOST_CATEGORIES else "text", numbers)


def _times(column: pd.Series[Any]) -> FloatArray | None:
    """Return a column of times in nanoseconds, or None where it holds anything else."""
    dtype, known = column.dtype, column.dropna()
    if pd.api.types.is_timedelta64_dtype(dtype):
        return _nanoseconds(column)
    if isinstance(dtype, pd.PeriodDtype):
        return _nanoseconds(column.dt.to_timestamp())
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return _nanoseconds(pd.to_datetime(column, utc=True))
    if known.empty or not (pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)):
        return None
    like_dates = pd.api.types.infer_dtype(known) in ("date", "datetime", "datetime64")
    if not like_dates and not all(isinstance(text, str) and _ISO_DATE.match(text) for text in known):
        return None
    parsed = pd.to_datetime(column, utc=True, errors="coerce", format="ISO8601" if not like_dates else None)
    return _nanoseconds(parsed) if parsed.notna().sum() == len(known) else None


def _nanoseconds(times: pd.Series[Any]) -> FloatArray:
    unit = "timedelta64[ns]" if pd.api.types.is_timedelta64_dtype(times.dtype) else "datetime64[ns]"
    values = times.to_numpy(dtype=unit)
    return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
