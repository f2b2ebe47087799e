"""Promises on which recorded dataset is which side."""

from __future__ import annotations

import pytest
from split_fakes import recorded

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS, choose
from mlflow_privacy_gate.vocabulary import ReasonCode


@pytest.mark.parametrize("context", ["training", "train", "Train", " TRAINING "])
def test_members_are_found_in_any_letter_case(context: str) -> None:
    assert choose([recorded("a", context, uri="a.csv")], MEMBERS, role="members")[0].name == "a"


@pytest.mark.parametrize(
    ("contexts", "taken"),
    [
        (["validation", "TEST"], 1),
        (["Holdout", "eval", "val"], 0),
        (["evaluation", "validation"], 0),
        (["holdout", "testing"], 1),
        (["training", "Val"], 1),
    ],
)
def test_non_members_are_test_then_holdout_then_evaluation_then_validation(contexts: list[str], taken: int) -> None:
    inputs = [recorded(str(index), context, uri="a.csv") for index, context in enumerate(contexts)]
    chosen, notes = choose(inputs, NON_MEMBERS, role="non-members")
    assert chosen.name == str(taken)
    assert repr(contexts[taken]) in notes[-1]


def test_two_candidates_of_one_rank_are_never_guessed_between() -> None:
    inputs = [recorded("a", "test", uri="a.csv", digest="aa"), recorded("b", "testing", uri="b.csv", digest="bb")]
    with pytest.raises(SplitsUnavailable, match=r"2 datasets.*'a'.*'b'.*a run of their own") as refused:
        choose(inputs, NON_MEMBERS, role="non-members")
    assert refused.value.code is ReasonCode.PG104


def test_one_dataset_under_two_names_is_no_question() -> None:
    inputs = [recorded("a", "test", uri="a.csv"), recorded("b", "testing", uri="b.csv")]
    assert choose(inputs, NON_MEMBERS, role="non-members")[0].name == "a"


def test_a_dataset_of_a_later_context_is_named_as_not_tested() -> None:
    inputs = [recorded("a", "test", uri="a.csv", digest="aa"), recorded("b", "holdout", uri="b.csv", digest="bb")]
    _, notes = choose(inputs, NON_MEMBERS, role="non-members")
    assert "not tested" in notes[-1]
    assert "'b'" in notes[-1]


def test_a_loadable_dataset_is_taken_over_autologged_code_of_the_same_rank_and_that_is_said() -> None:
    inputs = [recorded("auto", "train", digest="aa"), recorded("mine", "training", uri="a.csv", rows=9)]
    chosen, notes = choose(inputs, MEMBERS, role="members")
    assert chosen.name == "mine"
    assert "'auto'" in notes[-1]


def test_autologged_code_of_another_number_of_rows_is_not_passed_over() -> None:
    auto = recorded("auto", "train", digest="aa", rows=30)
    mine = recorded("mine", "training", uri="a.csv", rows=9)
    with pytest.raises(SplitsUnavailable, match=r"'auto'.*'mine'"):
        choose([auto, mine], MEMBERS, role="members")
    another_fit = recorded("auto", "train", digest="cc", rows=9)
    assert choose([auto, another_fit, mine], MEMBERS, role="members")[0].name == "mine"


@pytest.mark.parametrize("context", [None, "", "production"])
def test_a_dataset_without_a_known_context_is_neither_side(context: str | None) -> None:
    with pytest.raises(SplitsUnavailable, match=r"no non-members: 'a' \(context"):
        choose([recorded("a", context, uri="a.csv")], NON_MEMBERS, role="non-members")


def test_a_test_set_that_mlflow_swallowed_as_the_training_set_is_explained() -> None:
    with pytest.raises(SplitsUnavailable, match=r"one entry for datasets of the same name and digest.*identical"):
        choose([recorded("a", "training", uri="a.csv")], NON_MEMBERS, role="non-members")
