"""The globs of a policy's guard, read piece by piece as ``fnmatch`` reads them: ``*``, ``?``, ``[set]``, ``[!set]`` and characters."""

from __future__ import annotations

from collections.abc import Iterator


def pieces(glob: str) -> Iterator[str]:
    """Give a glob's pieces in order: a set with its brackets, or one character; a bracket that nothing closes is a plain character."""
    at = 0
    while at < len(glob):
        end = _closing(glob, at) if glob[at] == "[" else None
        yield glob[at : at + 1 if end is None else end + 1]
        at = at + 1 if end is None else end + 1


def is_set(piece: str) -> bool:
    """Whether a piece is a set in brackets."""
    return len(piece) > 1


def left_open(glob: str) -> bool:
    """Whether a bracket opens and nothing closes it, so that it would match nothing but itself."""
    return "[" in pieces(glob)


def plain(glob: str) -> str:
    """Give the characters of a glob that must stand in whatever it matches."""
    return "".join(piece for piece in pieces(glob) if not is_set(piece) and piece not in {"*", "?"})


def _closing(glob: str, opening: int) -> int | None:
    """Find the bracket that closes a set; one that stands first in it is a member."""
    start = opening + 1
    start += glob[start : start + 1] == "!"
    start += glob[start : start + 1] == "]"
    found = glob.find("]", start)
    return None if found < 0 else found
