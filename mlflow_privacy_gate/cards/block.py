"""The gate's own block in a card's body, and the shorter ones for a registry description without room for it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from mlflow_privacy_gate.cards.markers import BEGIN, END
from mlflow_privacy_gate.cards.templates import one_blank_line, render
from mlflow_privacy_gate.cards.untested import UntestedView
from mlflow_privacy_gate.cards.view import CardView

View: TypeAlias = CardView | UntestedView


def render_block(view: View, *, newline: str = "\n", templates: Path | None = None, template: str | None = None) -> str:
    """Render the block with its marker lines, each line ended by ``newline``; ``template`` is one of ``view.blocks``, or the longest."""
    text = one_blank_line(render(template or view.blocks[0], folder=templates, view=view)).strip("\n")
    return newline.join([BEGIN, "", *text.split("\n"), "", END, ""])
