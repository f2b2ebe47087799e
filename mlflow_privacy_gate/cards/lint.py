"""What is wrong with a card: claims that cannot be read, markers that do not fit, words that are never said of a model."""

from __future__ import annotations

from mlflow_privacy_gate.cards.front_matter import read_declared, take_apart
from mlflow_privacy_gate.cards.markers import find_block
from mlflow_privacy_gate.cards.wording import misuses
from mlflow_privacy_gate.errors import CardError


def lint(card: str) -> tuple[str, ...]:
    """Find every mistake in a card, each as ``line 7: …`` with the card's line; empty where there is none.

    The wording of the body is looked at, not that of the front matter: there, words like ``private`` are settings.
    """
    try:
        parts = take_apart(card)
    except CardError as error:
        return tuple(error.message.splitlines())
    problems: list[str] = []
    for look in (lambda: read_declared(card), lambda: find_block(parts.body, first_line=parts.body_line)):
        try:
            look()
        except CardError as error:
            problems += error.message.splitlines()
    return (*problems, *(str(misuse) for misuse in misuses(parts.body, first_line=parts.body_line)))
