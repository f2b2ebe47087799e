"""The author's card as it is found: the caller's, the run's, the version's description, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.vocabulary import CARD_PATHS

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.registry._interface import Registry


@dataclass(frozen=True)
class FoundCard:
    """A card's ``text`` (None where there is none), the artifact ``path`` it belongs at, and in words ``where`` it was found."""

    text: str | None
    path: str
    where: str


def find_card(registry: Registry, model: ResolvedModel, given: str | None = None) -> FoundCard:
    """Find the card: ``given``, else the run's ``README.md`` or ``model_card.md``, else the version's description, else none.

    UsageError where an artifact of that name is no UTF-8 text.
    """
    if given is not None:
        return FoundCard(given, CARD_PATHS[0], "the file that was given")
    for path in CARD_PATHS:
        content = registry.read_artifact(model, path)
        if content is not None:
            try:
                return FoundCard(content.decode("utf-8"), path, f"the artifact {path}")
            except UnicodeDecodeError as exc:
                raise UsageError(f"{model.uri}: {path}: expected UTF-8 text: {exc}") from exc
    if model.description:
        return FoundCard(model.description, CARD_PATHS[0], "the version's description")
    return FoundCard(None, CARD_PATHS[0], "nowhere")
