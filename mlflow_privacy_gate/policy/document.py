"""A policy file read as plain values with their line numbers, before anything is known of their meaning.

Scalars follow YAML 1.2's core schema (``off`` is a word, ``1e-3`` a number), not PyYAML's YAML 1.1. Anchors, aliases, tags and a second
document have no use in a policy and are refused, so that the text a reviewer reads is the whole policy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import yaml

SIZE_LIMIT = 200_000  # a policy has a few thousand; a server reads it between two promotions
DEPTH_LIMIT = 12
Path = tuple[Hashable, ...]

_OPENING = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    "-.inf": -math.inf,
}
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass
class Document:
    """Plain values (dicts, lists, scalars) of one file, the line of every path in it, and the mistakes found so far."""

    name: str
    values: dict[Hashable, object] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    faulty: set[Path] = field(default_factory=set)

    def report(self, path: Path, text: str) -> None:
        """Note a mistake at a path; its line is that of the nearest enclosing key that stands in the file."""
        self.problems.append((self.line(path), f"{dotted(path)}: {text}" if path else text))
        self.faulty.add(path)

    def line(self, path: Path) -> int:
        """Give the line (from 1) of the path, or of the nearest part of it that stands in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def sorted_problems(self) -> tuple[str, ...]:
        """Give every mistake as ``file:line: …``, in the order of the file, each once."""
        return tuple(dict.fromkeys(f"{self.name}:{line}: {text}" for line, text in sorted(self.problems)))


def dotted(path: Iterable[object]) -> str:
    """Write a path as people do: ``guard.aliases[2]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) and not isinstance(part, bool) else f".{part}"
    return text.removeprefix(".")


def read_document(data: bytes, name: str) -> Document:
    """Read one YAML document; every mistake of form is noted in it with its line, never raised."""
    document = Document(name)
    text = _decoded(data, document)
    if text is None:
        return document
    try:
        _look_for_what_is_not_taken(text, document)
        root = None if document.problems else yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        document.problems.append(((mark.line if mark else 0) + 1, f"not YAML: {error.problem or error.context}"))
        return document
    except yaml.YAMLError as error:
        document.problems.append((1, f"not YAML: {' '.join(str(error).split())}"))
        return document
    if isinstance(root, yaml.MappingNode):
        document.values = _mapping(root, (), document)
    elif root is not None:
        document.problems.append((1, "expected keys and values, such as `version: 1`"))
    elif not document.problems:
        document.problems.append((1, "the file is empty; a policy begins with `version: 1`"))
    return document


def _decoded(data: bytes, document: Document) -> str | None:
    if len(data) > SIZE_LIMIT:
        document.problems.append((1, f"the file is larger than {SIZE_LIMIT:,} bytes; this is no policy"))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        document.problems.append((line, f"not UTF-8 (byte {error.start}): save the file as UTF-8"))
        return None


def _look_for_what_is_not_taken(text: str, document: Document) -> None:
    """Scan tokens, which neither nest nor expand, so that nothing deep or multiplying is ever composed."""
    depth = documents = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        line = token.start_mark.line + 1
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        documents += isinstance(token, yaml.DocumentStartToken)
        if depth > DEPTH_LIMIT:
            document.problems.append((line, f"nested more than {DEPTH_LIMIT} deep"))
            return
        if documents > 1:
            document.problems.append((line, "a second document begins here; a policy is one document"))
            return
        if isinstance(token, (yaml.AnchorToken, yaml.AliasToken)):
            document.problems.append((line, "anchors and aliases (`&`, `*`) are not taken: write the value out"))
        if isinstance(token, yaml.TagToken):
            document.problems.append((line, "tags (`!`) are not taken: write the plain value"))


def _mapping(node: yaml.MappingNode, path: Path, document: Document) -> dict[Hashable, object]:
    values: dict[Hashable, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            document.problems.append((line, "a key must be a plain word"))
            continue
        key = _scalar(key_node)
        here = (*path, key)
        if key in values:
            first = document.lines[here]
            document.problems.append((line, f"{dotted(here)}: stands twice (first in line {first})"))
            continue
        document.lines[here] = line
        values[key] = _value(value_node, here, document)
    return values


def _value(node: yaml.Node, path: Path, document: Document) -> object:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for position, item in enumerate(node.value):
            here = (*path, position)
            document.lines[here] = item.start_mark.line + 1
            items.append(_value(item, here, document))
        return items
    return _scalar(node)


def _scalar(node: yaml.Node) -> Hashable:
    text = str(node.value)
    if getattr(node, "style", None):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
