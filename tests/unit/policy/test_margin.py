from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.evidence.facts import CardClaims
from mlflow_privacy_gate.policy.margin import declared_categories, exceeds, margin_in_force
from mlflow_privacy_gate.policy.parsing import parse_policy
from mlflow_privacy_gate.vocabulary import ReasonCode

POLICY = parse_policy("version: 1\nmargin: {categories: {finance: 0.54}}\n")


def test_the_default_holds_where_the_card_says_nothing() -> None:
    margin = margin_in_force(POLICY, CardClaims())
    assert (margin.value, margin.source, margin.problems) == (0.55, "default of privacy-gate.yaml", ())


def test_the_smallest_declared_category_lowers_the_margin() -> None:
    margin = margin_in_force(POLICY, CardClaims(data_categories=("finance", "health", "weather")))
    assert (margin.value, margin.source) == (0.52, "data category health")


@pytest.mark.parametrize("word", ["Health", " health ", "HEALTH"])
def test_a_category_counts_in_any_letter_case(word: str) -> None:
    assert margin_in_force(POLICY, CardClaims(data_categories=(word,))).value == 0.52


def test_a_category_counts_with_hyphen_or_space() -> None:
    assert declared_categories(CardClaims(data_categories=("controlled-access", "Controlled Access"))) == (
        "controlled_access",
    )


def test_the_card_may_lower_the_margin() -> None:
    margin = margin_in_force(POLICY, CardClaims(max_attack_auc=0.51, data_categories=("health",)))
    assert (margin.value, margin.source, margin.problems) == (0.51, "the model card", ())


@pytest.mark.parametrize(("asked", "categories"), [(0.6, ()), (0.53, ("health",)), (1.0, ())])
def test_a_card_above_the_policy_is_a_problem_and_not_clamped_silently(
    asked: float, categories: tuple[str, ...]
) -> None:
    margin = margin_in_force(POLICY, CardClaims(max_attack_auc=asked, data_categories=categories))
    [problem] = margin.problems
    assert problem.code is ReasonCode.PG404
    assert (problem.value, problem.limit) == (asked, margin.value)
    assert margin.value == (0.52 if categories else 0.55)


@pytest.mark.parametrize("asked", [0.5, 0.0, -1.0, 1.2, 55.0, math.nan, math.inf])
def test_a_card_margin_that_is_no_margin_is_a_problem(asked: float) -> None:
    margin = margin_in_force(POLICY, CardClaims(max_attack_auc=asked))
    assert margin.value == 0.55
    assert [problem.code for problem in margin.problems] == [ReasonCode.PG404]


def test_a_card_that_repeats_the_policys_margin_is_fine() -> None:
    assert margin_in_force(POLICY, CardClaims(max_attack_auc=0.55)).problems == ()


def test_exactly_the_margin_is_within_it_and_the_next_float_is_not() -> None:
    assert not exceeds(0.55, 0.55)
    assert not exceeds(11 / 20, 0.55)
    assert exceeds(math.nextafter(0.55, 1), 0.55)
    assert not exceeds(math.nextafter(0.55, 0), 0.55)
    assert exceeds(np.float64(0.5500001), 0.55)


@pytest.mark.parametrize(("value", "limit"), [(math.nan, 0.55), (0.4, math.nan), (math.inf, 0.55)])
def test_what_is_no_number_is_over_every_limit(value: float, limit: float) -> None:
    assert exceeds(value, limit)


@given(st.floats(0, 1), st.floats(0.5, 1))
def test_the_comparison_agrees_with_that_of_floats(value: float, limit: float) -> None:
    assert exceeds(value, limit) == (value > limit)


@given(
    st.lists(st.sampled_from(["health", "finance", "other"])),
    st.none() | st.floats(0.5, 1, exclude_min=True),
)
def test_no_card_can_raise_the_margin(categories: list[str], asked: float | None) -> None:
    claims = CardClaims(data_categories=tuple(categories), max_attack_auc=asked)
    assert margin_in_force(POLICY, claims).value <= margin_in_force(POLICY, CardClaims()).value
