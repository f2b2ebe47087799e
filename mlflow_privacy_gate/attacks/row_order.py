"""An order of rows that comes from their content and a seed, so that no answer depends on how a file happened to be sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_privacy_gate.attacks._interface import IntArray

_Keys: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowOrder:
    """``rows`` (k,): positions in the frame, in the seeded order; ``distinct`` (k,): how many different rows came before each."""

    rows: IntArray
    distinct: IntArray


def seeded_order(frame: pd.DataFrame, salt: int, most_rows: int) -> RowOrder:
    """Return at most ``most_rows`` rows of a frame in an order that depends on their content and the salt alone.

    Cutting the order short draws a sample. Rows that are equal stand beside each other.
    """
    keys = _scattered(pd.util.hash_pandas_object(_plain(frame), index=False).to_numpy(np.uint64), salt)
    rows = np.argsort(keys, kind="stable")[:most_rows].astype(np.intp)
    ordered = keys[rows]
    distinct = np.concatenate(([0], np.cumsum(ordered[1:] != ordered[:-1])))
    return RowOrder(rows, distinct.astype(np.intp))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with nested values, which have no hash, written out as text."""
    nested = [
        position
        for position, dtype in enumerate(frame.dtypes)
        if pd.api.types.is_object_dtype(dtype)
        and frame.iloc[:, position].map(lambda value: isinstance(value, (list, dict, set, np.ndarray))).any()
    ]
    if not nested:
        return frame
    plain: pd.DataFrame = frame.copy(deep=False)
    for position in nested:
        plain.isetitem(position, frame.iloc[:, position].map(str).to_numpy())
    return plain


def _scattered(hashes: _Keys, salt: int) -> _Keys:
    """Mix the salt into 64-bit hashes by the finaliser of SplitMix64 (Steele, Lea and Flood 2014), which maps no two hashes to one."""
    keys: _Keys = hashes ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(keys ^ (keys >> np.uint64(31)), dtype=np.uint64)
