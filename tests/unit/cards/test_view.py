"""A view prints the verdict as judged, and never a pass that was not stated."""

from __future__ import annotations

import pytest
from card_cases import EXPIRES_AT, FAILING_AUCS, attack_facts, evidence, failing_view, passing_view, verdict

from mlflow_privacy_gate.cards import card_view
from mlflow_privacy_gate.evidence.facts import SubgroupFacts
from mlflow_privacy_gate.stats import auc_ceiling, tpr_ceiling
from mlflow_privacy_gate.vocabulary import Finding, Outcome, ReasonCode


def rulings(outcome: Outcome, *findings: Finding, aucs: dict[str, float] | None = None) -> dict[str, str]:
    view = card_view(evidence(aucs), verdict(outcome, findings=findings))
    return {row.name: row.ruling for row in view.attacks}


def over(attack: str) -> Finding:
    return Finding(ReasonCode.PG201, "over", attack, 0.6, 0.55)


def test_each_attack_passes_or_fails_by_the_findings_of_the_verdict() -> None:
    assert set(rulings(Outcome.PASS).values()) == {"pass"}
    found = rulings(Outcome.FAIL, over("loss"), aucs=FAILING_AUCS)
    assert (found["loss"], found["entropy"]) == ("fail", "pass")


@pytest.mark.parametrize("code", [ReasonCode.PG101, ReasonCode.PG105])
def test_no_attack_passes_where_the_test_could_not_be_judged(code: ReasonCode) -> None:
    assert set(rulings(Outcome.INCONCLUSIVE, Finding(code, "broken")).values()) == {"could not judge"}
    assert rulings(Outcome.FAIL, over("loss"), Finding(ReasonCode.PG105, "few"))["entropy"] == "could not judge"


def test_an_attack_that_does_not_gate_is_reported_only_and_stands_last() -> None:
    facts = evidence()
    attacks = (attack_facts("correctness", 0.61), *facts.attacks)
    view = card_view(evidence(attacks=attacks), verdict())
    assert (view.attacks[-1].name, view.attacks[-1].ruling) == ("correctness", "reported only")


def test_an_attack_without_an_auc_is_not_measured_and_no_pass() -> None:
    view = card_view(evidence(attacks=(attack_facts("loss", None),)), verdict())
    row = view.attacks[0]
    assert (row.auc, row.interval, row.headroom, row.ruling) == (
        "not measured",
        "not measured",
        "not measured",
        "could not judge",
    )


def test_findings_of_one_code_are_told_together_with_one_remedy() -> None:
    (row,) = failing_view().findings
    assert (row.code, len(row.messages)) == ("PG201", 4)


def test_a_group_without_rows_on_one_side_is_too_small_and_neither_0_nor_1() -> None:
    view = passing_view(subgroups=(SubgroupFacts("class", "b", 300, 0, None, note="too small"),))
    assert (view.subgroups[0].auc, view.subgroups[0].rows_non_members) == ("too small", "fewer than 10")


def test_a_tiny_group_is_too_small_whatever_auc_its_facts_hold() -> None:
    view = passing_view(subgroups=(SubgroupFacts("class", "b", 300, 3, 1.0),))
    assert view.subgroups[0].auc == "too small"


def test_the_verdicts_own_expiry_is_shown() -> None:
    assert passing_view().expires_at == f"{EXPIRES_AT:%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize(
    ("epsilon", "delta", "fpr", "tpr"),
    [(0.0, 0.0, 0.01, 0.01), (1.0, 0.0, 0.01, 0.027183), (8.0, 1e-5, 0.01, 0.999668)],
)
def test_the_ceilings_of_a_claim_are_the_known_ones(epsilon: float, delta: float, fpr: float, tpr: float) -> None:
    assert tpr_ceiling(epsilon, delta, fpr) == pytest.approx(tpr, abs=2e-6)
    assert auc_ceiling(0.0, 0.0) == 0.5
    assert auc_ceiling(1e6, 0.0) == 1.0
