"""What officers' statements come to at one promotion: which findings a waiver permits, whether someone signed off.

A statement that does not count says why, and changes nothing else: taking statements away can only turn an allowance into a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.officer_statements import Attached, VerifiedStatement, verify_statement
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind, SignOff, Waiver
from mlflow_privacy_gate.evidence.verification import CLOCK_SKEW
from mlflow_privacy_gate.gate.lookalikes import folded, plain_letters
from mlflow_privacy_gate.gate.promotion import PromotionTarget, Route, blocking
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.wording import plural
from mlflow_privacy_gate.vocabulary import DEFAULT_WORKSPACE, REASONS, Effect, Finding, ReasonCode

_T = TypeVar("_T", SignOff, Waiver)
SCOPE_KINDS = {Route.STAGE: ScopeKind.STAGE, Route.ALIAS: ScopeKind.ALIAS}
_NEEDS_OFFICER = "have a privacy officer sign it with a key that the policy lists in that role"


@dataclass(frozen=True)
class Promotable:
    """One believed test and what it is to be used for, now."""

    evidence_sha256: str
    target: PromotionTarget
    now: datetime


@dataclass(frozen=True)
class Weighed:
    """The findings after the statements were heard, the waivers that permit any of them, and the sign-offs that count."""

    findings: tuple[Finding, ...]
    waivers: tuple[VerifiedStatement[Waiver], ...]
    sign_offs: tuple[VerifiedStatement[SignOff], ...]


def weigh(policy: Policy, findings: Sequence[Finding], papers: Attached, asked: Promotable) -> Weighed:
    """Hear the statements on a verdict's findings: add a missing sign-off, and mark as waived what a waiver in force permits."""
    sign_offs, unheard = _sign_offs(policy, papers.sign_offs, asked)
    heard = list(findings)
    if policy.sign_off.required and not sign_offs:
        said = "".join(f"; {reason}" for reason in unheard)
        heard.append(
            Finding(ReasonCode.PG301, f"No privacy officer has signed off this test for this promotion{said}.")
        )
    if not blocking(heard):
        return Weighed(tuple(heard), (), sign_offs)
    waivers, objections = _waivers(policy, papers.waivers, asked)
    codes = {finding.code for finding in blocking(heard)}
    used = tuple(waiver for waiver in waivers if permitted(waiver.statement) & codes)
    waived = {code for waiver in used for code in permitted(waiver.statement)}
    against = blocking(heard)
    heard = [
        replace(finding, effect_override=Effect.WAIVED) if finding in against and finding.code in waived else finding
        for finding in heard
    ]
    if not blocking(heard):
        objections = [replace(objection, effect_override=Effect.WARN) for objection in objections]
    return Weighed((*heard, *objections), used, sign_offs)


def answering(policy: Policy, papers: Attached, asked: Promotable) -> tuple[VerifiedStatement[Waiver], ...]:
    """Give the waivers of PG108 that count for this very promotion, whichever test they name: that of an earlier fail answers for it."""
    believed, _ = _believed(Waiver, policy, papers.waivers, asked.now)
    return tuple(
        verified
        for verified in believed
        if ReasonCode.PG108 in verified.statement.findings
        and _covers(verified.statement.scope, asked.target)
        and not faults(policy, verified.statement)
        and not _outside(verified.statement, asked.now)
    )


def permitted(waiver: Waiver) -> frozenset[ReasonCode]:
    """Give the codes that a waiver can permit: those it names, without those that no waiver may cover."""
    return frozenset(code for code in waiver.findings if REASONS[code].waivable)


def faults(policy: Policy, waiver: Waiver) -> list[Finding]:
    """Find what keeps a waiver from ever counting under this policy, whenever and for whatever it is used."""
    found = []
    if _one_person(waiver.requested_by, waiver.approved_by):
        found.append(
            Finding(ReasonCode.PG303, f"{waiver.requested_by} both requested and approved the waiver; that takes two.")
        )
    days = waiver.effective_until - waiver.effective_on
    if days > timedelta(days=policy.waivers.max_days):
        limit = plural(policy.waivers.max_days, "day")
        found.append(
            Finding(ReasonCode.PG302, f"The waiver runs for {_days(days)} days; the policy allows {limit} at most.")
        )
    if not permitted(waiver):
        named = ", ".join(waiver.findings)
        found.append(Finding(ReasonCode.PG302, f"The waiver covers {named} only, which no waiver may cover."))
    return found


