"""Officers' statements as cards and reports print them, from what counted in a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from mlflow_privacy_gate.cards.particulars import SignOff, WaiverInForce
from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.officer_statements import attached, verify_statement
from mlflow_privacy_gate.evidence.officers import Scope, Waiver
from mlflow_privacy_gate.evidence.officers import SignOff as SignedOff
from mlflow_privacy_gate.gate.examining import decide_by_tags
from mlflow_privacy_gate.gate.officers import SCOPE_KINDS, permitted
from mlflow_privacy_gate.gate.promotion import Decision, PromotionTarget, Route
from mlflow_privacy_gate.vocabulary import Outcome

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy


_T = TypeVar("_T", Waiver, SignedOff)


@dataclass(frozen=True)
class ShownStatements:
    """What officers' statements on a version come to, as a card or report prints it."""

    waivers: tuple[WaiverInForce, ...] = ()
    sign_offs: tuple[SignOff, ...] = ()


def statements_in_force(policy: Policy, model: ResolvedModel, *, model_digest: str, now: datetime) -> ShownStatements:
    """Give what counts at ``now`` of a version's waivers and sign-offs, each for the promotion that it is for itself.

    ``model_digest`` (hex) is of the stored bytes as they are now.
    """
    if model.name is None or model.version is None:
        return ShownStatements()
    decisions = []
    for scope in _scopes(policy, model, now):
        route = next((route for route, kind in SCOPE_KINDS.items() if kind is scope.kind), Route.COPY)
        target = PromotionTarget(
            scope.registered_model, model.version, route, scope.value, model_digest, workspace=model.workspace
        )
        decisions.append(decide_by_tags(policy, model.tags, target=target, now=now))
    return ShownStatements(
        tuple(dict.fromkeys(waiver for decision in decisions for waiver in shown_waivers(decision))),
        tuple(dict.fromkeys(sign_off for decision in decisions for sign_off in shown_sign_offs(decision))),
    )


def _scopes(policy: Policy, model: ResolvedModel, now: datetime) -> tuple[Scope, ...]:
    papers = attached(model.tags)
    waivers = _believed(Waiver, papers.waivers, policy, now)
    sign_offs = _believed(SignedOff, papers.sign_offs, policy, now)
    return tuple(dict.fromkeys((*(one.scope for one in waivers), *(one.scope for one in sign_offs))))


def _believed(kind: type[_T], envelopes: Sequence[bytes | str], policy: Policy, now: datetime) -> list[_T]:
    believed = []
    for envelope in envelopes:
        try:
            believed.append(verify_statement(kind, envelope, keys=policy.trusted_keys, now=now).statement)
        except EvidenceRejected:
            continue  # what is not believed is for no promotion; a decision says so, a card lists what counts
    return believed


def shown_waivers(decision: Decision) -> tuple[WaiverInForce, ...]:
    """Give the waivers by which a promotion is allowed; none where it is refused in spite of them."""
    if decision.outcome is not Outcome.WAIVED:
        return ()
    return tuple(
        WaiverInForce(
            covers=tuple(str(code) for code in waiver.findings if code in permitted(waiver)),
            reason=waiver.reason,
            requested_by=waiver.requested_by,
            approved_by=waiver.approved_by,
            effective_until=waiver.effective_until,
            reference=waiver.reference,
            compensating_controls=waiver.compensating_controls,
        )
        for waiver in (verified.statement for verified in decision.waivers)
    )


def shown_sign_offs(decision: Decision) -> tuple[SignOff, ...]:
    """Give the sign-offs that count for a decision."""
    return tuple(
        SignOff(
            signed_by=verified.statement.signed_by,
            signed_at=verified.statement.stated_at,
            statement_sha256=verified.envelope_sha256,
            remark=verified.statement.remark,
        )
        for verified in decision.sign_offs
    )
