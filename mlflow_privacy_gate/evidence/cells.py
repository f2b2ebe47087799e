"""Cells: a column's values as fixed-width words of bytes, equal where the values are equal, whatever type carried them.

A column has one kind, found from its values:

============  =======================================================================  ======================================
kind          values                                                                   a cell's bytes
============  =======================================================================  ======================================
``null``      nulls only (None, NaN, NaT, NA are one null)                             none
``number``    integers, floats, decimals that binary64 holds exactly                   8: binary64, -0 as 0, null as one NaN
``boolean``   true, false                                                              8: 0, 1, null as 2
``text``      strings, categories of strings                                           32: sha256 of the UTF-8
``binary``    bytes                                                                    32: sha256 of the bytes
``datetime``  dates, and times without timezone                                        8: int64 ns since 1970
``instant``   times with a timezone                                                    8: int64 ns since 1970 UTC
``time``      times of day                                                             8: int64 ns since midnight
``duration``  durations                                                                8: int64 ns
``mixed``     all else: several kinds in one column, numbers that binary64 cannot      32: sha256 of the tagged text below
              hold, times that int64 ns cannot hold, lists, structs
============  =======================================================================  ======================================

All little-endian. Null is 32 zero bytes in the wide kinds and the smallest int64 in those of time. The NaN is ``0x7ff8000000000000``.

Tagged text: :mod:`mlflow_privacy_gate.evidence.values`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.values import NULL_CELL, Kind, Value, is_binary64, parse_value, tagged_text

Words: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = "slice | NDArray[np.int64]"

_NAN_BITS = np.uint64(0x7FF8000000000000)
_TIME_NULL = np.int64(-(2**63))
_EXACT_INTEGER = 2**53
_NS_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


_TIMES = frozenset({Kind.DATETIME, Kind.INSTANT, Kind.TIME, Kind.DURATION})
_WIDTH = dict.fromkeys(Kind, 1) | {Kind.NULL: 0, Kind.TEXT: 4, Kind.BINARY: 4, Kind.MIXED: 4}


class Cells(Protocol):
    """One column, ready to be read as words."""

    @property
    def kind(self) -> Kind:
        """What the column holds."""

    def words(self, rows: Rows) -> Words:
        """Return the cells of those rows, (len(rows), width) little-endian 64-bit words."""

    def tagged(self) -> Iterator[bytes | None]:
        """Give every value as its tagged text, None for null."""


def join_kinds(kinds: Iterable[Kind]) -> Kind:
    """Return the kind under which columns of these kinds compare: theirs if they agree (null agrees with all), else mixed."""
    stated = {kind for kind in kinds if kind is not Kind.NULL}
    if not stated:
        return Kind.NULL
    return stated.pop() if len(stated) == 1 else Kind.MIXED


def width(kind: Kind) -> int:
    """Return how many 64-bit words a cell of that kind has."""
    return _WIDTH[kind]


def read_cells(name: str, column: Any) -> Cells:
    """Read a column of :func:`mlflow_privacy_gate.evidence.tables.read_table`; UsageError for a type that has no cells."""
    try:
        if isinstance(column, np.ndarray):
            return _numpy_cells(column)
        if isinstance(column, list):
            return _python_cells(column)
        return _arrow_cells(_one_array(column))
    except UsageError as exc:
        raise UsageError(f"column {name!r}: {exc.message}") from exc


def as_kind(cells: Cells, kind: Kind) -> Cells:
    """Return the same column under a kind that :func:`join_kinds` gave for it and others."""
    if cells.kind is kind:
        return cells
    if isinstance(cells, _Nulls):
        return _Nulls(kind, cells.count)
    return _hashed(Kind.MIXED, cells.tagged())


@dataclass(frozen=True)
class _Nulls:
    """A column without any value."""

    kind: Kind
    count: int

    def words(self, rows: Rows) -> Words:
        count = len(range(*rows.indices(self.count))) if isinstance(rows, slice) else len(rows)
        null = {Kind.NUMBER: _NAN_BITS, Kind.BOOLEAN: np.uint64(2)}.get(self.kind, _TIME_NULL.view(np.uint64))
        return np.full((count, width(self.kind)), null if width(self.kind) == 1 else 0, dtype="<u8")

    def tagged(self) -> Iterator[bytes | None]:
        return iter([None] * self.count)


@dataclass(frozen=True)
class _Numbers:
    """Numbers that binary64 holds exactly, in whatever numpy type they came; NaN is null."""

    values: NDArray[Any]
    kind: Kind = Kind.NUMBER

    def words(self, rows: Rows) -> Words:
        numbers = self.values[rows].astype("<f8")
        numbers += 0.0  # turns -0 into 0
        words: Words = numbers.view("<u8")
        words[np.isnan(numbers)] = _NAN_BITS
        return words[:, np.newaxis]

    def tagged(self) -> Iterator[bytes | None]:
        return (None if value != value else _tagged(Kind.NUMBER, value) for value in self.values.tolist())


@dataclass(frozen=True)
class _Booleans:
    """0, 1, and 2 for null."""

    values: NDArray[np.uint8]
    kind: Kind = Kind.BOOLEAN

    def words(self, rows: Rows) -> Words:
        return self.values[rows].astype("<u8")[:, np.newaxis]

    def tagged(self) -> Iterator[bytes | None]:
        return (None if value == 2 else _tagged(Kind.BOOLEAN, bool(value)) for value in self.values.tolist())


@dataclass(frozen=True)
class _Times:
    """Nanoseconds; the smallest int64 is null."""

    kind: Kind
    values: NDArray[np.int64]

    def words(self, rows: Rows) -> Words:
        return self.values[rows].astype("<i8").view("<u8")[:, np.newaxis]

    def tagged(self) -> Iterator[bytes | None]:
        return (None if value == _TIME_NULL else _tagged(self.kind, value) for value in self.values.tolist())


@dataclass(frozen=True)
class _Hashed:
    """A sha256 per distinct value, and each row's place among them (-1: null, the last line of ``hashes``)."""

    kind: Kind
    places: NDArray[np.integer[Any]]
    hashes: Words
    distinct: Callable[[], Iterable[bytes]]

    def words(self, rows: Rows) -> Words:
        words: Words = self.hashes[self.places[rows]]
        return words

    def tagged(self) -> Iterator[bytes | None]:
        distinct = [_tagged(self.kind, value) for value in self.distinct()]
        return (None if place < 0 else distinct[place] for place in self.places.tolist())


