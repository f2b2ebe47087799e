"""The judgement: what a policy says of evidence at a moment, as a pure function. Same inputs, same verdict, for ever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.evidence.facts import CardClaims, Evidence
from mlflow_privacy_gate.policy.gating import RULE_ATTACK, deciding_attacks
from mlflow_privacy_gate.policy.leakage import leakage
from mlflow_privacy_gate.policy.margin import declared_categories, margin_in_force
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.privacy_budget import contradictions
from mlflow_privacy_gate.policy.requirements import age, completeness, expiry
from mlflow_privacy_gate.policy.validity import validity
from mlflow_privacy_gate.vocabulary import Effect, Finding, Outcome, ReasonCode


@dataclass(frozen=True)
class Verdict:
    """What a policy says of evidence, with every finding.

    ``attack`` and ``attack_auc``: the gating attack with the largest AUC (a fraction in [0, 1]), None where none was measured.
    ``confidence_auc``: the rule's own number, None for models without probabilities. ``margin``: the one in force, and where it comes
    from. ``headroom``: how far the attack AUC lies below it, else negative. ``expires_at``: until when this verdict can be a pass.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    attack: str | None
    attack_auc: float | None
    confidence_auc: float | None
    margin: float
    margin_source: str
    headroom: float | None
    expires_at: datetime

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """The codes of all findings, each once, in order of appearance."""
        return tuple(dict.fromkeys(str(finding.code) for finding in self.findings))


def judge(policy: Policy, evidence: Evidence, *, now: datetime, exempted: bool = False) -> Verdict:
    """Say pass, fail or inconclusive of this evidence under this policy at ``now`` (timezone-aware), with all findings at once.

    Only a stated pass is a pass: whatever the policy requires and the evidence lacks is a finding of its own. ``exempted``: a privacy
    officer's signed statement stands behind a card's `personal_data: false`; it answers that finding and no other.
    """
    margin = margin_in_force(policy, evidence.card)
    findings = (
        *leakage(policy, evidence, margin),
        *contradictions(evidence),
        *validity(policy, evidence, margin.value),
        *completeness(policy, evidence),
        *margin.problems,
        *_card(policy, evidence.card, exempted=exempted),
        *age(policy, evidence, now),
    )
    worst = _worst_attack(policy, evidence)
    return Verdict(
        outcome=outcome_of(findings),
        findings=findings,
        attack=worst[0] if worst else None,
        attack_auc=worst[1] if worst else None,
        confidence_auc=_auc(evidence, RULE_ATTACK),
        margin=margin.value,
        margin_source=margin.source,
        headroom=margin.value - worst[1] if worst else None,
        expires_at=expiry(policy, evidence),
    )


def outcome_of(findings: Sequence[Finding]) -> Outcome:
    """Rank the findings: a broken test outranks a fail, a fail outranks inconclusive, and only warnings leave a pass."""
    effects = {finding.effect for finding in findings}
    if Effect.BROKEN in effects:
        return Outcome.INCONCLUSIVE
    if Effect.FAIL in effects:
        return Outcome.FAIL
    return Outcome.PASS if effects <= {Effect.WARN} else Outcome.INCONCLUSIVE


def _card(policy: Policy, card: CardClaims, *, exempted: bool) -> tuple[Finding, ...]:
    findings = []
    if card.personal_data is False and not exempted:
        findings.append(
            Finding(
                ReasonCode.PG401,
                "The card says `personal_data: false`; that counts only with a privacy officer's signed statement on these bytes.",
            )
        )
    denied = [category for category in declared_categories(card) if category in policy.deny]
    if denied:
        findings.append(
            Finding(
                ReasonCode.PG402,
                f"The card declares {', '.join(denied)} data, which the policy refuses whatever the score.",
            )
        )
    return tuple(findings)


def _worst_attack(policy: Policy, evidence: Evidence) -> tuple[str, float] | None:
    measured = [(name, auc) for name in deciding_attacks(policy, evidence) if (auc := _auc(evidence, name)) is not None]
    return max(measured, key=lambda pair: pair[1], default=None)


def _auc(evidence: Evidence, name: str) -> float | None:
    facts = evidence.attack(name)
    metric = facts.metric("auc") if facts is not None else None
    value = metric.value if metric is not None else None
    return value if value is not None and math.isfinite(value) else None
