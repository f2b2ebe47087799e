"""Rows on both sides are found, all of them and no others, and natural duplicates are told from copied rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence import rowset
from mlflow_privacy_gate.evidence.rowset import shared_rows

_ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, -0.0, 1.0, None]), st.sampled_from(["a", "b", None])),
    max_size=15,
)


def frame(rows: list[Any]) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame(rows, columns=["x", "label"]).astype({"x": float, "label": object})
    return table


@settings(deadline=None)
@given(_ROWS, _ROWS)
def test_masks_are_those_of_a_plain_comparison(members: list[Any], non_members: list[Any]) -> None:
    found = shared_rows(frame(members), frame(non_members))
    # In Python 0.0 == -0.0 and None == None, as here.
    assert found.member_mask.tolist() == [row in non_members for row in members]
    assert found.non_member_mask.tolist() == [row in members for row in non_members]
    assert found.count == max(found.member_mask.sum(), found.non_member_mask.sum())


def test_copied_rows_are_found_among_many_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    members, non_members = rng.normal(size=(20_000, 8)), rng.normal(size=(15_000, 8))
    copied, to = rng.choice(20_000, 40, replace=False), rng.choice(15_000, 40, replace=False)
    non_members[to] = members[copied]
    found = shared_rows(members, non_members)
    assert sorted(np.flatnonzero(found.member_mask)) == sorted(copied)
    assert sorted(np.flatnonzero(found.non_member_mask)) == sorted(to)
    assert (found.count, found.expected) == (40, 0.0)


def test_a_row_with_another_label_is_another_row() -> None:
    members = pd.DataFrame({"x": [1.0, 2.0], "label": [0, 1]})
    non_members = pd.DataFrame({"x": [1.0, 2.0], "label": [1, 1]})
    assert shared_rows(members, non_members).member_mask.tolist() == [False, True]
    assert shared_rows(members, non_members, columns=["x"]).member_mask.tolist() == [True, True]


def test_types_may_differ_between_the_sides() -> None:
    members = pd.DataFrame({"n": [1, 2], "s": pd.Categorical(["a", "b"]), "gone": [None, None], "id": [2**60 + 1, 7]})
    non_members = pd.DataFrame({"id": [7.0, 8.0], "gone": [np.nan, 5.0], "n": [2.0, 1.5], "s": ["b", "a"]})
    found = shared_rows(members, non_members)
    assert (found.member_mask.tolist(), found.non_member_mask.tolist()) == ([False, True], [True, False])


def test_several_copies_on_one_side_count_as_what_that_side_would_lose() -> None:
    found = shared_rows(np.array([1.0, 1.0, 1.0, 2.0]), np.array([1.0, 3.0]))
    assert (found.member_mask.sum(), found.non_member_mask.sum(), found.count) == (3, 1, 3)


def test_rows_that_only_collide_on_the_key_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every key equal, all rows must be told apart by their bytes alone."""
    monkeypatch.setattr(rowset, "_MULTIPLIER", np.uint64(0))
    rng = np.random.default_rng(3)
    members, non_members = rng.integers(0, 6, (300, 3)), rng.integers(3, 9, (200, 3))
    found = shared_rows(members, non_members)
    left, right = set(map(tuple, members.tolist())), set(map(tuple, non_members.tolist()))
    assert found.member_mask.tolist() == [tuple(row) in right for row in members.tolist()]
    assert found.non_member_mask.tolist() == [tuple(row) in left for row in non_members.tolist()]
    assert 0 < found.count < 200


@pytest.mark.parametrize(("n_members", "n_non_members"), [(4000, 4000), (6000, 2000), (2000, 6000)])
def test_expected_is_what_a_random_split_of_duplicated_rows_gives(n_members: int, n_non_members: int) -> None:
    """Rows drawn from 20,000 possible ones with unequal chances: duplicates are natural, and shared rows about as expected."""
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(10):
        rows = np.floor(20_000 * rng.random(n_members + n_non_members) ** 2)
        found = shared_rows(rows[:n_members], rows[n_members:])
        assert found.count > 100
        ratios.append(found.expected / found.count)
    assert 0.85 < np.mean(ratios) < 1.1
    assert min(ratios) > 0.5  # "twice what is expected" never fires here


def test_rows_copied_across_are_not_excused_by_duplicates_within_one_side() -> None:
    rng = np.random.default_rng(4)
    members, non_members = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3))
    non_members[:100] = members[:100]
    non_members[1000:2000:2] = non_members[1001:2000:2]
    found = shared_rows(members, non_members)
    assert (found.count, found.expected) == (100, 0.0)


def test_empty_sides_share_nothing() -> None:
    for members, non_members in ((0, 3), (3, 0), (0, 0)):
        found = shared_rows(np.ones((members, 2)), np.ones((non_members, 2)))
        assert (found.count, found.expected) == (0, 0.0)
        assert (len(found.member_mask), len(found.non_member_mask)) == (members, non_members)


def test_the_whole_of_one_side_on_the_other_is_found() -> None:
    rows = np.random.default_rng(8).normal(size=(500, 4))
    found = shared_rows(rows, rows[::-1])
    assert found.member_mask.all()
    assert found.non_member_mask.all()
    assert Counter(found.member_mask.tolist())[True] == found.count == 500


def test_sides_with_different_columns_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="only one side has weight"):
        shared_rows(pd.DataFrame({"x": [1], "weight": [2]}), pd.DataFrame({"x": [1]}))
    with pytest.raises(UsageError, match="no column age"):
        shared_rows(pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [1]}), columns=["age"])
