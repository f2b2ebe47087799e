"""Tables as named columns: pandas, polars, Arrow and numpy all come out alike.

A column is one of three: a numpy array of numbers or booleans, an Arrow array, or a list of Python values (where Arrow would have to
guess). Columns are named by text; a numpy array and unnamed pandas columns are named by position (``"0"``, ``"1"``, …), as
``pandas.DataFrame(array)`` does. A pandas index is no column.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlflow_privacy_gate.errors import UsageError

# What pandas calls a column of one kind of value, which Arrow reads without a guess; "mixed…" and "empty" go value by value.
_PLAIN_OBJECTS = frozenset({"string", "bytes", "boolean", "integer", "floating", "date", "decimal"})


@dataclass(frozen=True)
class Table:
    """Columns of one length by name, in the order of the names' UTF-8 bytes."""

    rows: int
    columns: dict[str, Any]

    def select(self, names: Sequence[str]) -> Table:
        """Return the table with only these columns; UsageError names those that it does not have."""
        missing = sorted(set(names) - set(self.columns))
        if missing:
            raise UsageError(f"the table has no column {', '.join(missing)}; it has {', '.join(self.columns)}")
        return _table(self.rows, [(name, self.columns[name]) for name in names])


def read_table(table: Any) -> Table:
    """Read a pandas or polars DataFrame, an Arrow Table or RecordBatch, or a 1-D, 2-D or structured numpy array.

    Nothing is copied where the bytes can be used as they are. UsageError for anything else, and for two columns of one name.
    """
    if isinstance(table, np.ndarray):
        return _from_numpy(table)
    if _is(table, "pandas", "DataFrame"):
        return _table(len(table), ((_name(label), _pandas_column(table.iloc[:, i])) for i, label in enumerate(table)))
    if _is(table, "polars", "DataFrame"):
        table = table.to_arrow()
    if _is(table, "pyarrow", "Table") or _is(table, "pyarrow", "RecordBatch"):
        return _table(table.num_rows, zip(table.schema.names, table.columns, strict=True))
    raise UsageError(
        f"expected a pandas or polars DataFrame, an Arrow table or a numpy array, got {type(table).__module__}.{type(table).__name__}"
    )


def _is(table: object, module: str, kind: str) -> bool:
    """Whether ``table`` is of that class, without importing a library that the caller has not."""
    return module in sys.modules and isinstance(table, getattr(sys.modules[module], kind, ()))


def _table(rows: int, columns: Iterable[tuple[str, Any]]) -> Table:
    named = sorted(columns, key=lambda column: column[0].encode("utf-8", "surrogatepass"))
    twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if twice:
        raise UsageError(f"the column {twice[0]!r} stands twice; rename one")
    return Table(rows, dict(named))


def _from_numpy(array: np.ndarray[Any, Any]) -> Table:
    if array.dtype.names:
        return _table(len(array), ((name, _numpy_column(array[name])) for name in array.dtype.names))
    if array.ndim == 1:
        return _table(len(array), [("0", _numpy_column(array))])
    if array.ndim == 2:
        return _table(len(array), ((str(i), _numpy_column(array[:, i])) for i in range(array.shape[1])))
    raise UsageError(f"expected a numpy array of rows and columns, got {array.ndim} dimensions")


def _numpy_column(values: np.ndarray[Any, Any]) -> Any:
    if values.ndim != 1:
        raise UsageError(f"expected one value a row and column, got an array of {values.ndim - 1} dimensions")
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist()  # None where masked
    if values.dtype.kind in "iub" or values.dtype in (np.float16, np.float32, np.float64):
        return values
    if values.dtype.kind in "mM":
        import pyarrow as pa

        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return list(values.astype(object))
    return values.tolist()


def _pandas_column(series: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iubf":
        return _numpy_column(series.to_numpy())
    if isinstance(series.dtype, pd.SparseDtype):
        return _pandas_column(series.sparse.to_dense())
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        # Arrow's own way reads Series.values, which pandas is about to change.
        naive = pa.array(series.dt.tz_convert(None).to_numpy())
        return naive.cast(pa.timestamp(naive.type.unit, "UTC"))
    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) not in _PLAIN_OBJECTS:
        return series.tolist()
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError, TypeError):
        return series.astype(object).tolist()


def _name(label: object) -> str:
    return label if isinstance(label, str) else str(label)
