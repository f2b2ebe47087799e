"""Asking a model about many rows: fixed chunks of rows over threads, each chunk computed as on one core.

Chunks depend on the number of rows and not on that of threads, so neither do the answers. They are large, because a forest's trees are
fetched from memory anew for each, and frames of numbers are laid out row by row, which is how a tree reads them. A forest that spreads
its trees over threads instead adds them up in whatever order they come, and its last bits change from run to run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pandas as pd

LEAST_ROWS, MOST_ROWS = 1 << 16, 1 << 18


def in_chunks(ask: Callable[[Any], Any], rows: Any, *, threads: int | None = None) -> np.ndarray[Any, Any]:
    """Return what ``ask`` answers for all n ``rows`` (frame or array), joined along the rows; ``threads`` defaults to the cores."""
    size = min(max(math.ceil(len(rows) / 4), LEAST_ROWS), MOST_ROWS)
    starts = range(0, len(rows), size)
    if len(starts) <= 1:
        return np.asarray(_alone(ask, rows))
    with ThreadPoolExecutor(max_workers=threads or os.cpu_count()) as pool:
        parts = list(pool.map(lambda start: _alone(ask, _rows(rows, slice(start, start + size))), starts))
    return np.concatenate([np.asarray(part) for part in parts])


def _alone(ask: Callable[[Any], Any], rows: Any) -> Any:
    # joblib's settings hold for the thread that makes them.
    with joblib.parallel_config(backend="sequential"):
        return ask(_row_by_row(rows))


def _row_by_row(rows: Any) -> Any:
    """Lay out a frame whose columns all are of one type of number row by row; anything else stays as it is."""
    if not isinstance(rows, pd.DataFrame) or rows.empty or rows.dtypes.nunique() != 1:
        return rows
    if not isinstance(rows.dtypes.iloc[0], np.dtype) or rows.dtypes.iloc[0].kind not in "fiu":
        return rows
    values = np.ascontiguousarray(rows.to_numpy(copy=False))
    return pd.DataFrame(values, index=rows.index, columns=rows.columns, copy=False)


def _rows(rows: Any, chunk: slice) -> Any:
    return rows.iloc[chunk] if isinstance(rows, pd.DataFrame) else rows[chunk]
