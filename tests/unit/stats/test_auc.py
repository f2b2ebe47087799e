from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats import attack_auc, balanced_accuracy, delong_interval
from mlflow_privacy_gate.stats.auc import standard_error
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.scores import sort_scores

Scores = NDArray[np.float64]

VECTORS = (
    "adult_rf_default",
    "adult_rf_labels_pm1",
    "adult_tree_depth3",
    "at_margin_055",
    "bc_lr_regularised",
    "bc_rf_default",
    "bc_rf_nobootstrap",
    "digits_holdout_lacks_7_8_9",
    "digits_train_lacks_7_8_9_dropped",
    "german_lr_700_40",
    "german_rf_500_500",
    "just_above_055",
    "one_ulp",
    "perfect",
    "tie_all_equal",
    "tie_half",
)


@pytest.mark.parametrize("name", VECTORS)
def test_auc_is_the_exact_fraction_rounded_once(name: str, confidence_vector: Callable[[str], Any]) -> None:
    vector = confidence_vector(name)
    exact = Fraction(vector["auc_numerator"], vector["auc_denominator"])
    assert attack_auc(vector["member_scores"], vector["holdout_scores"]) == float(exact)


@pytest.mark.parametrize("name", VECTORS)
def test_the_comparison_with_the_margin_is_not_flipped_by_rounding(
    name: str, confidence_vector: Callable[[str], Any]
) -> None:
    vector = confidence_vector(name)
    auc = attack_auc(vector["member_scores"], vector["holdout_scores"])
    assert (auc > 0.55) is vector["gate_0.55"]["above_fails"]
    assert (auc >= 0.55) is vector["gate_0.55"]["at_or_above_fails"]


@pytest.mark.parametrize("margin", [Fraction(11, 20), Fraction(13, 25), Fraction(3, 5), Fraction(701, 1000)])
def test_an_auc_exactly_at_a_margin_equals_the_margins_own_float(margin: Fraction) -> None:
    for rows in (20, 50, 1000):
        if (margin * rows).denominator == 1:
            winning = int(margin * rows)
            assert attack_auc([1.0] * winning + [-1.0] * (rows - winning), [0.0] * 7) == float(margin)


@pytest.mark.parametrize(("model", "attack"), list(itertools.product(("adam", "s10"), ("loss", "cal"))))
def test_the_labs_auc_is_reproduced(
    model: str, attack: str, lab_scores: Callable[[str, str], tuple[Scores, Scores]], lab_expected: Any
) -> None:
    assert attack_auc(*lab_scores(model, attack)) == pytest.approx(lab_expected[model][attack]["auc"], abs=1e-12)


def test_the_labs_published_intervals_are_reproduced(
    lab_scores: Callable[[str, str], tuple[Scores, Scores]],
) -> None:
    loss, calibrated = (delong_interval(*lab_scores("adam", attack)) for attack in ("loss", "cal"))
    assert (loss.low, loss.high) == pytest.approx((0.553, 0.589), abs=0.001)
    assert (calibrated.low, calibrated.high) == pytest.approx((0.616, 0.650), abs=0.001)


def test_two_equal_rows_a_side_give_one_half_in_every_order() -> None:
    orders = list(itertools.permutations([9.0, 5.0]))
    assert {attack_auc(a, b) for a, b in itertools.product(orders, orders)} == {0.5}
    assert len({delong_interval(a, b) for a, b in itertools.product(orders, orders)}) == 1


def test_ties_do_not_make_the_auc_depend_on_which_side_comes_first() -> None:
    # A tool that walks tied scores one by one gives 1.0 or 0.2 here, by row order.
    members, non_members = [1.0] * 5, [1.0] * 4 + [0.0]
    assert attack_auc(members, non_members) == 0.6
    assert attack_auc(members, non_members[::-1]) == 0.6


def test_the_direction_is_fixed_and_never_flipped() -> None:
    assert attack_auc([0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]) == 0.25


def test_a_larger_auc_wins_over_a_larger_best_threshold() -> None:
    a = ([1.0] * 40 + [0.0] * 60, [1.0] * 20 + [0.0] * 80)
    b_members = np.linspace(0.0, 1.0, 100) + 0.12
    b = (b_members, np.linspace(0.0, 1.0, 100))
    assert attack_auc(*b) > attack_auc(*a)
    assert balanced_accuracy(*b).value < balanced_accuracy(*a).value


def test_infinities_rank_like_other_values() -> None:
    assert attack_auc([-0.1], [-np.inf]) == 1.0
    assert attack_auc([np.inf, -np.inf], [np.inf, -np.inf]) == 0.5
    assert attack_auc([np.inf, 3.0], [np.inf, 1.0]) == 0.625