def _waivers(
    policy: Policy, envelopes: Sequence[bytes | str], asked: Promotable
) -> tuple[list[VerifiedStatement[Waiver]], list[Finding]]:
    """Give the waivers that count here and now, and a finding for everything that keeps one of the others from counting."""
    believed, objections = _believed(Waiver, policy, envelopes, asked.now)
    counting = []
    for verified in believed:
        waiver = verified.statement
        against = faults(policy, waiver)
        misses = [*_misses(waiver, asked), *_outside(waiver, asked.now)]
        if misses:
            name = verified.envelope_sha256[:12]
            against.append(Finding(ReasonCode.PG302, f"The waiver {name} does not count here: {'; '.join(misses)}."))
        objections += against
        if not against:
            counting.append(verified)
    return counting, objections


def _sign_offs(
    policy: Policy, envelopes: Sequence[bytes | str], asked: Promotable
) -> tuple[tuple[VerifiedStatement[SignOff], ...], list[str]]:
    """Give the sign-offs that count here, and why each of the others does not."""
    believed, objections = _believed(SignOff, policy, envelopes, asked.now)
    unheard = [objection.message.rstrip(".") for objection in objections]
    counting = []
    for verified in believed:
        misses = _misses(verified.statement, asked)
        if misses:
            unheard.append(f"the sign-off {verified.envelope_sha256[:12]} does not count here: {', '.join(misses)}")
        else:
            counting.append(verified)
    return tuple(counting), unheard


def _believed(
    kind: type[_T], policy: Policy, envelopes: Sequence[bytes | str], now: datetime
) -> tuple[list[VerifiedStatement[_T]], list[Finding]]:
    word = "waiver" if kind is Waiver else "sign-off"
    believed, objections = [], []
    for envelope in dict.fromkeys(envelopes):
        try:
            believed.append(verify_statement(kind, envelope, keys=policy.trusted_keys, now=now))
        except EvidenceRejected as rejection:
            code = rejection.code or ReasonCode.PG002
            message = f"The {word} is not believed: {rejection.message}."
            objections.append(Finding(code, message, remedy_override=rejection.remedy or _NEEDS_OFFICER))
    # Anyone may write a tag: many that fail alike are told once.
    return believed, list(dict.fromkeys(objections))


def _misses(statement: SignOff | Waiver, asked: Promotable) -> list[str]:
    misses = []
    if statement.evidence_sha256 != asked.evidence_sha256:
        misses.append(f"it is about another test (envelope sha256 {statement.evidence_sha256[:16]})")
    if not _covers(statement.scope, asked.target):
        misses.append(f"it is for {statement.scope}")
    return misses


def _outside(waiver: Waiver, now: datetime) -> list[str]:
    if now < waiver.effective_on - CLOCK_SKEW:
        return [f"it begins on {_day(waiver.effective_on)}"]
    return [f"it ended on {_day(waiver.effective_until)}"] if now > waiver.effective_until else []


def _covers(scope: Scope, target: PromotionTarget) -> bool:
    """Whether the scope is this very target, in this very workspace; MLflow's stages know no letter case, its aliases and names do."""
    if (scope.workspace or DEFAULT_WORKSPACE) != target.workspace:
        return False
    kind = SCOPE_KINDS.get(target.route, ScopeKind.NAME)
    if kind is ScopeKind.NAME:
        return scope.kind is kind and scope.registered_model == scope.value == target.value
    same = folded(scope.value) == folded(target.value) if kind is ScopeKind.STAGE else scope.value == target.value
    return scope.kind is kind and same and scope.registered_model == target.name


def _one_person(one: str, other: str) -> bool:
    """Whether two names are one, however they are spaced, capitalised or spelled with look-alike letters."""
    first, second = (" ".join(folded(name).split()) for name in (one, other))
    if first == second:
        return True
    return not (first.isascii() and second.isascii()) and plain_letters(one) == plain_letters(other)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _days(length: timedelta) -> str:
    return f"{length / timedelta(days=1):.4g}"
