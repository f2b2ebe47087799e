"""Whether `decide_on: upper` keeps its promise through the whole judgement: simulated tests of models at the margin, fixed seeds."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import cast

import numpy as np
import pytest
from evidence_builder import PASSING_AUCS, passing_evidence
from scipy.stats import norm

from mlflow_privacy_gate.checks.attacking import Scored, facts_of
from mlflow_privacy_gate.checks.observing import Pool
from mlflow_privacy_gate.evidence.facts import AttackFacts
from mlflow_privacy_gate.policy import judge, parse_policy
from mlflow_privacy_gate.vocabulary import Outcome

SIMULATIONS = 500
MARGIN = 0.55
NO_REFERENCES = cast(Pool, None)  # what sums up an attack without references does not look at the pool


def share_that_passes(true_auc: float, rows: int, *, decide_on: str, ties: bool) -> float:
    """Simulate tests of a model whose worst attack has this true AUC, three correlated attacks beside it doing a little worse."""
    policy = parse_policy(f"version: 1\ndecide_on: {decide_on}\n")
    rng = np.random.default_rng([rows, ties])
    is_member = np.repeat([True, False], rows)
    shift = np.sqrt(2) * norm.ppf(true_auc)
    passed = 0
    for _ in range(SIMULATIONS):
        shared = rng.normal(size=2 * rows)
        attacks: list[AttackFacts] = []
        for position, name in enumerate(PASSING_AUCS):
            own = np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=2 * rows)
            scores = own + shift * (1 - 0.1 * position) * is_member
            scored = Scored(name, np.round(scores, 1) if ties else scores, is_member)
            attacks.append(facts_of(scored, NO_REFERENCES, fprs=(), seed=0))
        evidence = passing_evidence("0" * 64, rows=rows, attacks=tuple(attacks))
        passed += judge(policy, evidence, now=datetime.now(timezone.utc)).outcome is Outcome.PASS
    return passed / SIMULATIONS


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("rows", [200, 1000])
def test_a_model_over_the_margin_passes_at_most_5_times_in_a_hundred(rows: int, ties: bool) -> None:
    passed = share_that_passes(MARGIN + 0.0005, rows, decide_on="upper", ties=ties)
    assert passed <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


@pytest.mark.slow
def test_deciding_on_the_point_passes_such_a_model_far_more_often() -> None:
    assert share_that_passes(MARGIN + 0.0005, 200, decide_on="point", ties=False) > 0.15


@pytest.mark.slow
def test_a_model_without_a_leak_passes_on_enough_rows() -> None:
    assert share_that_passes(0.5, 1000, decide_on="upper", ties=False) > 0.9
