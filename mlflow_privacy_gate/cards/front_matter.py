"""A card's front matter, found and edited in place: the author's YAML is never emitted anew.

Edits are insertions and replacements of our own values at places that the YAML parser itself reports, so comments, flow lists, key order,
line ends and everything else of the author's stay byte for byte. Afterwards the result is parsed again; unless it holds exactly the
author's content and ours, CardError is raised and the card stays as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from mlflow_privacy_gate.cards.claims import Declared, declared_in
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.evidence.facts import CardClaims

SECTION = "privacy_gate"
# Opening and closing lines as Hugging Face's own reader finds them, with a byte order mark allowed in front.
_FENCED = re.compile(r"\A(\ufeff?\s*---[ \t]*(?:\r\n|\n))((?:[\s\S]*?(?:\r\n|\n))??)(---[ \t]*(?:\r\n|\n|\Z))")
_OPENED = re.compile(r"\A\ufeff?\s*---[ \t]*(?:\r|\n|\Z)")
# Aliases of aliases may stand for more than any machine holds.
_MOST_NODES = 1_000_000


@dataclass(frozen=True)
class FrontMatter:
    """One card taken apart; ``opening + yaml_text + closing + body`` is the card, byte for byte.

    Where the card has no front matter, ``opening``, ``yaml_text`` and ``closing`` are empty. ``newline`` is the card's own line end.
    """

    opening: str
    yaml_text: str
    closing: str
    body: str
    newline: str

    @property
    def first_line(self) -> int:
        """The card's line number (from 1) of the first line of ``yaml_text``."""
        return self.opening.count("\n") + 1

    @property
    def body_line(self) -> int:
        """The card's line number (from 1) of the first line of ``body``."""
        return (self.opening + self.yaml_text + self.closing).count("\n") + 1


def take_apart(card: str) -> FrontMatter:
    """Take a card apart; CardError with the line where front matter is opened and never closed."""
    newline = "\r\n" if card.count("\r\n") * 2 > card.count("\n") else "\n"
    match = _FENCED.match(card)
    if match is not None:
        opening, text, closing = match.groups()
        return FrontMatter(opening, text, closing, card[match.end() :], newline)
    opened = _OPENED.match(card)
    if opened is not None:
        line = opened.group().rstrip("\r\n").count("\n") + 1
        raise CardError(
            f"line {line}: front matter is opened by `---` and never closed; add a line `---` after it "
            "(lines end in LF or CRLF)"
        )
    return FrontMatter("", "", "", card, newline)


def read_mapping(front: FrontMatter) -> tuple[yaml.MappingNode | None, dict[object, object]]:
    """Parse front matter to its node tree (None where it is empty) and its content; CardError with the card's line."""
    try:
        node = yaml.compose(front.yaml_text, Loader=yaml.SafeLoader)
        _refuse_bomb(node, front)
        content = yaml.safe_load(front.yaml_text)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = front.first_line + (mark.line if mark is not None else 0)
        raise CardError(f"line {line}: front matter is not YAML: {exc.problem or exc.context}") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        line = front.first_line + front.yaml_text[: getattr(exc, "position", 0)].count("\n")
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise CardError(f"line {line}: front matter is not YAML: {reason}") from exc
    if node is None or content is None:
        return None, {}
    if not isinstance(node, yaml.MappingNode) or not isinstance(content, dict):
        raise CardError(
            f"line {front.first_line}: front matter must hold `key: value` lines, got {type(content).__name__}"
        )
    return node, content


def _refuse_bomb(node: yaml.Node | None, front: FrontMatter) -> None:
    """Raise CardError where aliases multiply to more than a million values."""
    sizes: dict[int, int] = {}

    def size(one: yaml.Node) -> int:
        if id(one) not in sizes:
            sizes[id(one)] = 1  # an alias to what it stands in counts once
            children = one.value if isinstance(one, yaml.CollectionNode) else ()
            inner = (part for child in children for part in (child if isinstance(child, tuple) else (child,)))
            sizes[id(one)] = 1 + sum(map(size, inner))
        return sizes[id(one)]

    if node is not None and size(node) > _MOST_NODES:
        raise CardError(f"line {front.first_line}: front matter stands for more than {_MOST_NODES:,} values by aliases")


def read_claims(card: str) -> CardClaims:
    """Read what a card claims, as :func:`read_declared` does, without its author's further words."""
    return read_declared(card).claims


def read_declared(card: str) -> Declared:
    """Read what a card declares under ``privacy_gate:``; nothing where there is no front matter or no such key.

    CardError names each mistake with the card's line; a card that cannot be read is never taken for one without claims.
    """
    front = take_apart(card)
    node, content = read_mapping(front)
    found = find_pair(node, SECTION, front)
    _refuse_overlooked(content, front, stands=found is not None)
    if found is None or content.get(SECTION) is None:
        return Declared()
    section = content[SECTION]
    key_line = front.first_line + found[0].start_mark.line
    if not isinstance(section, dict):
        raise CardError(f"line {key_line}: {SECTION}: expected keys below it, got {section!r}")
    lines = _lines_of_keys(found[1], SECTION, front)
    for key, value in pairs(found[1]):
        _lines_of_keys(value, f"{SECTION}.{key.value}", front)
    return declared_in(section, lambda key: lines.get(key, key_line))


def _refuse_overlooked(content: dict[object, object], front: FrontMatter, *, stands: bool) -> None:
    """Raise CardError for claims that a reader of the card sees and the gate would not: merged in, or under a key spelt otherwise."""
    if SECTION in content and not stands:
        raise CardError(
            f"line {front.first_line}: `{SECTION}` is merged in from elsewhere (`<<`); write its content out"
        )
    for key in content:
        if key != SECTION and re.sub(r"[\s-]", "_", str(key).strip()).casefold() == SECTION:
            raise CardError(f"line {front.first_line}: unknown key {str(key)!r} (did you mean `{SECTION}`?)")


def _lines_of_keys(node: yaml.Node, path: str, front: FrontMatter) -> dict[str, int]:
    """Give the card's line of each key of a mapping (none of any other node); CardError where one stands twice."""
    lines: dict[str, int] = {}
    for key, _ in pairs(node):
        if key.value in lines:
            raise CardError(f"line {front.first_line + key.start_mark.line}: {path}.{key.value} stands twice")
        lines[key.value] = front.first_line + key.start_mark.line
    return lines


def pairs(node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """List a mapping node's pairs whose key is a scalar; none for any other node."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]


def find_pair(node: yaml.Node | None, name: str, front: FrontMatter) -> tuple[yaml.ScalarNode, yaml.Node] | None:
    """Find the pair of that key, or None; CardError where the key stands twice or its value is an alias."""
    found = [(key, value) for key, value in pairs(node) if key.value == name]
    if not found:
        return None
    key, value = found[-1]
    line = front.first_line + key.start_mark.line
    if len(found) > 1:
        raise CardError(f"line {line}: `{name}` stands twice; keep one")
    if value.start_mark.index < key.end_mark.index:
        raise CardError(f"line {line}: `{name}` is an alias (`*name`); write its content out")
    return key, value
