"""The section of a card and report on a claim of differential privacy: the claim, what it allows, and what was measured of it."""

from __future__ import annotations

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.rows import NOT_MEASURED, TPR_PREFIX, FieldRow
from mlflow_privacy_gate.evidence.facts import Evidence, RecomputedEpsilon
from mlflow_privacy_gate.stats.differential_privacy import auc_ceiling, band, tpr_ceiling

_FPRS = (0.01, 0.001)
_BANDS = {
    "strong": "strong (epsilon at most 1): evaluation recommended",
    "moderate": "moderate (epsilon above 1, at most 10): evaluation required",
    "weak": "weak (epsilon above 10): full evaluation, as without a claim",
}
_NOT_HELD = "the evidence does not hold it"


def privacy_budget(evidence: Evidence) -> tuple[FieldRow, ...]:
    """Print a claim with its band and ceilings, beside what was recomputed and measured; empty where nothing is claimed."""
    claim = evidence.card.differential_privacy
    if claim is None:
        return ()
    epsilon, delta = claim.epsilon, claim.delta
    ceilings = ", ".join(
        f"{numbers.plain(tpr_ceiling(epsilon, delta, fpr))} at {numbers.percentage(fpr)} FPR" for fpr in _FPRS
    )
    return (
        FieldRow("Epsilon (claimed)", numbers.exact(epsilon)),
        FieldRow("Delta (claimed)", numbers.exact(delta)),
        FieldRow("Unit", claim.unit),
        FieldRow("Accountant", claim.accountant),
        FieldRow("Band", _BANDS[band(epsilon)]),
        FieldRow("Epsilon recomputed from the stated training", _recomputed(evidence), "see the limits of this test"),
        FieldRow("Least epsilon that the attacks allow", _lower_bound(evidence), _NOT_HELD),
        FieldRow("Highest attack AUC the claim allows", numbers.plain(auc_ceiling(epsilon, delta))),
        FieldRow("Highest attack AUC measured", _highest_auc(evidence), NOT_MEASURED),
        FieldRow("Highest TPR the claim allows", ceilings),
        FieldRow("Highest TPR measured", _highest_tprs(evidence), NOT_MEASURED),
    )


def _recomputed(evidence: Evidence) -> str | None:
    budget = evidence.privacy_budget
    return "; ".join(_accounted(one) for one in budget.recomputed) or None if budget else None


def _accounted(found: RecomputedEpsilon) -> str:
    value = "none that is finite" if found.epsilon is None else numbers.plain(found.epsilon)
    return f"{value} ({found.method.upper()}, {found.accountant} {found.version})"


def _lower_bound(evidence: Evidence) -> str | None:
    budget = evidence.privacy_budget
    if budget is None or budget.epsilon_lower_bound is None:
        return None
    sides = [numbers.count(rows) for rows in (budget.rows_members, budget.rows_non_members) if rows is not None]
    details = [
        f"{numbers.percentage(budget.level)} confidence" if budget.level is not None else "",
        f"by {budget.attack}" if budget.attack else "",
        f"on {sides[0]} members and {sides[1]} non-members" if len(sides) == 2 else "",
    ]
    return f"{numbers.plain(budget.epsilon_lower_bound)} ({', '.join(part for part in details if part)})"


def _highest_auc(evidence: Evidence) -> str | None:
    metrics = [attack.metric("auc") for attack in evidence.attacks]
    values = [metric.value for metric in metrics if metric is not None and metric.value is not None]
    return numbers.plain(max(values)) if values else None


def _highest_tprs(evidence: Evidence) -> str | None:
    found = []
    for fpr in _FPRS:
        metrics = [attack.metric(f"{TPR_PREFIX}{numbers.exact(fpr)}") for attack in evidence.attacks]
        values = [metric.value for metric in metrics if metric is not None and metric.value is not None]
        if values:
            found.append(f"{numbers.plain(max(values))} at {numbers.percentage(fpr)} FPR")
    return ", ".join(found) or None
