"""Rows on their way to a model's process, as Arrow IPC; what arrives is what was sent, or nothing is.

A column of mixed objects, or one whose missing values Arrow would change, would give the model other rows than it sees in-process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_object_dtype

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.columns import laid_out
from mlflow_privacy_gate.models.isolation.frames import Buffer

_NONE, _NAN, _NA = "none", "nan", "NA"
_MISSING: Mapping[str, Any] = {_NONE: None, _NAN: float("nan"), _NA: pd.NA}
_WAY_OUT = 'give the column one plain type, or score in-process (`--in-process`, `isolation="in-process"`)'


def sent(frame: pd.DataFrame) -> tuple[dict[str, str], Buffer]:
    """Return a frame (n, d) as Arrow IPC bytes, with its object columns by position and how each writes a missing value.

    ModelUnusable names the first column that would arrive changed.
    """
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    objects = {str(at): _missing(column) for at, column in enumerate(columns) if is_object_dtype(column.dtype)}
    try:
        table = pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise ModelUnusable(f"the rows cannot be handed to the model's process: {exc}; {_WAY_OUT}") from exc
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    raw = memoryview(sink.getvalue())
    _refuse_changes(frame, received(raw, objects))
    return objects, raw


def received(raw: Buffer, objects: Mapping[str, str]) -> pd.DataFrame:
    """Return the frame that :func:`sent` was given."""
    table = pa.ipc.open_stream(pa.py_buffer(raw)).read_all()
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    if not objects:
        return frame
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    for position, missing in objects.items():
        column = columns[int(position)]
        values = column.to_numpy(dtype=object, copy=True)
        values[column.isna().to_numpy()] = _MISSING[missing]
        columns[int(position)] = pd.Series(values, index=frame.index, dtype=object)
    return laid_out(columns, frame)


def _missing(column: pd.Series[Any]) -> str:
    """Say how an object column writes its missing values; more than one way is found by comparing."""
    gaps = column[column.isna()]
    if gaps.empty or gaps.iloc[0] is None:
        return _NONE
    return _NA if gaps.iloc[0] is pd.NA else _NAN


def _refuse_changes(frame: pd.DataFrame, back: pd.DataFrame) -> None:
    if list(back.columns) != list(frame.columns) or not back.index.equals(frame.index):
        raise ModelUnusable(f"the rows' column names or index cannot be handed to the model's process; {_WAY_OUT}")
    for at, name in enumerate(frame.columns):
        before, after = frame.iloc[:, at], back.iloc[:, at]
        same = before.dtype == after.dtype and before.equals(after)
        if same and is_object_dtype(before.dtype):
            same = all(type(one) is type(other) for one, other in zip(before, after, strict=True))
        if not same:
            raise ModelUnusable(
                f"column {name!r} ({before.dtype}) cannot be handed to the model's process unchanged; {_WAY_OUT}"
            )