def _hash_table(digests: bytes) -> Words:
    return np.frombuffer(digests + NULL_CELL, dtype="<u8").reshape(-1, 4)


def _hashed(kind: Kind, values: Iterable[bytes | None]) -> _Hashed:
    places_of: dict[bytes, int] = {}
    places = [-1 if value is None else places_of.setdefault(value, len(places_of)) for value in values]
    digests = b"".join(hashlib.sha256(value).digest() for value in places_of)
    return _Hashed(kind, np.array(places, dtype=np.int64), _hash_table(digests), lambda: places_of)


def _numpy_cells(values: NDArray[Any]) -> Cells:
    if values.dtype.kind == "b" and len(values):
        return _Booleans(values.view(np.uint8))
    return _number_cells(values)


def _number_cells(values: NDArray[Any]) -> Cells:
    if len(values) == 0 or (values.dtype.kind == "f" and np.isnan(values[0]) and np.isnan(values).all()):
        return _Nulls(Kind.NULL, len(values))
    if values.dtype.kind != "f" and not _fits_binary64(values):
        return _hashed(Kind.MIXED, (_tagged(Kind.NUMBER, value) for value in values.tolist()))
    return _Numbers(values)


def _fits_binary64(integers: NDArray[Any]) -> bool:
    """Whether every integer is exactly a binary64: at most 53 bits from its highest set bit to its lowest."""
    if integers.dtype.itemsize <= 4 or (integers.max() <= _EXACT_INTEGER and integers.min() >= -_EXACT_INTEGER):
        return True
    bits = integers.astype(np.uint64)  # two's complement
    magnitude = np.where(integers < 0, np.uint64(0) - bits, bits)
    lowest = np.maximum(magnitude & (np.uint64(0) - magnitude), np.uint64(1))
    return bool((magnitude // lowest <= np.uint64(_EXACT_INTEGER)).all())


def _time_cells(kind: Kind, values: NDArray[np.int64], null: NDArray[np.bool_], unit_ns: int) -> Cells:
    limit = (2**63 - 1) // unit_ns
    valid = values[~null]
    if len(valid) and (valid.max() > limit or valid.min() < -limit):
        numbers = (
            None if is_null else value * unit_ns for value, is_null in zip(values.tolist(), null.tolist(), strict=True)
        )
        return _hashed(Kind.MIXED, (None if ns is None else _tagged(kind, ns) for ns in numbers))
    return _Times(kind, np.where(null, _TIME_NULL, np.where(null, 0, values) * unit_ns))


def _one_array(column: Any) -> Any:
    """Make one Arrow array of a column that may come in chunks."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], type=column.type)
    if pa.types.is_string(column.type):
        column = column.cast(pa.large_string())  # the chunks together may pass 2 GB
    elif pa.types.is_binary(column.type):
        column = column.cast(pa.large_binary())
    return pa.concat_arrays(column.unify_dictionaries().chunks)


def _arrow_cells(array: Any) -> Cells:
    from pyarrow import types

    kind = array.type
    if array.null_count == len(array):
        return _Nulls(Kind.NULL, len(array))
    if types.is_dictionary(kind):
        texts = _is_text(kind.value_type) and array.dictionary.null_count == 0
        return _arrow_texts(array) if texts else _arrow_cells(array.dictionary_decode())
    if _is_text(kind):
        return _arrow_texts(array.dictionary_encode())
    if types.is_integer(kind):
        return _arrow_integers(array)
    if types.is_floating(kind):
        numbers = array.cast("float64")
        return _number_cells((numbers.fill_null(float("nan")) if numbers.null_count else numbers).to_numpy())
    if types.is_boolean(kind):
        return _Booleans(array.cast("uint8").fill_null(2).to_numpy(zero_copy_only=False))
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _arrow_times(array)
    if types.is_decimal(kind) or types.is_nested(kind):
        return _python_cells(array.to_pylist())
    raise UsageError(f"values of the Arrow type {kind} have no place in a row-set digest; convert the column")


def _is_text(kind: Any) -> bool:
    return _is_one_of(kind, "is_string", "is_large_string", "is_string_view") or _is_binary(kind)


def _is_binary(kind: Any) -> bool:
    return _is_one_of(kind, "is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view")


def _is_one_of(kind: Any, *names: str) -> bool:
    """Ask Arrow by name: the views came with Arrow 16, and where they are missing no column has that type."""
    from pyarrow import types

    return any(hasattr(types, name) and getattr(types, name)(kind) for name in names)


def _arrow_texts(array: Any) -> Cells:
    import pyarrow as pa

    kind = Kind.BINARY if _is_binary(array.type.value_type) else Kind.TEXT
    distinct = array.dictionary.cast(pa.large_binary())
    _, offsets, content = distinct.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[distinct.offset : distinct.offset + len(distinct) + 1].tolist()
    view = memoryview(content if content is not None else b"")
    digests = b"".join(hashlib.sha256(view[start:end]).digest() for start, end in pairwise(ends))
    places = array.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return _Hashed(kind, places, _hash_table(digests), distinct.to_pylist)


def _arrow_integers(array: Any) -> Cells:
    filled = array.fill_null(0).to_numpy(zero_copy_only=False)
    if array.null_count == 0:
        return _number_cells(filled)
    if not _fits_binary64(filled):
        return _python_cells(array.to_pylist())
    numbers = filled.astype(np.float64)
    numbers[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return _Numbers(numbers)


def _arrow_times(array: Any) -> Cells:
    from pyarrow import types

    kind = array.type
    null = array.is_null().to_numpy(zero_copy_only=False)
    narrow = types.is_date32(kind) or types.is_time32(kind)
    values = (array.cast("int32") if narrow else array).cast("int64").fill_null(0).to_numpy(zero_copy_only=False)
    if types.is_date32(kind):
        return _time_cells(Kind.DATETIME, values, null, 86_400 * 10**9)
    if types.is_date64(kind):
        return _time_cells(Kind.DATETIME, values, null, _NS_PER_UNIT["ms"])
    if types.is_timestamp(kind):
        word = Kind.DATETIME if kind.tz is None else Kind.INSTANT
    else:
        word = Kind.DURATION if types.is_duration(kind) else Kind.TIME
    return _time_cells(word, values, null, _NS_PER_UNIT[kind.unit])


def _python_cells(values: list[Any]) -> Cells:
    parsed = [parse_value(value) for value in values]
    kind = join_kinds({found.kind for found in parsed if found is not None})
    contents: list[Any] = [None if found is None else found.content for found in parsed]
    if kind is Kind.NULL:
        return _Nulls(Kind.NULL, len(values))
    if kind in (Kind.TEXT, Kind.BINARY):
        return _hashed(kind, contents)
    if kind is Kind.BOOLEAN:
        return _Booleans(np.array([2 if content is None else content for content in contents], dtype=np.uint8))
    if kind is Kind.NUMBER and all(content is None or is_binary64(content) for content in contents):
        return _Numbers(np.array([np.nan if content is None else float(content) for content in contents]))
    if kind in _TIMES and all(content is None or abs(content) < 2**63 for content in contents):
        return _Times(
            kind, np.array([_TIME_NULL if content is None else content for content in contents], dtype=np.int64)
        )
    return _hashed(Kind.MIXED, (None if found is None else _tagged(found.kind, found.content) for found in parsed))


def _tagged(kind: Kind, content: Any) -> bytes:
    return tagged_text(Value(kind, content))
