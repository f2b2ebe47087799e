"""The gate's own block in a card's body, and the shorter ones for a registry description without room for it."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.cards.markers import BEGIN, END
from mlflow_privacy_gate.cards.templates import one_blank_line, render
from mlflow_privacy_gate.cards.view import CardView

BLOCKS = ("block.md.j2", "short_block.md.j2", "shortest_block.md.j2")


def render_block(
    view: CardView, *, newline: str = "\n", templates: Path | None = None, template: str = BLOCKS[0]
) -> str:
    """Render the block with its marker lines, each line ended by ``newline``; ``template`` is one of ``BLOCKS``, longest first."""
    text = one_blank_line(render(template, folder=templates, view=view)).strip("\n")
    return newline.join([BEGIN, "", *text.split("\n"), "", END, ""])
