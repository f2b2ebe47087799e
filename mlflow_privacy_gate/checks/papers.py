"""The papers of one test: card, description and report, drawn from one view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.card import write_card
from mlflow_privacy_gate.cards.description import description
from mlflow_privacy_gate.cards.particulars import AuthorsWords, Particulars
from mlflow_privacy_gate.cards.report import html_report, markdown_report
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.vocabulary import ARTIFACT_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from mlflow_privacy_gate.cards.view import CardView
    from mlflow_privacy_gate.checks.found_card import CardToCheck, FoundCard
    from mlflow_privacy_gate.evidence.facts import Evidence
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy

REPORT_HTML = f"{ARTIFACT_FOLDER}/report.html"
REPORT_MARKDOWN = f"{ARTIFACT_FOLDER}/report.md"


@dataclass(frozen=True)
class Papers:
    """The texts of one check: the whole card, the description made from it, and the report in HTML and Markdown."""

    card: str
    card_path: str
    description: str | None
    report_html: str
    report_markdown: str


def draw_papers(model: ResolvedModel, found: FoundCard, view: CardView, policy: Policy) -> Papers:
    """Draw all papers; CardError, and nothing is drawn, where the author's card cannot be added to."""
    folder = templates_of(policy)
    card = _written(found, view, folder)
    return Papers(
        card=card,
        card_path=found.path,
        description=description(card, view, existing=model.description, templates=folder) if model.versioned else None,
        report_html=html_report(view, templates=folder),
        report_markdown=markdown_report(view, templates=folder),
    )


def given_card(card: CardToCheck, view: CardView, policy: Policy) -> str | None:
    """Add the test to the card that the caller handed in, where that is not the one that becomes the run's; None where it is."""
    if card.card is card.published:
        return None
    return _written(card.card, view, templates_of(policy))


def _written(found: FoundCard, view: CardView, folder: Path | None) -> str:
    try:
        return write_card(found.text, view, templates=folder)
    except CardError as exc:
        raise found.blamed(exc) from exc


def recorded_particulars(
    model: ResolvedModel,
    evidence: Evidence,
    author: AuthorsWords,
    *,
    signer: str | None,
    envelope_sha256: str,
    tests_so_far: int | None = None,
) -> Particulars:
    """Give what card and report say of a test beside its evidence, as far as it is known from what is recorded.

    ``signer`` is the 64 hex digits of the key that signed, None for unsigned evidence. ``tests_so_far`` counts the tests of
    these bytes, this one included; None where the ledger cannot be read from here.
    """
    return Particulars(
        signer=signer,
        attestation_sha256=envelope_sha256,
        tests_so_far=tests_so_far,
        report_uri=f"runs:/{model.run_id}/{REPORT_HTML}" if model.run_id else None,
        verify_command=f"mlflow-privacy-gate verify {evidence.model_uri}",
        author=author,
    )


def templates_of(policy: Policy) -> Path | None:
    """Find the policy's own templates; None where it names none."""
    return policy.locate(policy.templates) if policy.templates else None
