"""Where the gate's block stands in a card's body, between two lines that every renderer leaves invisible.

The markers are Markdown link-reference definitions. An HTML comment would be shown as text by MLflow's artifact preview.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlflow_privacy_gate.errors import CardError

BEGIN = "[//]: # (privacy-gate:begin v1)"
END = "[//]: # (privacy-gate:end)"
_ANY_MARKER = re.compile(r"\[//\]: # \(privacy-gate:(begin|end)[^)\r\n]*\)")


@dataclass(frozen=True)
class BlockPlace:
    """The characters of a body that hold our block, both marker lines with their line ends included."""

    start: int
    end: int


def find_block(body: str, *, first_line: int = 1) -> BlockPlace | None:
    """Find our block in a body, or None where there is none.

    ``first_line`` is the card's line number of the body's first line. CardError with line numbers for two blocks, an end before its begin,
    a begin without an end, or a marker of a version this tool does not know: never a guess.
    """
    begins: list[tuple[int, int, int]] = []
    ends: list[tuple[int, int, int]] = []
    offset = 0
    for number, line in enumerate(body.split("\n"), start=first_line):
        length = len(line) + 1
        mark = line.strip()
        if mark in (BEGIN, END):
            (begins if mark == BEGIN else ends).append((number, offset, min(offset + length, len(body))))
        elif _ANY_MARKER.fullmatch(mark):
            raise CardError(f"line {number}: {mark} is a marker this version does not know; expected {BEGIN} or {END}")
        offset += length
    if not begins and not ends:
        return None
    _refuse_odd(begins, ends)
    return BlockPlace(begins[0][1], ends[0][2])


def _refuse_odd(begins: list[tuple[int, int, int]], ends: list[tuple[int, int, int]]) -> None:
    for name, marks in (("begin", begins), ("end", ends)):
        if len(marks) > 1:
            lines = " and ".join(str(mark[0]) for mark in marks)
            raise CardError(f"lines {lines}: more than one privacy-gate {name} marker; keep one block")
    if not begins:
        raise CardError(f"line {ends[0][0]}: a privacy-gate end marker without a begin before it")
    if not ends:
        raise CardError(f"line {begins[0][0]}: a privacy-gate begin marker without an end after it")
    if ends[0][0] < begins[0][0]:
        raise CardError(
            f"line {ends[0][0]}: the privacy-gate end marker stands before the begin on line {begins[0][0]}"
        )


def put_block(body: str, block: str, newline: str, *, first_line: int = 1) -> str:
    """Give the body with ``block`` (marker lines included) in place of ours, or after the author's text; blank lines around it."""
    place = find_block(body, first_line=first_line)
    before, after = (body[: place.start], body[place.end :]) if place is not None else (body, "")
    if before and not before.endswith("\n"):
        before += newline
    if before.removesuffix("\n").removesuffix("\r").rpartition("\n")[2].strip():
        before += newline
    if after and after.partition("\n")[0].strip():
        after = newline + after
    return before + block + after


def without_block(body: str) -> str:
    """Give the author's own text: the body without our block."""
    place = find_block(body)
    return body if place is None else body[: place.start] + body[place.end :]
