"""What leaks: every gating attack over the margin (PG201), every TPR over its limit (PG202), and what may still be over (PG105)."""

from __future__ import annotations

from collections.abc import Iterator

from mlflow_privacy_gate.evidence.facts import WORST_AUC, AttackFacts, Evidence, Metric
from mlflow_privacy_gate.policy.gating import deciding_attacks
from mlflow_privacy_gate.policy.margin import Margin, exceeds
from mlflow_privacy_gate.policy.model import DecideOn, Policy
from mlflow_privacy_gate.policy.wording import interval, number
from mlflow_privacy_gate.stats import rows_needed
from mlflow_privacy_gate.vocabulary import ATTACKS, Finding, ReasonCode, tpr_metric_id


def leakage(policy: Policy, evidence: Evidence, margin: Margin) -> Iterator[Finding]:
    """Compare what each gating attack measured with the margin in force and the policy's TPR limits."""
    for name in deciding_attacks(policy, evidence):
        facts = evidence.attack(name)
        if facts is None:
            continue  # a requirement that is not met, and found as such
        auc = facts.auc
        if auc is not None and auc.value is not None:
            yield from _auc(policy, facts, auc, auc.value, margin)
        yield from _tpr(policy, facts)


def _auc(policy: Policy, facts: AttackFacts, auc: Metric, value: float, margin: Margin) -> Iterator[Finding]:
    name = facts.id
    chosen = ", wider for being the worst of several" if facts.metric(WORST_AUC) else ""
    measured = f"AUC {number(value, against=margin.value)} ({interval(auc.ci_low, auc.ci_high)}{chosen})"
    if exceeds(value, margin.value):
        yield Finding(
            ReasonCode.PG201,
            f"The attack {name} ({ATTACKS[name].title}) tells training rows apart with {measured}, "
            f"over the margin {number(margin.value)} ({margin.source}).",
            attack=name,
            value=value,
            limit=margin.value,
        )
    elif policy.decide_on is DecideOn.UPPER and auc.upper is not None and exceeds(auc.upper, margin.value):
        yield Finding(
            ReasonCode.PG105,
            f"The attack {name} is within the margin with {measured}, but its upper bound "
            f"{number(auc.upper, against=margin.value)} is over {number(margin.value)} ({margin.source}). "
            f"About {rows_needed(margin.value):,} rows a side are needed to tell.",
            attack=name,
            value=auc.upper,
            limit=margin.value,
        )


def _tpr(policy: Policy, facts: AttackFacts) -> Iterator[Finding]:
    for fpr, limit in policy.margin.tpr_at_fpr.items():
        metric = facts.metric(tpr_metric_id(fpr))
        if metric is None:
            continue  # a requirement that is not met, and found as such
        words = f"TPR at {fpr:.4g} FPR"
        if metric.value is None:
            yield Finding(
                ReasonCode.PG105,
                f"The attack {facts.id} has too few rows for its {words} ({metric.note or 'not resolvable'}).",
                attack=facts.id,
            )
        elif exceeds(metric.value, limit):
            yield Finding(
                ReasonCode.PG202,
                f"The attack {facts.id} finds {metric.value:.2%} of the members at {fpr:.4g} FPR "
                f"({interval(metric.ci_low, metric.ci_high)}), over the limit {limit:.4g}.",
                attack=facts.id,
                value=metric.value,
                limit=limit,
            )
        elif policy.decide_on is DecideOn.UPPER and metric.upper is not None and exceeds(metric.upper, limit):
            yield Finding(
                ReasonCode.PG105,
                f"The attack {facts.id} has a {words} of {metric.value:.4g}, within the limit {limit:.4g}, "
                f"but its upper bound {metric.upper:.4g} is over it: too few rows.",
                attack=facts.id,
                value=metric.upper,
                limit=limit,
            )
