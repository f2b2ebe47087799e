from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats import attack_auc, tpr_at_fpr, tpr_p_value, tpr_upper_bound
from mlflow_privacy_gate.stats.low_fpr import lower_bound_of
from mlflow_privacy_gate.stats.scores import sort_scores

Scores = NDArray[np.float64]


def test_tpr_at_fpr_equals_the_reference_points_with_and_without_ties(confidence_vector: Callable[[str], Any]) -> None:
    rng = np.random.default_rng(1)
    gaussian = rng.normal(0.5, 1, 300), rng.normal(0, 1, 700)
    points = confidence_vector("roc_points")
    assert len(points) == 9
    for point in points:
        scores = gaussian
        if "scores" in point:
            member = np.array(point["is_member"])
            scores = np.array(point["scores"])[member], np.array(point["scores"])[~member]
        assert tpr_at_fpr(*scores, point["fpr"]).value == pytest.approx(point["tpr_exact"], abs=1e-12)


@pytest.mark.parametrize(("model", "attack"), list(itertools.product(("adam", "s10"), ("loss", "cal"))))
def test_the_labs_tpr_is_reproduced(
    model: str, attack: str, lab_scores: Callable[[str, str], tuple[Scores, Scores]], lab_expected: Any
) -> None:
    scores, expected = lab_scores(model, attack), lab_expected[model][attack]
    assert tpr_at_fpr(*scores, 0.01).value == pytest.approx(expected["tpr_1"], abs=1e-12)
    assert tpr_at_fpr(*scores, 0.001).value == pytest.approx(expected["tpr_01"], abs=1e-12)


def test_ties_at_the_threshold_give_the_attainable_point_and_say_so() -> None:
    members = np.concatenate((np.full(100, 9.0), np.zeros(1900)))
    non_members = np.concatenate((np.full(30, 9.0), np.zeros(1970)))
    at_one_percent = tpr_at_fpr(members, non_members, 0.01)
    assert (at_one_percent.value, at_one_percent.realised_fpr) == (0.0, 0.0)
    assert at_one_percent.warned
    assert at_one_percent.note == "ties: the largest attainable FPR up to 1% is 0%"
    above_the_block = tpr_at_fpr(members, non_members, 0.02)
    assert (above_the_block.value, above_the_block.realised_fpr) == (0.05, 0.015)


def test_a_rate_below_one_false_positive_is_not_resolvable() -> None:
    rng = np.random.default_rng(0)
    result = tpr_at_fpr(rng.normal(1, 1, 1000), rng.normal(0, 1, 50), 0.001)
    assert not result.resolvable
    assert result.warned
    assert result.note == "not resolvable (smallest FPR 2%)"


@pytest.mark.parametrize(("rows", "resolvable", "warned"), [(99, False, True), (100, True, True), (1000, True, False)])
def test_fewer_than_ten_allowed_false_positives_are_warned_of(rows: int, resolvable: bool, warned: bool) -> None:
    result = tpr_at_fpr(np.arange(50.0), np.arange(rows) + 0.5, 0.01)
    assert (result.resolvable, result.warned) == (resolvable, warned)
    assert bool(result.note) is warned


@pytest.mark.parametrize(
    ("fpr", "rows", "allowed"), [(0.29, 100, 29), (0.57, 100, 57), (0.07, 100, 7), (0.001, 5000, 5)]
)
def test_allowed_false_positives_come_from_the_decimal(fpr: float, rows: int, allowed: int) -> None:
    non_members = np.arange(float(rows))
    result = tpr_at_fpr(non_members, non_members, fpr)
    assert (result.realised_fpr, result.value) == (allowed / rows, allowed / rows)
    assert tpr_at_fpr(non_members, non_members, np.float32(fpr)).realised_fpr == allowed / rows


def test_it_is_the_largest_tpr_of_all_thresholds_within_the_rate() -> None:
    rng = np.random.default_rng(4)
    for levels, fpr in itertools.product((3, 12, 1000), (0.0, 0.05, 0.2, 0.5, 1.0)):
        members, non_members = (rng.integers(0, levels, size).astype(float) for size in (60, 45))
        thresholds = np.concatenate(([-np.inf], members, non_members))
        attainable = [
            (members > t).mean() if np.isfinite(t) else 1.0
            for t in thresholds
            if (non_members > t).mean() <= fpr or (not np.isfinite(t) and fpr == 1.0)
        ]
        result = tpr_at_fpr(members, non_members, fpr)
        assert result.value == pytest.approx(max(attainable), abs=1e-12)
        assert result.realised_fpr <= fpr


