"""How a fact becomes JSON and back: the dull, strict part of a statement.

======================  ==========================================================================================
fact                    JSON
======================  ==========================================================================================
dataclass               object; keys in camelCase; a field that is None is left out
float                   decimal string, Python's shortest text that reads back to the same bits (``"0.55"``)
int                     decimal string (``"1000"``): a JSON reader with doubles loses integers past 2^53
str, bool               string, true or false
str enum                its value
datetime                RFC 3339 in UTC with ``Z``; microseconds where there are any
tuple                   array
mapping of str to str   object
======================  ==========================================================================================

Reading takes exactly what writing gives: one text per number, no unknown key, and a message that names the JSON path. A required
field that is missing is PG006 (the evidence lacks something); everything else that does not fit is PG002.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import re
import types
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.facts import AttackFacts, ValidityFacts
from mlflow_privacy_gate.vocabulary import ReasonCode

_T = TypeVar("_T")

# Where the statement's word is not the fact's own name in camelCase.
_NAMES: Mapping[tuple[type, str], str] = types.MappingProxyType(
    {
        (AttackFacts, "formula"): "formulaVersion",
        (ValidityFacts, "positive_control_auc"): "positiveControl",
        (ValidityFacts, "positive_control_ci_low"): "positiveControlCiLow",
    }
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,99}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", re.ASCII)


def encode(value: object) -> Any:
    """Return the JSON value of a fact; UsageError for a number that is not finite, a time without timezone, or text UTF-8 cannot hold."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"evidence carries finite numbers only, got {value}")
        return repr(float(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, datetime):
        return _encode_time(value)
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {_encode_text(key): _encode_text(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    raise UsageError(f"evidence has no place for a {type(value).__name__}")


def decode(kind: type[_T], value: object, path: str) -> _T:
    """Read a dataclass of type ``kind`` from its JSON object at ``path``; EvidenceRejected names the path of what does not fit."""
    decoded = _decode(kind, value, path)
    assert isinstance(decoded, kind)
    return decoded


def decode_field(owner: type, name: str, value: object, path: str) -> Any:
    """Read the JSON of the field ``name`` of the dataclass ``owner``; null is refused, since what is unknown is left out."""
    return _decode(_hints(owner)[name], _present(value, path), path)


def read_object(value: object, path: str) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object; EvidenceRejected (PG002) otherwise."""
    if not isinstance(value, dict):
        reject(path, f"expected an object, got {_name(value)}")
    return value


def required(fields: Mapping[str, Any], key: str, path: str) -> Any:
    """Return ``fields[key]``; EvidenceRejected (PG006) when it is missing."""
    if key not in fields:
        reject(f"{path}.{key}", "is missing", ReasonCode.PG006)
    return fields[key]


def reject(path: str, what: str, code: ReasonCode = ReasonCode.PG002) -> NoReturn:
    """Raise EvidenceRejected with the JSON path of what does not fit."""
    raise EvidenceRejected(f"{path}: {what}", code=code)


def camel_case(name: str) -> str:
    """Return ``rows_used`` as ``rowsUsed``."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _encode_text(value: str) -> str:
    text = str(value.value) if isinstance(value, enum.Enum) else str(value)
    if not _is_utf8(text):
        raise UsageError(f"evidence cannot hold text with half a surrogate pair: {text!r}")
    return text


def _encode_time(value: datetime) -> str:
    if value.tzinfo is None:
        raise UsageError(f"evidence needs times with a timezone, got {value}")
    return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def _encode_fields(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    fields = {}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if content is not None:
            # The declared type decides: a float that happens to be whole (1) is still written as a float ("1.0").
            number = _is_float(_hints(kind)[field.name]) and not isinstance(content, bool)
            fields[_key(kind, field.name)] = encode(float(content) if number else content)
    return fields


def _decode(kind: Any, value: object, path: str) -> Any:
    options = _without_none(kind)
    if options is not None:
        return None if value is None else _decode(options, value, path)
    if get_origin(kind) is tuple:
        return _decode_tuple(get_args(kind)[0], value, path)
    if get_origin(kind) is Mapping:
        return {_decode_text(k, path): _decode_text(v, f"{path}.{k}") for k, v in read_object(value, path).items()}
    if dataclasses.is_dataclass(kind):
        return _decode_fields(kind, value, path)
    if kind is bool:
        return value if isinstance(value, bool) else reject(path, f"expected true or false, got {_name(value)}")
    text = _decode_text(value, path)
    if kind is str:
        return text
    if kind is float:
        return _decode_float(text, path)
    if kind is int:
        return int(text) if _INTEGER.fullmatch(text) else reject(path, f"expected a whole number, got {_short(text)}")
    if kind is datetime:
        return _decode_time(text, path)
    return _decode_enum(kind, text, path)


def _decode_fields(kind: Any, value: object, path: str) -> Any:
    fields = dict(read_object(value, path))
    arguments = {}
    for field in dataclasses.fields(kind):
        key = _key(kind, field.name)
        if key in fields:
            arguments[field.name] = _decode(
                _hints(kind)[field.name], _present(fields.pop(key), f"{path}.{key}"), f"{path}.{key}"
            )
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            if _without_none(_hints(kind)[field.name]) is None:
                reject(f"{path}.{key}", "is missing", ReasonCode.PG006)
            arguments[field.name] = None
    refuse_unknown(fields, path)
    return kind(**arguments)


def refuse_unknown(fields: Mapping[str, Any], path: str) -> None:
    """Refuse keys left over after reading: a measurement that cannot be read cannot be called harmless."""
    if fields:
        unknown = ", ".join(sorted(fields))
        reject(path, f"unknown {_short(unknown)}; was this written by a newer version of the gate?")


def _decode_tuple(item_kind: Any, value: object, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        reject(path, f"expected a list, got {_name(value)}")
    return tuple(_decode(item_kind, item, f"{path}[{index}]") for index, item in enumerate(value))


def _decode_text(value: object, path: str) -> str:
    if not isinstance(value, str):
        reject(path, f"expected text, got {_name(value)}")
    if not _is_utf8(value):
        reject(path, "holds half a surrogate pair")
    return value


def _decode_float(text: str, path: str) -> float:
    try:
        number = float(text)
    except ValueError:
        reject(path, f"expected a decimal number, got {_short(text)}")
    if not math.isfinite(number) or repr(number) != text:
        reject(path, f"expected a finite decimal number in its shortest form, got {_short(text)}")
    return number


def _decode_time(text: str, path: str) -> datetime:
    if not _TIME.fullmatch(text):
        reject(path, f"expected a time like 2026-01-31T12:00:00Z, got {_short(text)}")
    try:
        return datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)
    except ValueError as exc:
        reject(path, f"expected a time, got {_short(text)} ({exc})")


def _decode_enum(kind: type[enum.Enum], text: str, path: str) -> enum.Enum:
    try:
        return kind(text)
    except ValueError:
        expected = ", ".join(str(member.value) for member in kind)
        reject(path, f"expected one of {expected}, got {_short(text)}")


def _present(value: object, path: str) -> object:
    return reject(path, "is null; a fact that is unknown is left out") if value is None else value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _without_none(kind: Any) -> Any | None:
    """Return T for ``T | None``, and None for a type that does not admit None."""
    if get_origin(kind) not in (Union, types.UnionType):
        return None
    (inner,) = (argument for argument in get_args(kind) if argument is not type(None))
    return inner


def _is_float(kind: Any) -> bool:
    return kind is float or _without_none(kind) is float


@cache
def _key(kind: type, name: str) -> str:
    return _NAMES.get((kind, name)) or camel_case(name)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _name(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
