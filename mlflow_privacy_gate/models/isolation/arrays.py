"""Arrays on the wire: raw little-endian numbers, described in a frame's header by name, dtype and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.models.isolation.frames import Buffer, Frame, NoFrame

# Truth values travel as bytes, so that a byte that is neither 0 nor 1 is seen.
_DTYPES: Mapping[str, npt.DTypeLike] = {"<f8": np.float64, "<f4": np.float32, "<i8": np.int64, "|b1": np.uint8}
_MOST_DIMENSIONS = 3


def described(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[list[dict[str, Any]], list[Buffer]]:
    """Return the header's description of some arrays and their bytes, in one order; dtypes are those of ``_DTYPES``."""
    words: list[dict[str, Any]] = []
    bodies: list[Buffer] = []
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        if plain.dtype.str not in _DTYPES:
            raise NoFrame(f"{name} of {plain.dtype}; expected one of {', '.join(_DTYPES)}")
        words.append({"name": name, "dtype": plain.dtype.str, "shape": list(plain.shape)})
        bodies.append(plain.reshape(-1).view(np.uint8).data if plain.size else b"")
    return words, bodies


def arrays_of(frame: Frame) -> dict[str, npt.NDArray[Any]]:
    """Read a frame's arrays by name, read-only; NoFrame where description and bytes do not fit each other."""
    words, body = frame.header.get("arrays"), memoryview(frame.body).cast("B")
    if not isinstance(words, list):
        raise NoFrame("a header that lists no arrays")
    found: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for word in words:
        name, dtype, shape = _word(word)
        end = start + np.dtype(_DTYPES[dtype]).itemsize * math.prod(shape)
        if name in found or end > body.nbytes:
            raise NoFrame(f"array {name!r} stands twice or is longer than the body")
        found[name] = _array(body[start:end], dtype, shape, name)
        start = end
    if start != body.nbytes:
        raise NoFrame(f"{body.nbytes - start:,} bytes that no array claims")
    return found


def _word(word: object) -> tuple[str, str, Sequence[int]]:
    if not isinstance(word, dict) or set(word) != {"name", "dtype", "shape"}:
        raise NoFrame("an array without name, dtype and shape")
    name, dtype, shape = word["name"], word["dtype"], word["shape"]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in _DTYPES:
        raise NoFrame("an array of a name or dtype that is not known here")
    # bool is an int to Python
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise NoFrame(f"array {name!r} of a shape that cannot be")
    return name, dtype, shape


def _array(raw: memoryview, dtype: str, shape: Sequence[int], name: str) -> npt.NDArray[Any]:
    array = np.frombuffer(raw, dtype=_DTYPES[dtype]).reshape(shape)
    if dtype == "|b1":
        if array.size and array.max() > 1:
            raise NoFrame(f"array {name!r} with truth values other than 0 and 1")
        array = array.view(np.bool_)
    array.flags.writeable = False
    return array