def test_the_rate_carries_its_unit_in_its_name() -> None:
    names = [tpr_at_fpr([1.0], [0.0], fpr).name for fpr in (0.001, 0.01, 0.05, 1.0, 0.0, 0.000025)]
    assert names == [f"TPR at {rate} FPR" for rate in ("0.1%", "1%", "5%", "100%", "0%", "0.0025%")]


def test_the_tail_is_seen_where_the_auc_hides_it() -> None:
    indistinguishable = np.random.default_rng(0).normal(size=990)
    members = np.concatenate((indistinguishable, np.full(10, 100.0)))
    assert attack_auc(members, indistinguishable) == pytest.approx(0.505)
    assert tpr_at_fpr(members, indistinguishable, 0.0).value == 0.01


def test_infinite_scores_do_not_upset_the_threshold() -> None:
    result = tpr_at_fpr([np.inf, np.inf, 0.0, -np.inf], [np.inf, 1.0, -np.inf, -np.inf], 0.25)
    assert (result.value, result.realised_fpr) == (0.5, 0.25)


@pytest.mark.parametrize("fpr", [-0.01, 1.5, float("nan"), 5.0, "0.01", None, True])
def test_a_rate_that_is_no_fraction_is_a_usage_error(fpr: Any) -> None:
    with pytest.raises(UsageError, match="fraction"):
        tpr_at_fpr([1.0], [0.0], fpr)
    with pytest.raises(UsageError, match="fraction"):
        tpr_upper_bound([1.0], [0.0], fpr)


def test_upper_bound_is_clopper_pearson_at_the_order_statistic() -> None:
    # binom.ppf(0.975, 1000, 0.01) = 17: the threshold is the 18th largest non-member, and 25 members lie above it.
    non_members = np.arange(1000.0)
    members = np.concatenate((np.full(25, 982.5), np.zeros(475)))
    assert tpr_upper_bound(members, non_members, 0.01) == pytest.approx(beta.ppf(0.975, 26, 475), abs=1e-12)


def test_lower_bound_is_clopper_pearson_at_the_order_statistic() -> None:
    # binom.ppf(0.025, 1000, 0.1) = 82: the threshold is the 82nd largest non-member, which 40 members equal and 60 exceed.
    members = np.concatenate((np.full(60, 2000.0), np.full(40, 918.0), np.zeros(400)))
    lower = lower_bound_of(sort_scores(members, np.arange(1000.0)), 0.1)
    assert lower == pytest.approx(beta.ppf(0.025, 60, 441), abs=1e-12)


def test_upper_bound_is_one_where_nothing_can_be_ruled_out() -> None:
    assert tpr_upper_bound([1.0, 2.0], [0.0], 0.5) == 1.0
    assert tpr_upper_bound(np.arange(10.0) + 50, np.arange(20.0), 0.1) == 1.0


def test_upper_bound_lies_above_the_measured_rate() -> None:
    rng = np.random.default_rng(2)
    for fpr in (0.0, 0.001, 0.01, 0.1):
        members, non_members = rng.normal(0.5, 1, 400), rng.normal(0, 1, 400)
        assert tpr_upper_bound(members, non_members, fpr) > tpr_at_fpr(members, non_members, fpr).value


@pytest.mark.parametrize("levels", [None, 20], ids=["distinct", "tied"])
def test_the_tails_p_value_is_small_no_more_often_than_it_says(levels: int | None) -> None:
    rng = np.random.default_rng(4)
    found = []
    for _ in range(2000):
        sides = rng.normal(size=150), rng.normal(size=150)
        if levels:
            sides = np.round(sides[0] * levels / 4), np.round(sides[1] * levels / 4)
        found.append(tpr_p_value(*sides, 0.02))
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 2000)


def test_the_tails_p_value_is_the_chance_of_as_many_members_among_the_largest_scores() -> None:
    # Two members above the only non-member that may not be exceeded: of 5 scores the two largest are members.
    assert tpr_p_value([5.0, 4.0], [3.0, 2.0, 1.0], 0.0) == pytest.approx(1 / 10)
    assert tpr_p_value([1.0, 2.0], [3.0, 4.0, 5.0], 0.0) == 1.0
