"""Any table a user may hold, as a pandas frame with plain text column names."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.splits.columns import with_plain_integers


def as_frame(table: object, *, what: str) -> pd.DataFrame:
    """Return a pandas, polars or Arrow table as a pandas frame; UsageError for anything else or for columns that share a name.

    The rows and their order stay; an index is not a column and is dropped. Column names become text, as files hold them.
    """
    frame: pd.DataFrame = _pandas(table, what)
    if frame.columns.nlevels != 1:
        raise UsageError(f"{what}: expected one level of column names, got {frame.columns.nlevels}; flatten them first")
    frame.index = pd.RangeIndex(len(frame))
    frame.columns = pd.Index([str(name) for name in frame.columns])
    twice = sorted(frame.columns[frame.columns.duplicated()].unique())
    if twice:
        raise UsageError(f"{what}: columns {twice[:5]} stand more than once; give every column its own name")
    return with_plain_integers(frame)


def _pandas(table: object, what: str) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        shallow: pd.DataFrame = table.copy(deep=False)
        return shallow
    if hasattr(table, "collect") and hasattr(table, "lazy"):  # a lazy polars frame
        table = table.collect()
    if hasattr(table, "to_arrow"):  # polars
        table = table.to_arrow()
    if hasattr(table, "column_names") and hasattr(table, "to_pandas"):  # Arrow
        return arrow_to_pandas(table)
    raise UsageError(f"{what}: expected a pandas, polars or Arrow table with named columns, got {type(table).__name__}")


def arrow_to_pandas(table: Any) -> pd.DataFrame:
    """Return an Arrow table as a pandas frame; whole numbers with gaps keep every digit (as nullable integers)."""
    import pyarrow as pa

    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}.get)
    return frame
