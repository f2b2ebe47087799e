"""Where an officer signs: the version and its test, the promotion in question, the officer's key; and what is said afterwards."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_privacy_gate.errors import CardError, UsageError
from mlflow_privacy_gate.vocabulary import KeyRole

if TYPE_CHECKING:
    from mlflow_privacy_gate.cards.view import CardView
    from mlflow_privacy_gate.evidence.ledger import KnownTests
    from mlflow_privacy_gate.evidence.officer_statements import OfficerStatement
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.gate import Decision, Route
    from mlflow_privacy_gate.gate.attaching import Attachment
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry


@dataclass(frozen=True)
class Desk:
    """Everything a statement needs; ``before`` is the decision as things stand, on the promotion that the statement is about."""

    registry: Registry
    model: ResolvedModel
    policy: Policy
    signer: Signer
    before: Decision
    now: datetime

    @property
    def known(self) -> KnownTests | None:
        """Every test of these bytes that the ledger holds, where it can be reached from here."""
        digest = self.before.target.model_digest
        return self.registry.known_tests(digest, self.policy) if digest else None


def open_desk(
    model_uri: str,
    stage: str | None,
    alias: str | None,
    into: str | None,
    *,
    key: str | None,
    policy: Path | None,
    servers: tuple[str | None, str | None],
    now: datetime,
    any_promotion: bool = False,
) -> Desk:
    """Look everything up; ``servers`` are the tracking and registry URIs.

    UsageError without a key, without the promotion named (unless ``any_promotion`` will do), or without a test to sign about.
    """
    from mlflow_privacy_gate.api import signer_for
    from mlflow_privacy_gate.gate.attaching import decision_to_sign
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    in_force = find_policy(policy, os.environ, Path.cwd())
    route, value = _promotion(stage, alias, into, in_force, any_promotion=any_promotion)
    signer = signer_for(in_force, key, os.environ, role=KeyRole.PRIVACY_OFFICER)
    if signer is None:
        raise UsageError("no key to sign with: give --key, or set PRIVACY_GATE_SIGNING_KEY, to a privacy officer's key")
    registry = MlflowRegistry(*servers)
    model = registry.resolve(model_uri)
    before = decision_to_sign(registry, model, in_force, route=route, value=value, now=now)
    return Desk(registry, model, in_force, signer, before, now)


def attach(desk: Desk, statement: OfficerStatement, output: str) -> str:
    """Sign a statement and attach it: run artifact, card, description, its own tag, and last the verdict tag; say what came of it.

    UsageError, and nothing is written, for a statement that the policy would never hear. Tag and card are for people: the gate reads the
    statement itself.
    """
    from mlflow_privacy_gate.gate.attaching import sign_about
    from mlflow_privacy_gate.registry._interface import Publication

    known = desk.known
    made = sign_about(
        desk.before, statement, desk.signer, model=desk.model, policy=desk.policy, now=desk.now, known=known
    )
    artifacts: dict[str, bytes] = {made.signed.artifact: made.signed.envelope}
    described, note = None, None
    try:
        path, card, described = _card_with(desk, made.decision, known)
        artifacts[path] = card.encode("utf-8")
    except (CardError, UsageError) as exc:
        # The card decides nothing: a broken one must not keep a signed statement out.
        note = f"the card could not be changed: {exc.message}"
    desk.registry.publish(
        desk.model,
        Publication(
            artifacts=artifacts,
            metrics={},
            description=described,
            tags={made.signed.tag: made.signed.tag_value},
            verdict=str(made.decision.outcome),
        ),
    )
    return _said(made, note, output)


def _promotion(
    stage: str | None, alias: str | None, into: str | None, policy: Policy, *, any_promotion: bool
) -> tuple[Route, str]:
    from mlflow_privacy_gate.gate import Route
    from mlflow_privacy_gate.gate.examining import default_promotion

    named = [
        (route, value)
        for route, value in ((Route.STAGE, stage), (Route.ALIAS, alias), (Route.COPY, into))
        if value is not None
    ]
    if not named and any_promotion:
        return default_promotion(policy)
    if len(named) != 1:
        raise UsageError("name the one promotion that this is for: --stage, --alias or --into")
    return named[0]


def _card_with(desk: Desk, decision: Decision, known: KnownTests | None) -> tuple[str, str, str]:
    """Write a decision into the card as it stands; give the card's path, its text and the description."""
    from mlflow_privacy_gate.cards.card import write_card
    from mlflow_privacy_gate.cards.description import description
    from mlflow_privacy_gate.checks.found_card import find_card
    from mlflow_privacy_gate.checks.papers import templates_of

    found, folder = find_card(desk.registry, desk.model), templates_of(desk.policy)
    view = _view(desk.model, decision, found.text, known)
    card = write_card(found.text, view, templates=folder)
    return found.path, card, description(card, view, existing=desk.model.description, templates=folder)


def _view(model: ResolvedModel, decision: Decision, card: str | None, known: KnownTests | None) -> CardView:
    """Build the card's view from the recorded evidence, with the statements that count for this decision."""
    from mlflow_privacy_gate.cards.front_matter import read_declared
    from mlflow_privacy_gate.cards.particulars import AuthorsWords
    from mlflow_privacy_gate.cards.view import card_view
    from mlflow_privacy_gate.checks.papers import recorded_particulars
    from mlflow_privacy_gate.evidence.envelope import open_envelope
    from mlflow_privacy_gate.gate.statement_views import shown_sign_offs, shown_waivers
    from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

    evidence, verdict = decision.evidence, decision.verdict
    assert evidence is not None  # a statement is signed about a test only
    assert verdict is not None
    envelope = open_envelope((model.tags or {})[ATTESTATION_TAG])
    particulars = recorded_particulars(
        model,
        evidence,
        read_declared(card).words if card else AuthorsWords(),
        signer=envelope.signatures[0].key_id if envelope.signatures else None,
        envelope_sha256=envelope.sha256,
        tests_so_far=None if known is None else known.count_with(envelope.sha256),
    )
    waivers, sign_offs = shown_waivers(decision), shown_sign_offs(decision)
    return card_view(evidence, verdict, replace(particulars, waivers=waivers, sign_offs=sign_offs))


def _said(attachment: Attachment, note: str | None, output: str) -> str:
    from mlflow_privacy_gate.cli.verify import decision_fields, decision_text
    from mlflow_privacy_gate.evidence.envelope import open_envelope

    signed = attachment.signed
    sha256 = open_envelope(signed.envelope).sha256
    if output == "json":
        fields = {
            "tag": signed.tag,
            "artifact": signed.artifact,
            "envelope_sha256": sha256,
            "note": note,
            "decision": decision_fields(attachment.decision),
        }
        return json.dumps(fields, indent=2)
    lines = [f"Signed and attached: {signed.tag} (envelope sha256 {sha256[:16]}).", ""]
    lines += [f"Note: {note}.", ""] if note else []
    return "\n".join([*lines, decision_text(attachment.decision)])
