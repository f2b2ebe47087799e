"""Hostile names stay inert: what an author or a registry supplied is shown as text, never obeyed as Markdown, HTML or YAML.

The same card is drawn by several renderers (CommonMark, GitHub's tables, showdown, react-markdown). So ASCII punctuation that any of
them reads as structure is escaped by a backslash, which all of them know, and ``& < > | @ $`` by an entity, which none of them takes for
structure. A value is always one line: line ends become spaces.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, urlsplit

from markupsafe import Markup, escape

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;", "$": "&#36;"}
_BACKSLASHED = frozenset("\\`*_{}[]~")
# What begins a heading, a list, a rule or an underline, where a value happens to begin a line.
_LEADING = re.compile(r"^(?:([#=]|[+\-](?=\s|-|$))|(\d+)([.)])(?=\s|$))")
_REPLACEMENT = "\ufffd"
_LINKED_SCHEMES = frozenset({"http", "https"})


class Markdown(str):
    """Text that is Markdown already, so that a Markdown template prints it as it is."""

    __slots__ = ()


def one_line(value: object) -> str:
    """Give ``value`` as one line: line ends and tabs become spaces; controls, surrogates and text-direction marks become U+FFFD."""
    return " ".join("".join(_visible(character) for character in str(value)).split(" ")).strip()


def _visible(character: str) -> str:
    if character in "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cs") or unicodedata.bidirectional(character) in _DIRECTION_MARKS:
        return _REPLACEMENT
    return character


_DIRECTION_MARKS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def markdown(value: object) -> Markdown:
    """Escape ``value`` for any place in a Markdown line, a table cell included; ``Markdown`` is given back as it is."""
    if isinstance(value, Markdown):
        return value
    text = one_line(value)
    escaped = "".join(_ENTITIES.get(c) or (f"\\{c}" if c in _BACKSLASHED else c) for c in text)
    return Markdown(_LEADING.sub(_escape_leading, escaped))


def _escape_leading(match: re.Match[str]) -> str:
    mark, number, stop = match.groups()
    return f"\\{mark}" if mark else f"{number}\\{stop}"


def link(text: object, target: str | None) -> Markdown:
    """Give a Markdown link for an http(s) target; for any other (``javascript:``, ``runs:/``) the text and the target, unlinked."""
    if target is None:
        return markdown(text)
    address = web_address(target)
    if address is None:
        return Markdown(f"{markdown(text)} ({markdown(target)})")
    return Markdown(f"[{markdown(text)}](<{address}>)")


def run_link(text: object, run_id: str) -> Markdown:
    """Give a Markdown link to a run's page in MLflow, from any page of the same MLflow, whatever its address."""
    return Markdown(f"[{markdown(text)}](<#/runs/{quote(run_id, safe='')}>)")


def html_link(text: object, target: str | None) -> Markup:
    """Give an HTML link for an http(s) target; for any other the text and the target, unlinked; both escaped."""
    if target is None:
        return escape(text)
    address = web_address(target)
    return (
        Markup("{} ({})").format(text, target)
        if address is None
        else Markup('<a href="{}">{}</a>').format(address, text)
    )


def web_address(target: str) -> str | None:
    """Give an http(s) address with everything quoted that could end it early, or None where the target is no web address."""
    try:
        parts = urlsplit(target.strip())
    except ValueError:
        return None
    if parts.scheme.lower() not in _LINKED_SCHEMES or not parts.netloc:
        return None
    return quote(target.strip(), safe=":/?#@!$&*+,;=%~-._")


def yaml_string(value: str) -> str:
    """Give a double-quoted YAML string, good in block and flow context alike; what is not printable is escaped by its number."""
    return '"' + "".join(_yaml_character(character) for character in value) + '"'


def _yaml_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character != "\ufeff":
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
