"""A registered version's description: the card's body where there is room, our part shortened where not, the author's text whole."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.cards.block import View, render_block
from mlflow_privacy_gate.cards.front_matter import take_apart
from mlflow_privacy_gate.cards.markers import find_block, put_block, without_block

# The column that MLflow gives a version's description on PostgreSQL, in characters.
DESCRIPTION_LIMIT = 5000


def description(
    card: str, view: View, *, existing: str | None, limit: int = DESCRIPTION_LIMIT, templates: Path | None = None
) -> str:
    """Give the description to write for a version whose description is ``existing`` now.

    An empty one becomes the card's body without front matter; so does one that holds our block, where the body has all its other text.
    Otherwise our block alone is replaced or appended. Over ``limit`` characters the block is shortened, down to the verdict with a link,
    and left out where not even that fits: the author's text is never cut, and no old verdict of ours is left standing.
    """
    body = take_apart(card).body.lstrip("\r\n")
    text = (existing or "").rstrip()
    if not text or (find_block(text) is not None and without_block(text).strip() in without_block(body)):
        whole = _fitted(body, view, limit, templates)
        if whole is not None:
            return whole
    fitted = _fitted(text, view, limit, templates)
    return fitted if fitted is not None else without_block(text).rstrip()


def _fitted(text: str, view: View, limit: int, templates: Path | None) -> str | None:
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    for template in view.blocks:
        block = render_block(view, newline=newline, templates=templates, template=template)
        written = put_block(text, block, newline)
        if len(written) <= limit:
            return written
    return None
