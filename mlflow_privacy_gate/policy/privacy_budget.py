"""Whether a card's claim of differential privacy can be true (PG205): what an attack reached, and what the stated training gives."""

from __future__ import annotations

from collections.abc import Iterator

from mlflow_privacy_gate.evidence.facts import DifferentialPrivacyClaim, Evidence, PrivacyBudgetFacts
from mlflow_privacy_gate.policy.wording import number
from mlflow_privacy_gate.stats.accounting import PRV
from mlflow_privacy_gate.vocabulary import Finding, ReasonCode

# Accountants agree to one part in a hundred, and authors round.
ROUNDING = 0.01


def contradictions(evidence: Evidence) -> Iterator[Finding]:
    """Find what contradicts the claim; silent where nothing is claimed, or was measured of it."""
    claim, budget = evidence.card.differential_privacy, evidence.privacy_budget
    if claim is None or budget is None:
        return
    yield from _by_attack(claim, budget)
    yield from _by_training(claim, budget)


def _by_attack(claim: DifferentialPrivacyClaim, budget: PrivacyBudgetFacts) -> Iterator[Finding]:
    bound = budget.epsilon_lower_bound
    if bound is None or bound <= claim.epsilon:
        return
    yield Finding(
        ReasonCode.PG205,
        f"The card claims epsilon {number(claim.epsilon)} at delta {claim.delta:.4g}, but what the attack {budget.attack} tells apart "
        f"needs an epsilon above {number(bound, against=claim.epsilon)} ({_confidence(budget)}).",
        attack=budget.attack,
        value=bound,
        limit=claim.epsilon,
    )


def _confidence(budget: PrivacyBudgetFacts) -> str:
    return "confidence not stated" if budget.level is None else f"{budget.level:.0%} confidence"


def _by_training(claim: DifferentialPrivacyClaim, budget: PrivacyBudgetFacts) -> Iterator[Finding]:
    """Compare with the tight accountant alone: an upper bound above the claim contradicts nothing."""
    found = budget.by(PRV)
    if found is None or (found.epsilon is not None and found.epsilon <= claim.epsilon * (1 + ROUNDING)):
        return
    gives = "no finite epsilon" if found.epsilon is None else f"epsilon {number(found.epsilon, against=claim.epsilon)}"
    yield Finding(
        ReasonCode.PG205,
        f"The card claims epsilon {number(claim.epsilon)} at delta {claim.delta:.4g}, but the training it states gives {gives} "
        f"({found.accountant} {found.version}).",
        value=found.epsilon,
        limit=claim.epsilon,
    )
