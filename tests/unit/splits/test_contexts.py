"""Promises on which recorded dataset is which side."""

from __future__ import annotations

import pytest
from split_fakes import recorded

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS, choose


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


def test_two_candidates_of_one_rank_are_asked_about_and_never_guessed() -> None:
    inputs = [recorded("a", "test", uri="a.csv"), recorded("b", "testing", uri="b.csv")]
    with pytest.raises(SplitsUnavailable, match=r"2 datasets.*'a'.*'b'.*--non-members"):
        choose(inputs, NON_MEMBERS, role="non-members")


def test_a_loadable_dataset_is_taken_over_autologged_code_of_the_same_rank_and_that_is_said() -> None:
    inputs = [recorded("auto", "train"), recorded("mine", "training", uri="a.csv")]
    chosen, notes = choose(inputs, MEMBERS, role="members")
    assert chosen.name == "mine"
    assert "'auto'" in notes[0]


@pytest.mark.parametrize("context", [None, "", "production"])
def test_a_dataset_without_a_known_context_is_neither_side(context: str | None) -> None:
    with pytest.raises(SplitsUnavailable, match=r"no non-members: 'a' \(context"):
        choose([recorded("a", context, uri="a.csv")], NON_MEMBERS, role="non-members")


def test_a_test_set_that_mlflow_swallowed_as_the_training_set_is_explained() -> None:
    with pytest.raises(SplitsUnavailable, match=r"one entry for datasets of the same name and digest.*identical"):
        choose([recorded("a", "training", uri="a.csv")], NON_MEMBERS, role="non-members")
