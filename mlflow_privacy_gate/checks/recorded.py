"""What is recorded of a model, as far as it is believed now: its test judged anew, and card and report made from it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from mlflow_privacy_gate.cards.card import write_card, write_untested
from mlflow_privacy_gate.cards.description import description
from mlflow_privacy_gate.cards.rows import FieldRow, FindingRow
from mlflow_privacy_gate.cards.untested import UNTESTED, UntestedView, untested_view
from mlflow_privacy_gate.cards.view import CardView, card_view
from mlflow_privacy_gate.checks.papers import recorded_particulars, templates_of
from mlflow_privacy_gate.checks.stored_curves import stored_curves
from mlflow_privacy_gate.errors import EvidenceRejected, PrivacyGateError
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.officer_statements import attached, exemptions_in_force
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence, verify
from mlflow_privacy_gate.models.mlmodel import read_mlmodel
from mlflow_privacy_gate.policy import Verdict, judge
from mlflow_privacy_gate.vocabulary import ATTESTATION_ARTIFACT, ATTESTATION_TAG, Finding, ReasonCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mlflow_privacy_gate.cards.particulars import SignOff, WaiverInForce
    from mlflow_privacy_gate.checks.found_card import FoundCard
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry

NEVER_TESTED = "No test of this model is recorded: it was not checked, or its evidence was taken away."


@dataclass(frozen=True)
class RecordedTest:
    """A model's recorded test that is believed at this moment, and what the policy in force says of it."""

    verified: VerifiedEvidence
    verdict: Verdict


class Statements(Protocol):
    """What officers' statements come to, as a card prints it."""

    @property
    def waivers(self) -> tuple[WaiverInForce, ...]:
        """The waivers in force."""

    @property
    def sign_offs(self) -> tuple[SignOff, ...]:
        """The sign-offs that count."""


Officers: TypeAlias = "Callable[[RecordedTest], Statements]"


@dataclass(frozen=True)
class RecordedCard:
    """A card made again from what is recorded, the description that belongs to it (None for an unregistered model), and its view."""

    text: str
    description: str | None
    view: CardView | UntestedView

    @property
    def verdict(self) -> str:
        """What the card says: an outcome, or ``untested``."""
        return UNTESTED if isinstance(self.view, UntestedView) else str(self.view.outcome)

    @property
    def findings(self) -> tuple[FindingRow, ...]:
        """What the card lists against the model, or why no test of it counts."""
        return self.view.findings


def recorded_test(registry: Registry, model: ResolvedModel, policy: Policy, *, now: datetime) -> RecordedTest | Finding:
    """Give the recorded test that counts at ``now``, or the finding that says why none does.

    The stored bytes are hashed for it; CouldNotLook where they cannot be read, since then nothing is known.
    """
    envelope = recorded_envelope(registry, model)
    if envelope is None:
        return Finding(ReasonCode.PG001, NEVER_TESTED)
    with registry.open_model(model) as folder:
        digest = model_digest(folder)
    try:
        verified = verify(
            envelope,
            keys=policy.trusted_keys,
            allow_unsigned=policy.evidence.unsafe_allow_unsigned,
            model_digest=digest,
            now=now,
            allow_expired=True,  # the judgement finds its age, and a card says more of an old test than that it is old
        )
    except EvidenceRejected as rejection:
        message = f"The recorded test is not believed: {rejection.message}."
        return Finding(rejection.code or ReasonCode.PG002, message, remedy_override=rejection.remedy)
    exempting, _ = exemptions_in_force(
        attached(model.tags).exemptions,
        keys=policy.trusted_keys,
        model_digest=digest,
        workspace=model.workspace,
        now=now,
    )
    return RecordedTest(verified, judge(policy, verified.evidence, now=now, exempted=bool(exempting)))


def recorded_envelope(registry: Registry, model: ResolvedModel) -> bytes | str | None:
    """Give the envelope in a version's tag, or in the run's artifact for a model that is not registered; None where there is none."""
    if model.versioned:
        return (model.tags or {}).get(ATTESTATION_TAG)
    return registry.read_artifact(model, ATTESTATION_ARTIFACT)


def recorded_view(
    registry: Registry,
    test: RecordedTest,
    model: ResolvedModel,
    found: FoundCard,
    policy: Policy,
    statements: Statements,
) -> CardView:
    """Build the view of a recorded test; CardError where the author's card cannot be read."""
    evidence = test.verified.evidence
    signer = next((key.key_id for key in policy.trusted_keys if key.id == test.verified.key_id), None)
    known = registry.known_tests(evidence.model_digest, policy)
    particulars = recorded_particulars(
        model,
        evidence,
        found.declared().words,
        signer=signer,
        envelope_sha256=test.verified.envelope_sha256,
        tests_so_far=None if known is None else known.count_with(test.verified.envelope_sha256),
    )
    counting = replace(
        particulars,
        from_record=True,
        waivers=statements.waivers,
        sign_offs=statements.sign_offs,
        curves=stored_curves(registry, model, attestation_sha256=test.verified.envelope_sha256),
    )
    return card_view(evidence, test.verdict, counting)


def recorded_card(
    registry: Registry,
    model: ResolvedModel,
    found: FoundCard,
    policy: Policy,
    *,
    officers: Officers,
    now: datetime,
) -> RecordedCard:
    """Write the recorded test into the found card, or that no test counts; CardError where the card cannot be added to."""
    test = recorded_test(registry, model, policy, now=now)
    folder = templates_of(policy)
    view: CardView | UntestedView
    if isinstance(test, Finding):
        view = _untested(registry, model, test)
        text = write_untested(found.text, view, templates=folder)
    else:
        view = recorded_view(registry, test, model, found, policy, officers(test))
        text = write_card(found.text, view, templates=folder)
    described = description(text, view, existing=model.description, templates=folder) if model.versioned else None
    return RecordedCard(text, described, view)


def _untested(registry: Registry, model: ResolvedModel, reason: Finding) -> UntestedView:
    return untested_view(
        model, reason, datasets=registry.dataset_inputs(model), signature=_signature_row(registry, model)
    )


def _signature_row(registry: Registry, model: ResolvedModel) -> FieldRow:
    label = "Inputs (signature)"
    try:
        with registry.open_model(model) as folder:
            inputs = read_mlmodel(folder).inputs
    except PrivacyGateError as exc:
        return FieldRow(label, None, exc.message)
    return FieldRow(
        label, None if inputs is None else f"{len(inputs)} named columns", "none with named columns was logged"
    )
