from __future__ import annotations

from datetime import datetime, timezone

import pytest
from evidence_builder import passing_evidence

from mlflow_privacy_gate.evidence.facts import (
    CardClaims,
    DifferentialPrivacyClaim,
    Evidence,
    PrivacyBudgetFacts,
    RecomputedEpsilon,
)
from mlflow_privacy_gate.policy import built_in_policy, judge
from mlflow_privacy_gate.vocabulary import Outcome, ReasonCode

CLAIM = DifferentialPrivacyClaim(1.0, 1e-5, "person")


def claiming(budget: PrivacyBudgetFacts | None, claim: DifferentialPrivacyClaim | None = CLAIM) -> Evidence:
    return passing_evidence("5b" * 32, card=CardClaims(differential_privacy=claim), privacy_budget=budget)


def findings(evidence: Evidence) -> list[tuple[ReasonCode, float | None, float | None]]:
    verdict = judge(built_in_policy(), evidence, now=datetime.now(timezone.utc))
    assert (verdict.outcome is Outcome.PASS) == (not verdict.findings)
    return [(finding.code, finding.value, finding.limit) for finding in verdict.findings]


def by_attack(bound: float | None) -> PrivacyBudgetFacts:
    return PrivacyBudgetFacts((), bound, 0.95, "loss", "in", 500, 500, 0)


def by_training(method: str, epsilon: float | None) -> PrivacyBudgetFacts:
    return PrivacyBudgetFacts((RecomputedEpsilon(method, epsilon, "dp-accounting", "0.6.0"),))


def test_an_attack_that_needs_more_epsilon_than_is_claimed_contradicts_the_claim() -> None:
    assert findings(claiming(by_attack(1.0001))) == [(ReasonCode.PG205, 1.0001, 1.0)]


@pytest.mark.parametrize("bound", [None, 0.0, 0.99, 1.0])
def test_an_attack_within_the_claim_contradicts_nothing(bound: float | None) -> None:
    assert findings(claiming(by_attack(bound))) == []


def test_a_stated_training_that_gives_a_larger_epsilon_contradicts_the_claim() -> None:
    assert findings(claiming(by_training("prv", 1.02))) == [(ReasonCode.PG205, 1.02, 1.0)]
    assert findings(claiming(by_training("prv", None))) == [(ReasonCode.PG205, None, 1.0)]


@pytest.mark.parametrize(("method", "epsilon"), [("prv", 0.97), ("prv", 1.01), ("rdp", 5.0), ("rdp", None)])
def test_rounding_and_a_loose_upper_bound_contradict_nothing(method: str, epsilon: float | None) -> None:
    assert findings(claiming(by_training(method, epsilon))) == []


def test_without_a_claim_or_a_measurement_there_is_nothing_to_contradict() -> None:
    assert findings(claiming(None)) == []
    assert findings(claiming(by_attack(5.0), claim=None)) == []


def test_the_finding_says_claim_bound_attack_and_confidence() -> None:
    verdict = judge(built_in_policy(), claiming(by_attack(2.5)), now=datetime.now(timezone.utc))
    (finding,) = verdict.findings
    for words in ("epsilon 1 at delta 1e-05", "attack loss", "above 2.5", "95% confidence"):
        assert words in finding.message


def test_a_claim_never_lifts_the_margin() -> None:
    evidence = passing_evidence(
        "5b" * 32, aucs={"confidence": 0.7, "loss": 0.7, "entropy": 0.7, "modified_entropy": 0.7}
    )
    claimed = passing_evidence(
        "5b" * 32,
        aucs={"confidence": 0.7, "loss": 0.7, "entropy": 0.7, "modified_entropy": 0.7},
        card=CardClaims(differential_privacy=CLAIM),
        privacy_budget=by_attack(0.5),
    )
    assert [found[0] for found in findings(claimed)] == [found[0] for found in findings(evidence)]
