"""Text that comes out of a model's process, made fit to be quoted: one line, printable, short."""

from __future__ import annotations


def one_line(text: str, *, limit: int) -> str:
    """Return ``text`` as one line of printable characters, at most ``limit`` of them."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def last_words(raw: bytes, *, limit: int) -> str:
    """Return the end of what a process wrote, as one printable line."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in raw.decode("utf-8", "replace")).split())
    return line if len(line) <= limit else "…" + line[-(limit - 1) :]
