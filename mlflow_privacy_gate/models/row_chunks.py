"""Asking a model about many rows: fixed chunks of rows over threads, each chunk computed as on one core.

The chunks do not depend on the number of threads, so neither do the answers. A forest that spreads its trees over threads instead
adds them up in whatever order they come, and its last bits change from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pandas as pd

CHUNK_ROWS = 1 << 16


def in_chunks(ask: Callable[[Any], Any], rows: Any, *, threads: int | None = None) -> np.ndarray[Any, Any]:
    """Return what ``ask`` answers for all n ``rows`` (frame or array), joined along the rows; ``threads`` defaults to the cores."""
    starts = range(0, len(rows), CHUNK_ROWS)
    if len(starts) <= 1:
        return np.asarray(_alone(ask, rows))
    with ThreadPoolExecutor(max_workers=threads or os.cpu_count()) as pool:
        parts = list(pool.map(lambda start: _alone(ask, _rows(rows, start)), starts))
    return np.concatenate([np.asarray(part) for part in parts])


def _alone(ask: Callable[[Any], Any], rows: Any) -> Any:
    # joblib's settings hold for the thread that makes them.
    with joblib.parallel_config(backend="sequential"):
        return ask(rows)


def _rows(rows: Any, start: int) -> Any:
    chunk = slice(start, start + CHUNK_ROWS)
    return rows.iloc[chunk] if isinstance(rows, pd.DataFrame) else rows[chunk]
