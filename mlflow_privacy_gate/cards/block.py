"""The gate's own block in a card's body, and the shorter one for a registry description that has no room for it."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.cards.markers import BEGIN, END
from mlflow_privacy_gate.cards.templates import one_blank_line, render
from mlflow_privacy_gate.cards.view import CardView


def render_block(view: CardView, *, newline: str = "\n", templates: Path | None = None) -> str:
    """Render the block with its marker lines, each line ended by ``newline``."""
    return _between_markers(render("block.md.j2", folder=templates, view=view), newline)


def render_short_block(view: CardView, *, newline: str = "\n", templates: Path | None = None) -> str:
    """Render the verdict with its number and where the rest stands, with marker lines."""
    return _between_markers(render("short_block.md.j2", folder=templates, view=view), newline)


def _between_markers(text: str, newline: str) -> str:
    lines = [BEGIN, "", *one_blank_line(text).strip("\n").split("\n"), "", END, ""]
    return newline.join(line.rstrip("\r") for line in lines)
