"""A leak in one group is seen, small groups are not judged, and counts under ten do not leave this room."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from mlflow_privacy_gate.attacks.subgroups import Grouping, by_column, by_quantile, by_value, subgroups
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import attack_auc, holm, rank_test, tpr_p_value

Floats = npt.NDArray[np.float64]


def scored(rng: np.random.Generator, members: npt.NDArray[np.bool_], rows: int) -> tuple[Floats, Floats]:
    return rng.normal(size=members.size) + 1.0 * members, rng.normal(size=rows)


def test_a_class_that_was_memorised_stands_out_of_an_average_that_hides_it() -> None:
    rng = np.random.default_rng(0)
    m, n = (np.where(rng.random(2_000) < 0.1, "A", "B") for _ in range(2))
    sides = scored(rng, m == "A", 2_000)
    groups = {group.group: group for group in subgroups(*sides, [by_value("class", m, n)])}
    assert groups["A"].auc == attack_auc(sides[0][m == "A"], sides[1][n == "A"])
    assert groups["A"].auc > 0.7
    assert groups["A"].holm_p is not None
    assert groups["A"].holm_p < 1e-6
    assert groups["B"].holm_p is not None
    assert groups["B"].holm_p > 0.05
    assert groups["A"].ci_low is not None
    assert groups["A"].ci_low > 0.5
    assert attack_auc(*sides) < 0.55


def test_p_values_are_corrected_over_all_groups_of_all_columns() -> None:
    rng = np.random.default_rng(1)
    sides = rng.normal(size=400), rng.normal(size=400)
    halves, thirds = np.arange(400) % 2, np.arange(400) % 3
    found = subgroups(*sides, [by_value("a", halves, halves), by_value("b", thirds, thirds)])
    parts = [
        (sides[0][part == value], sides[1][part == value]) for part in (halves, thirds) for value in np.unique(part)
    ]
    raw = [p for part in parts for p in (rank_test(*part).p_value, tpr_p_value(*part, 0.01))]
    assert [p for group in found for p in (group.holm_p, group.tpr_holm_p)] == holm(raw).tolist()


def test_a_tail_in_one_group_shows_where_its_auc_hides_it() -> None:
    rng = np.random.default_rng(3)
    groups = np.arange(2000) % 2
    members, non_members = rng.normal(size=2000), rng.normal(size=2000)
    members[np.flatnonzero(groups == 1)[:40]] = 9.0
    found = {group.group: group for group in subgroups(members, non_members, [by_value("c", groups, groups)])}
    assert found["1"].auc is not None
    assert found["1"].auc < 0.55
    assert found["1"].tpr is not None
    assert found["1"].tpr >= 0.04
    assert found["1"].tpr_holm_p is not None
    assert found["1"].tpr_holm_p < 1e-4
    assert found["0"].tpr_holm_p is not None
    assert found["0"].tpr_holm_p > 0.05


@pytest.mark.parametrize(("members", "non_members"), [(99, 500), (500, 99), (150, 0), (0, 150), (10, 10)])
def test_a_group_under_a_hundred_rows_a_side_is_too_small_and_not_zero_or_one(members: int, non_members: int) -> None:
    m, n = (np.repeat(["big", "small"], [200, rows]) for rows in (members, non_members))
    found = {
        group.group: group
        for group in subgroups(np.arange(m.size, dtype=np.float64), np.zeros(n.size), [by_value("c", m, n)])
    }
    small = found["small"]
    assert (small.rows_members, small.rows_non_members, small.note) == (members, non_members, "too small")
    assert (small.auc, small.ci_low, small.ci_high, small.holm_p, small.tpr, small.tpr_holm_p) == (None,) * 6


def test_counts_under_ten_are_not_given_and_their_groups_not_named() -> None:
    m = np.repeat(["big", "rare disease", "other rare", "third"], [200, 9, 4, 300])
    n = np.repeat(["big", "rare disease", "other rare", "third"], [200, 50, 0, 8])
    found = subgroups(np.zeros(m.size), np.zeros(n.size), [by_value("diagnosis", m, n)])
    assert [group.group for group in found] == ["big", "other groups"]
    assert (found[1].rows_members, found[1].rows_non_members) == (313, 58)
    alone = subgroups(
        np.zeros(205),
        np.zeros(203),
        [Grouping("c", *(np.repeat(np.array(["big", "rare"], object), k) for k in ([200, 5], [200, 3])))],
    )
    assert (alone[1].rows_members, alone[1].rows_non_members) == (0, 0)
    assert alone[1].note == "too small; counts under 10 are not given"


def test_a_column_of_many_small_groups_names_twenty_at_most() -> None:
    names = np.repeat([f"town {place:03}" for place in range(300)], 12)
    found = subgroups(np.zeros(names.size), np.zeros(names.size), [by_value("town", names, names)])
    assert len(found) == 21
    assert (found[-1].group, found[-1].rows_members) == ("other groups", 280 * 12)


def test_whole_floats_and_integers_are_one_group_and_missing_is_its_own() -> None:
    grouping = by_value("c", pd.Series([1, 2]), pd.Series([1.0, None]))
    assert (grouping.members.tolist(), grouping.non_members.tolist()) == (["1", "2"], ["1", "missing"])


def test_quantiles_are_cut_on_both_sides_together_and_show_no_rows_own_value() -> None:
    rng = np.random.default_rng(2)
    m, n = rng.normal(40, 12.3456789, 500), rng.normal(45, 12.3456789, 500)
    grouping = by_quantile("age", m, n)
    names, counts = np.unique(np.concatenate((grouping.members, grouping.non_members)), return_counts=True)
    assert counts.tolist() == [250] * 4
    assert names[0].startswith("part 1 of 4 (up to 3")
    assert all(
        len(number) <= 4 for number in "".join(c if c.isdigit() or c == "." else " " for c in " ".join(names)).split()
    )
    assert m[grouping.members == names[0]].max() <= m[grouping.members == names[1]].min()


def test_a_column_chooses_quantiles_for_times_and_many_numbers_and_values_otherwise() -> None:
    many, few = pd.Series(np.arange(200)), pd.Series(np.arange(200) % 3)
    assert set(by_column("x", many, many).members) == set(by_quantile("x", many, many).members)
    assert set(by_column("x", few, few).members) == {"0", "1", "2"}
    assert (
        len(
            set(
                by_column(
                    "x", pd.Series(pd.date_range("2020", periods=8)), pd.Series(pd.date_range("2020", periods=8))
                ).members
            )
        )
        == 4
    )
    assert set(by_column("x", pd.Series(list("ab")), pd.Series(list("ba"))).members) == {"a", "b"}


def test_a_constant_or_empty_numeric_column_is_one_group() -> None:
    constant, empty = np.ones(5), np.full(5, np.nan)
    assert set(by_quantile("x", constant, constant).members) == {"part 1 of 2 (up to 1)"}
    assert set(by_quantile("x", empty, empty).members) == {"missing"}


def test_groupings_of_another_length_and_texts_as_quantiles_are_refused() -> None:
    with pytest.raises(ObservationError, match=r"column 'c' has 2 \+ 1 rows, the scores 3 \+ 1"):
        subgroups(np.zeros(3), np.zeros(1), [by_value("c", ["a", "b"], ["a"])])
    with pytest.raises(ObservationError, match="holds neither numbers nor times"):
        by_quantile("c", ["a", "b"], ["a"])
