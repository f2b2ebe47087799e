"""Promises on how several attacks are summed up: the interval of the worst allows for its having been chosen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.checks.attacking import Scored, interval_of_worst, with_worst
from mlflow_privacy_gate.evidence.facts import AttackFacts, Metric

IS_MEMBER = np.repeat([True, False], 300)


def drawn(**shifts: float) -> dict[str, Scored]:
    """Give attacks whose members score higher by so much, each on noise of its own."""
    noise = np.random.default_rng(0)
    return {
        name: Scored(name, noise.normal(size=IS_MEMBER.size) + shift * IS_MEMBER, IS_MEMBER)
        for name, shift in shifts.items()
    }


def left_out(scored: Mapping[str, Scored], name: str, rows: np.ndarray) -> dict[str, Scored]:
    scores = scored[name].scores.copy()
    scores[rows] = np.nan
    return {**scored, name: Scored(name, scores, IS_MEMBER)}


def facts_of(scored: Mapping[str, Scored]) -> dict[str, AttackFacts]:
    found = {}
    for name, one in scored.items():
        own = stats.delong_interval(one.members, one.non_members)
        auc = stats.attack_auc(one.members, one.non_members)
        found[name] = AttackFacts(name, f"{name}/v1", (Metric("auc", auc, own.low, own.high, own.upper, own.method),))
    return found


@pytest.mark.parametrize("rows", [np.array([], dtype=np.intp), np.array([0, 5, 400])], ids=["none", "three"])
def test_the_interval_allows_for_the_choice_whether_or_not_an_attack_left_rows_out(rows: np.ndarray) -> None:
    scored = left_out(drawn(a=0.3, b=0.6, c=0.29), "b", rows)
    facts = facts_of(scored)
    (worst,) = (one for one in with_worst(facts, scored, seed=0) if one.metric("auc_worst"))
    own, shown = worst.metric("auc"), worst.auc
    assert own is not None
    assert shown is not None
    assert shown.value == own.value == stats.attack_auc(scored["b"].members, scored["b"].non_members)
    kept = np.setdiff1d(np.arange(IS_MEMBER.size), rows)
    expected = stats.max_auc_interval(
        {n: (s.scores[kept][IS_MEMBER[kept]], s.scores[kept][~IS_MEMBER[kept]]) for n, s in scored.items()},
        rng=np.random.default_rng(0),
    )
    assert (shown.ci_low, shown.ci_high) == (expected.low, expected.high)
    assert shown.note is not None
    assert ("3 left out" in shown.note) == bool(rows.size)


def test_a_single_attack_has_its_own_interval() -> None:
    scored = drawn(a=0.3)
    (only,) = with_worst(facts_of(scored), scored, seed=0)
    assert only.auc == only.metric("auc")


def test_attacks_without_a_row_in_common_have_no_joint_interval() -> None:
    scored = left_out(drawn(a=0.3, b=0.1), "b", np.flatnonzero(IS_MEMBER))
    assert interval_of_worst(scored, seed=0) is None
