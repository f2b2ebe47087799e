"""Looking at a version through the registry port, to decide one promotion or to say where every version stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mlflow_privacy_gate.errors import EvidenceRejected, PrivacyGateError
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.officer_statements import attached
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.gate.guarding import guarded_alias, guarded_name, guarded_stage
from mlflow_privacy_gate.gate.promotion import Decision, PromotionTarget, Route
from mlflow_privacy_gate.gate.ruling import decide
from mlflow_privacy_gate.vocabulary import ATTESTATION_ARTIFACT, ATTESTATION_TAG

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.ledger import KnownTests
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry

EXPIRES_SOON = timedelta(days=14)


@dataclass(frozen=True)
class Standing:
    """Where one version stands: what it is promoted to now, and what a promotion would be told at this moment.

    ``promoted_as`` names the guarded stage, aliases and name it holds. ``decision`` is for the first of these that would be refused, else
    for the first of these, else for the first guarded route. ``rehashed`` says whether the stored bytes were hashed; otherwise the digest
    in the evidence was taken at its word.
    """

    model: ResolvedModel
    promoted_as: tuple[str, ...]
    decision: Decision
    rehashed: bool

    def expires_soon(self, now: datetime) -> bool:
        """Whether what allows a promotion now, evidence or waiver, stops counting within 14 days."""
        until = self.decision.counts_until
        return self.decision.allowed and until is not None and until <= now + EXPIRES_SOON


def examine(
    registry: Registry, model: ResolvedModel, policy: Policy, *, route: Route, value: str, now: datetime
) -> Decision:
    """Decide, without doing it, whether this version may become ``value`` now; its stored bytes are hashed for it."""
    digest, problem = _stored_digest(registry, model)
    known = registry.known_tests(digest, policy) if digest else None
    return _decided(model, policy, (route, value), now, digest, problem, known)


def standings(
    registry: Registry, policy: Policy, *, name: str | None, rehash: bool, now: datetime
) -> Iterator[Standing]:
    """Say where every version stands under this policy; ``rehash`` hashes the stored bytes of each."""
    for model in registry.versions(name):
        digest, problem = _stored_digest(registry, model) if rehash else _claimed_digest(model)
        known = registry.known_tests(digest, policy) if digest else None
        held = _held(model, policy)
        promotions = held or (default_promotion(policy),)
        decisions = [_decided(model, policy, promotion, now, digest, problem, known) for promotion in promotions]
        refused = (decision for decision in decisions if not decision.allowed)
        yield Standing(model, promoted_as(model, policy), next(refused, decisions[0]), rehash)


def default_promotion(policy: Policy) -> tuple[Route, str]:
    """Name the promotion that is meant when none is named: the first guarded stage, else alias, else Production."""
    if policy.guard.stages:
        return Route.STAGE, policy.guard.stages[0]
    if policy.guard.aliases:
        return Route.ALIAS, policy.guard.aliases[0]
    return Route.STAGE, "Production"


def promoted_as(model: ResolvedModel, policy: Policy) -> tuple[str, ...]:
    """Name every guarded stage, alias and name that this version holds now."""
    words = {Route.STAGE: "stage", Route.ALIAS: "alias"}
    return tuple(f"{words.get(route, 'name')} {value}" for route, value in _held(model, policy))


def _held(model: ResolvedModel, policy: Policy) -> tuple[tuple[Route, str], ...]:
    """Give the promotions that would make this version what it is now; a guarded name counts as creating into it."""
    held = [(Route.STAGE, model.stage)] if model.stage and guarded_stage(policy, model.stage) else []
    held += [(Route.ALIAS, alias) for alias in model.aliases if guarded_alias(policy, alias)]
    held += [(Route.CREATE, model.name)] if model.name and guarded_name(policy, model.name) else []
    return tuple(held)


def _decided(
    model: ResolvedModel,
    policy: Policy,
    promotion: tuple[Route, str],
    now: datetime,
    digest: str | None,
    problem: str | None,
    known: KnownTests | None,
) -> Decision:
    route, value = promotion
    attestation = (model.tags or {}).get(ATTESTATION_TAG)
    target = PromotionTarget(
        name=model.name or model.uri,
        version=model.version or "unregistered",
        route=route,
        value=value,
        model_digest=digest,
        model_digest_problem=problem,
        workspace=model.workspace,
        evidence_location=f"runs:/{model.run_id}/{ATTESTATION_ARTIFACT}" if model.run_id and attestation else None,
    )
    return decide_by_tags(policy, model.tags, target=target, now=now, known=known)


def decide_by_tags(
    policy: Policy,
    tags: Mapping[str, str] | None,
    *,
    target: PromotionTarget,
    now: datetime,
    known: KnownTests | None = None,
) -> Decision:
    """Decide on the evidence and the officers' statements that stand in a version's tags; ``known`` as in :func:`decide`."""
    attestation, papers = (tags or {}).get(ATTESTATION_TAG), attached(tags)
    return decide(
        policy,
        (attestation,) if attestation else (),
        papers.waivers,
        papers.sign_offs,
        papers.exemptions,
        target=target,
        now=now,
        known=known,
    )


def _stored_digest(registry: Registry, model: ResolvedModel) -> tuple[str | None, str | None]:
    """Hash the bytes as they lie there now; None with the reason where they cannot be had."""
    try:
        with registry.open_model(model) as folder:
            return model_digest(folder), None
    except PrivacyGateError as exc:
        return None, exc.message


def _claimed_digest(model: ResolvedModel) -> tuple[str | None, str | None]:
    """Read the digest that the evidence names; what cannot be read is for the decision to say, so any digest serves then."""
    attestation = (model.tags or {}).get(ATTESTATION_TAG)
    if attestation is None:
        return "0" * 64, None
    try:
        return read_statement(open_envelope(attestation).payload).model_digest, None
    except EvidenceRejected:
        return "0" * 64, None
