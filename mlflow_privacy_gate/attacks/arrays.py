"""Arrays as a model or a frame hands them over, read as plain floating point without ever touching the caller's copy."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.errors import ObservationError

AnyFloat = npt.NDArray[np.floating[Any]]
_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_BLOCK_BYTES = 1 << 20


def as_floats(values: object, what: str) -> AnyFloat:
    """Return values as a read-only float32 or float64 array, without a copy where they already are one.

    Other numbers become float64. ObservationError where values are not numbers, or where a mask or a missing value hides some.
    """
    refuse_masked(values, what)
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        try:
            if array.dtype.kind not in "biufO":
                raise TypeError(array.dtype)
            array = array.astype(np.float64)
        except (TypeError, ValueError) as exc:
            raise ObservationError(f"{what}: expected numbers, got {type(values).__name__} of {array.dtype}") from exc
    return read_only(array)


def read_only(array: _Array) -> _Array:
    """Return a view that cannot be written through, so that frozen observations stay as they were made."""
    view = cast(_Array, array.view())
    view.flags.writeable = False
    return view


def row_blocks(shape: tuple[int, ...]) -> list[slice]:
    """Cut n rows into blocks of about a megabyte, so that temporary arrays stay in the processor's cache."""
    rows, width = shape[0], int(np.prod(shape[1:], dtype=np.int64))
    step = max(1, _BLOCK_BYTES // (8 * max(1, width)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def refuse_masked(values: object, what: str) -> None:
    """Raise ObservationError where a masked array hides a value, which numpy would quietly uncover."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = int(np.count_nonzero(np.ma.getmaskarray(values)))
        if hidden:
            raise ObservationError(f"{what}: {hidden} of {values.size} values are masked; expected a value everywhere")


def refuse_rows(bad: npt.ArrayLike, what: str, because: str) -> None:
    """Raise ObservationError naming count and first rows where ``bad`` (n,) is true anywhere."""
    bad = np.asarray(bad)
    rows = np.flatnonzero(bad)
    if rows.size:
        named = ", ".join(str(row) for row in rows[:5])
        more = ", …" if rows.size > 5 else ""
        raise ObservationError(f"{what}: {rows.size} of {bad.size} rows {because} (rows {named}{more}, counted from 0)")
