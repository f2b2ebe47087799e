"""Our own values as YAML text, in block and in flow form; only what the gate itself writes is ever emitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from mlflow_privacy_gate.cards.escaping import yaml_string

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ALWAYS_FLOW = frozenset({"args"})


@dataclass(frozen=True)
class Number:
    """A number as its decimal text, so that what is printed is what is written."""

    text: str


Value: TypeAlias = "str | bool | int | Number | Mapping[str, Value] | Sequence[Value] | None"


def flow(value: Value) -> str:
    """Give a value in flow form, on one line: ``{margin: 0.55, attack: loss}``."""
    if isinstance(value, str):
        return _word(value)
    if isinstance(value, Number):
        return value.text
    if isinstance(value, Mapping):
        return "{" + flow_pairs(value) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return "null" if value is None else str(value).lower()


def flow_pairs(content: Mapping[str, Value]) -> str:
    """Give a mapping's pairs in flow form, without braces."""
    return ", ".join(f"{_word(key)}: {flow(value)}" for key, value in content.items())


def block_pair(key: str, value: Value) -> list[str]:
    """Give ``key: value`` as block lines without indentation."""
    name = _word(key)
    if isinstance(value, Mapping) and value and key not in _ALWAYS_FLOW:
        children = [line for child, content in value.items() for line in block_pair(child, content)]
        return [f"{name}:", *(f"  {line}" for line in children)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return [f"{name}:", *(line for item in value for line in block_item(item))]
    return [f"{name}: {flow(value)}"]


def block_item(value: Value) -> list[str]:
    """Give one item of a block list as lines without indentation; the first begins with ``- ``."""
    if not isinstance(value, Mapping) or not value:
        return [f"- {flow(value)}"]
    lines = [line for key, content in value.items() for line in block_pair(key, content)]
    return [f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines)]


def indented(lines: Sequence[str], column: int, newline: str) -> str:
    """Give lines as text, each indented by ``column`` spaces and ended."""
    return "".join(f"{' ' * column}{line}{newline}" for line in lines)


def _word(text: str) -> str:
    """Give text unquoted where every reader takes it for the same text, else double-quoted."""
    return text if _WORD.fullmatch(text) and yaml.safe_load(text) == text else yaml_string(text)
