"""Single values by value: what a cell of no uniform column is, as text that two equal values share and two different ones never do.

Tagged text: ``number:`` and the exact decimal text (no exponent, no trailing zeros; ``Infinity``, ``-Infinity``); ``boolean:true`` or
``boolean:false``; ``text:`` and UTF-8; ``binary:`` and the bytes; ``datetime:``, ``instant:``, ``time:``, ``duration:`` and the
nanoseconds as decimal text; ``list:`` and its items' cells; ``struct:`` and, sorted by name, the sha256 of each name followed by its
cell. A cell is the sha256 of the tagged text, or 32 zero bytes for null.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.vocabulary import StrEnum

NULL_CELL = bytes(32)
_EPOCH = dt.datetime(1970, 1, 1)
_UNITS_NS = {
    "W": 604_800 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}


class Kind(StrEnum):
    """What a value or a column is, as it stands in the row-set header."""

    NULL = "null"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    BINARY = "binary"
    DATETIME = "datetime"
    INSTANT = "instant"
    TIME = "time"
    DURATION = "duration"
    MIXED = "mixed"


@dataclass(frozen=True)
class Value:
    """A value that is not null.

    ``content`` is an int, float or Decimal (number), a bool, bytes (text as UTF-8, binary), an int of nanoseconds (the four kinds of
    time), or the finished tagged text (mixed: a list or a struct).
    """

    kind: Kind
    content: Any


def parse_value(value: object) -> Value | None:
    """Return what ``value`` is, None for every null (None, NaN, NaT, NA); UsageError for a type that has no place in a table."""
    if isinstance(value, np.generic):
        return _numpy_value(value)
    if isinstance(value, list | tuple | np.ndarray):
        return Value(Kind.MIXED, b"list:" + b"".join(_cell(item) for item in value))
    if isinstance(value, Mapping):
        return Value(Kind.MIXED, b"struct:" + _struct(value))
    if _is_null(value):
        return None
    if isinstance(value, bool):
        return Value(Kind.BOOLEAN, value)
    if isinstance(value, int | float | Decimal):
        return Value(Kind.NUMBER, value)
    if isinstance(value, str):
        return Value(Kind.TEXT, value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes | bytearray | memoryview):
        return Value(Kind.BINARY, bytes(value))
    return _time_value(value)


def tagged_text(value: Value) -> bytes:
    """Return the tagged text of a value."""
    if value.kind is Kind.MIXED:
        assert isinstance(value.content, bytes)
        return value.content
    if isinstance(value.content, bytes):
        return value.kind.encode("ascii") + b":" + value.content
    text = ("true" if value.content else "false") if isinstance(value.content, bool) else _decimal_text(value.content)
    return f"{value.kind}:{text}".encode("ascii")


def is_binary64(number: float | Decimal) -> bool:
    """Whether a binary64 holds exactly this number (an int, float or Decimal)."""
    if isinstance(number, float):
        return True
    try:
        nearest = float(number)
    except OverflowError:
        return False
    return (Decimal(nearest) if isinstance(number, Decimal) else nearest) == number


def _decimal_text(number: float | Decimal) -> str:
    text = format(Decimal(number), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _cell(value: object) -> bytes:
    parsed = parse_value(value)
    return NULL_CELL if parsed is None else hashlib.sha256(tagged_text(parsed)).digest()


def _struct(value: Mapping[Any, Any]) -> bytes:
    names = sorted((str(name).encode("utf-8", "surrogatepass"), name) for name in value)
    return b"".join(hashlib.sha256(encoded).digest() + _cell(value[name]) for encoded, name in names)


def _is_null(value: object) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA cannot be compared
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | dt.datetime | dt.timedelta) and value != value


def _numpy_value(value: np.generic) -> Value | None:
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        unit, count = np.datetime_data(value.dtype)
        if unit not in _UNITS_NS:
            raise UsageError(
                f"times in units of {unit!r} have no place in a row-set digest; convert them to nanoseconds"
            )
        kind = Kind.DATETIME if isinstance(value, np.datetime64) else Kind.DURATION
        return Value(kind, int(value.astype(np.int64)) * count * _UNITS_NS[unit])
    item = value.item()
    if isinstance(item, np.generic):
        raise _no_place(value)
    return parse_value(item)


def _time_value(value: object) -> Value:
    if isinstance(value, dt.datetime):
        offset = value.utcoffset()
        naive = dt.datetime.combine(value.date(), value.time())
        nanoseconds = _nanoseconds(naive - _EPOCH) + int(getattr(value, "nanosecond", 0))
        if offset is None:
            return Value(Kind.DATETIME, nanoseconds)
        return Value(Kind.INSTANT, nanoseconds - _nanoseconds(offset))
    if isinstance(value, dt.date):
        return Value(Kind.DATETIME, _nanoseconds(dt.datetime.combine(value, dt.time()) - _EPOCH))
    if isinstance(value, dt.time) and value.tzinfo is None:
        return Value(Kind.TIME, _nanoseconds(dt.datetime.combine(_EPOCH, value) - _EPOCH))
    if isinstance(value, dt.timedelta):
        return Value(Kind.DURATION, _nanoseconds(value) + int(getattr(value, "nanoseconds", 0)))
    raise _no_place(value)


def _nanoseconds(delta: dt.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1_000


def _no_place(value: object) -> UsageError:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return UsageError(f"values of type {name} have no place in a row-set digest; convert the column")
