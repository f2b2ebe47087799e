"""What an officer signs about, and what a promotion would be told once the statement stood with the version.

A statement is about the very test that a promotion would be judged by at this moment. One that could never be heard under the policy (four
eyes, too long, a key in another role) is refused before it is attached anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.officer_statements import SignedStatement, sign_statement, verify_statement
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind, Waiver
from mlflow_privacy_gate.gate.examining import decide_by_tags, examine
from mlflow_privacy_gate.gate.officers import SCOPE_KINDS, faults
from mlflow_privacy_gate.gate.promotion import Decision, PromotionTarget, Route

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.ledger import KnownTests
    from mlflow_privacy_gate.evidence.officer_statements import OfficerStatement, VerifiedStatement
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry


@dataclass(frozen=True)
class Attachment:
    """A signed statement that the gate believes, and what the promotion it is about will be told once it is attached."""

    signed: SignedStatement
    decision: Decision


def decision_to_sign(
    registry: Registry, model: ResolvedModel, policy: Policy, *, route: Route, value: str, now: datetime
) -> Decision:
    """Decide the promotion as things stand, for an officer to sign about; UsageError where no test is believed, so none can be named."""
    if not model.versioned:
        raise UsageError(f"{model.uri}: not a registered version, so there is nothing to promote; register it first")
    decision = examine(registry, model, policy, route=route, value=value, now=now)
    if decision.envelope_sha256 is None:
        raise UsageError(f"{model.uri}: there is no test that a statement could be about.\n{decision.refusal}")
    return decision


def scope_of(target: PromotionTarget) -> Scope:
    """Give the scope that covers this target and no other."""
    kind = SCOPE_KINDS.get(target.route, ScopeKind.NAME)
    name = target.value if kind is ScopeKind.NAME else target.name
    return Scope(name, kind, target.value, target.stated_workspace)


def sign_about(
    decision: Decision,
    statement: OfficerStatement,
    signer: Signer,
    *,
    model: ResolvedModel,
    policy: Policy,
    now: datetime,
    known: KnownTests | None = None,
) -> Attachment:
    """Sign a statement about a promotion that :func:`decision_to_sign` decided, and decide it again with the statement.

    Nothing is written. UsageError for a statement that the policy would never hear.
    """
    signed = sign_statement(statement, signer)
    try:
        believed = verify_statement(type(statement), signed.envelope, keys=policy.trusted_keys, now=now)
    except EvidenceRejected as exc:
        raise UsageError(
            f"not attached, since the gate would not believe it: {exc.message}; sign with a privacy officer's key of this policy",
            code=exc.code,
        ) from exc
    found = faults(policy, statement) if isinstance(statement, Waiver) else []
    if found:
        said = " ".join(finding.message for finding in found)
        raise UsageError(f"not attached, since the gate would never hear it: {said}", code=found[0].code)
    tags = {**(model.tags or {}), signed.tag: signed.tag_value}
    decided = decide_by_tags(policy, tags, target=decision.target, now=now, known=known)
    if known is None and isinstance(statement, Waiver) and statement.evidence_sha256 != decision.envelope_sha256:
        # The ledger, which holds the fail, cannot be asked from here; the officer's word that there is one is enough to say "waived".
        decided = replace(decided, waivers=(*decided.waivers, cast("VerifiedStatement[Waiver]", believed)))
    return Attachment(signed, decided)


def earlier_test(decision: Decision, named: str, known: KnownTests | None) -> str:
    """Give the envelope sha256 of an earlier test of the same bytes that is ``named`` by it, or by its first digits.

    UsageError where the ledger knows no such test of these bytes, or more than one; where it cannot be asked (``known`` None) only a
    whole sha256 will do.
    """
    digits = named.lower()
    if known is None:
        if re.fullmatch(r"[0-9a-f]{64}", digits):
            return digits
        raise UsageError(
            f"--test: the ledger cannot be asked from here, so all 64 digits of the sha256 are needed, got {named!r}"
        )
    tests = [sha256 for sha256 in known.sha256s if sha256 != decision.envelope_sha256]
    found = [sha256 for sha256 in tests if digits and sha256.startswith(digits)]
    if len(found) != 1:
        held = ", ".join(sha256[:16] for sha256 in tests) or "none"
        raise UsageError(
            f"--test: expected the envelope sha256 of one earlier test of these bytes ({held}), got {named!r}"
        )
    return found[0]