def test_negative_zero_ties_with_zero() -> None:
    assert attack_auc([-0.0], [0.0]) == 0.5


@pytest.mark.parametrize("rows", [(2, 2), (3, 40), (40, 3), (500, 700)])
@pytest.mark.parametrize("levels", [2, 9, 10_000])
def test_auc_and_standard_error_equal_delongs_from_mid_ranks(
    rows: tuple[int, int], levels: int, delong_by_ranks: Callable[[Scores, Scores], tuple[float, float]]
) -> None:
    rng = np.random.default_rng(levels)
    for _ in range(20):
        members, non_members = (rng.integers(0, levels, size).astype(float) for size in rows)
        auc, error = delong_by_ranks(members, non_members)
        placements = place(sort_scores(members, non_members))
        assert placements.auc == pytest.approx(auc, abs=1e-12)
        assert standard_error(placements) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("levels", [3, 1_000, 10**9])
def test_ties_that_run_across_internal_blocks_are_counted_whole(
    levels: int, delong_by_ranks: Callable[[Scores, Scores], tuple[float, float]]
) -> None:
    rng = np.random.default_rng(5)
    members, non_members = (rng.integers(0, levels, size).astype(float) for size in (200_001, 150_000))
    auc, error = delong_by_ranks(members, non_members)
    placements = place(sort_scores(members, non_members))
    assert placements.auc == pytest.approx(auc, abs=1e-12)
    assert standard_error(placements) == pytest.approx(error, rel=1e-9)


def test_sums_of_squares_stay_exact_beyond_64_bits() -> None:
    rows = 6_000_000
    even, odd = np.arange(rows) * 2.0, np.arange(rows) * 2.0 + 1.0
    placements = place(sort_scores(odd, even))
    first_squares = rows * (rows + 1) * (2 * rows + 1) // 6
    assert placements.twice_wins == rows * (rows + 1)
    assert placements.member_squares == 4 * first_squares > 2**63
    assert placements.non_member_squares == 4 * (first_squares - rows * rows)


def test_interval_is_delongs_normal_interval() -> None:
    rng = np.random.default_rng(3)
    members, non_members = rng.normal(0.3, 1, 150), rng.normal(0, 1, 90)
    interval, error = delong_interval(members, non_members), standard_error(place(sort_scores(members, non_members)))
    auc = attack_auc(members, non_members)
    assert (interval.low, interval.high) == pytest.approx((auc - 1.959964 * error, auc + 1.959964 * error), abs=1e-6)
    assert interval.upper == pytest.approx(auc + 1.644854 * error, abs=1e-6)
    assert not interval.degenerate
    wider = delong_interval(members, non_members, level=0.99)
    assert wider.low == pytest.approx(auc + norm.ppf(0.005) * error)
    assert wider.upper == pytest.approx(auc + norm.ppf(0.99) * error)


def test_interval_stays_within_zero_and_one() -> None:
    interval = delong_interval([1.0, 2.0, 3.0, 9.0], [0.0, 0.5, 2.5])
    assert 0.0 <= interval.low < interval.high == interval.upper == 1.0


def test_constant_scores_give_a_degenerate_interval_named_as_such() -> None:
    interval = delong_interval([0.5] * 30, [0.5] * 20)
    assert (interval.low, interval.high, interval.upper) == (0.5, 0.5, 0.5)
    assert interval.degenerate
    assert "every score is equal" in interval.method


def test_perfect_separation_gets_a_binomial_bound_not_a_point() -> None:
    perfect = delong_interval(np.arange(100.0) + 1000, np.arange(40.0))
    assert perfect.degenerate
    assert (perfect.high, perfect.upper) == (1.0, 1.0)
    assert perfect.low == pytest.approx(0.025 ** (1 / 40))
    inverted = delong_interval(np.arange(40.0), np.arange(100.0) + 1000)
    assert (inverted.low, inverted.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 40)))
    assert inverted.upper == pytest.approx(1 - 0.05 ** (1 / 40))


@pytest.mark.parametrize("scores", [([1.0], [0.0, 1.0, 2.0]), ([0.0, 1.0], [0.5]), ([1.0], [1.0])])
def test_one_row_on_a_side_says_nothing(scores: tuple[list[float], list[float]]) -> None:
    interval = delong_interval(*scores)
    assert (interval.low, interval.high, interval.upper) == (0.0, 1.0, 1.0)
    assert interval.degenerate


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.1, float("nan")])
def test_a_level_that_is_no_fraction_is_a_usage_error(level: float) -> None:
    with pytest.raises(UsageError, match="fraction"):
        delong_interval([1.0, 2.0], [0.0, 1.5], level=level)
