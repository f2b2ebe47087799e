"""The author's card as it is found: the caller's, the run's, the version's description, or none; and what a check takes it to declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.claims import Declared
from mlflow_privacy_gate.cards.front_matter import read_declared
from mlflow_privacy_gate.checks.strictest import strictest
from mlflow_privacy_gate.errors import CardError, UsageError
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

    def declared(self) -> Declared:
        """Read what the card's author declares; CardError says which card and line."""
        try:
            return read_declared(self.text) if self.text else Declared()
        except CardError as exc:
            raise self.blamed(exc) from exc

    def blamed(self, error: CardError) -> CardError:
        """Return the error with the card's whereabouts before each of its lines."""
        return CardError("\n".join(f"{self.where}: {line}" for line in error.message.splitlines()))


@dataclass(frozen=True)
class CardToCheck:
    """The card of one check: ``card`` is added to for the caller, ``published`` for the run, and ``declared`` bears on the verdict.

    A card that was given never loosens what the recorded one declares: the stricter of both counts, ``kept`` says of what, and then
    the recorded card stays the run's, or the next check would find the looser one recorded.
    """

    card: FoundCard
    published: FoundCard
    declared: Declared
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class GivenCard:
    """A card that the caller hands in: its ``text``, and its ``name`` for messages."""

    text: str
    name: str = "the card that was given"


def card_to_check(registry: Registry, model: ResolvedModel, given: GivenCard | None) -> CardToCheck:
    """Find and read the card of a check; CardError where the given card or the recorded one cannot be read."""
    recorded = find_card(registry, model)
    if given is None:
        return CardToCheck(recorded, recorded, recorded.declared())
    card = FoundCard(given.text, CARD_PATHS[0], given.name)
    declared = card.declared()
    claims, kept = strictest(declared.claims, recorded.declared().claims)
    said = tuple(
        f"{given.name} lacks {words}, which {recorded.where} declares and which counts all the same" for words in kept
    )
    return CardToCheck(card, recorded if kept else card, Declared(claims, declared.words), said)


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
