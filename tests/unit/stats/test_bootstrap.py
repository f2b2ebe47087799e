from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats import attack_auc, bootstrap_intervals, tpr_at_fpr, tpr_upper_bound

Scores = NDArray[np.float64]


@pytest.mark.parametrize(("model", "attack"), list(itertools.product(("adam", "s10"), ("loss", "cal"))))
def test_the_labs_bootstrap_intervals_are_reproduced(
    model: str, attack: str, lab_scores: Callable[[str, str], tuple[Scores, Scores]], lab_expected: Any
) -> None:
    found = bootstrap_intervals(*lab_scores(model, attack), rng=np.random.default_rng(0))
    expected = lab_expected[model][f"{attack}_ci"]
    assert (found.auc.low, found.auc.high) == pytest.approx(expected["auc"], abs=0.002)
    assert (found.tpr[0.01].low, found.tpr[0.01].high) == pytest.approx(expected["tpr_1"], abs=0.002)
    assert (found.tpr[0.001].low, found.tpr[0.001].high) == pytest.approx(expected["tpr_01"], abs=0.002)


@pytest.mark.parametrize("levels", [6, 10**6])
def test_replicates_are_distributed_as_in_a_plain_loop(levels: int) -> None:
    rng = np.random.default_rng(0)
    members = rng.integers(0, levels, 120) + levels // 8.0
    non_members = rng.integers(0, levels, 90).astype(float)
    loop = np.array(
        [
            (attack_auc(a, b), tpr_at_fpr(a, b, 0.3).value)
            for a, b in ((rng.choice(members, 120), rng.choice(non_members, 90)) for _ in range(4000))
        ]
    )
    found = bootstrap_intervals(members, non_members, fprs=[0.3], replicates=40_000, rng=rng)
    low, high, upper = np.quantile(loop[:, 0], [0.025, 0.975, 0.95])
    assert (found.auc.low, found.auc.high, found.auc.upper) == pytest.approx((low, high, upper), abs=0.006)
    assert (found.tpr[0.3].low, found.tpr[0.3].high) == pytest.approx(
        np.quantile(loop[:, 1], [0.025, 0.975]), abs=0.026
    )


def test_the_threshold_is_the_order_statistic_of_few_resampled_rows() -> None:
    # Of five rows the third largest of a resample is the smallest row with probability 0.058, so 97.5 % reaches there.
    non_members, members = np.arange(5.0), np.linspace(0.001, 3.999, 4000)
    found = bootstrap_intervals(members, non_members, fprs=[0.4], replicates=20_000, rng=np.random.default_rng(0))
    assert found.tpr[0.4].high > 0.99
    assert found.tpr[0.4].low == 0.0


def test_the_same_seed_gives_the_same_bits_in_any_row_order() -> None:
    rng = np.random.default_rng(7)
    members, non_members = rng.normal(0.3, 1, 211), np.round(rng.normal(0, 1, 307), 1)
    first = bootstrap_intervals(members, non_members, rng=np.random.default_rng(9))
    again = bootstrap_intervals(members, non_members, rng=np.random.default_rng(9))
    shuffled = bootstrap_intervals(rng.permutation(members), rng.permutation(non_members), rng=np.random.default_rng(9))
    assert first == again == shuffled


def test_a_tprs_upper_is_the_bound_made_for_limits() -> None:
    rng = np.random.default_rng(1)
    members, non_members = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    found = bootstrap_intervals(members, non_members, fprs=(0.1,), rng=rng)
    assert found.tpr[0.1].upper == tpr_upper_bound(members, non_members, 0.1)
    assert found.tpr[0.1].low <= tpr_at_fpr(members, non_members, 0.1).value <= found.tpr[0.1].high


def test_constant_scores_are_named_degenerate() -> None:
    found = bootstrap_intervals([0.5] * 50, [0.5] * 40, rng=np.random.default_rng(0))
    assert (found.auc.low, found.auc.high, found.auc.degenerate) == (0.5, 0.5, True)
    tail = found.tpr[0.01]
    assert tail.degenerate
    assert tail.low == 0.0
    assert 0.0 < tail.high < 0.1


def test_perfect_separation_is_not_given_a_zero_width_interval() -> None:
    members, non_members = np.arange(2000.0) + 2000, np.arange(2000.0)
    found = bootstrap_intervals(members, non_members, rng=np.random.default_rng(0))
    assert found.auc.degenerate
    assert 0.99 < found.auc.low < found.auc.high == 1.0
    assert found.tpr[0.01].degenerate
    assert 0.99 < found.tpr[0.01].low < found.tpr[0.01].high == 1.0
    # Two thousand rows cannot tell where the rarest 0.1% begin.
    assert (found.tpr[0.001].low, found.tpr[0.001].high) == (0.0, 1.0)


def test_every_row_counts_as_positive_at_a_rate_of_one() -> None:
    found = bootstrap_intervals([1.0, 0.0, 3.0], [0.5, 2.0], fprs=(1.0,), rng=np.random.default_rng(0))
    assert found.tpr[1.0].high == 1.0
    assert found.tpr[1.0].degenerate


def test_one_row_a_side_gives_the_whole_range() -> None:
    found = bootstrap_intervals([1.0], [0.0], rng=np.random.default_rng(0))
    assert (found.auc.low, found.auc.high, found.auc.degenerate) == (0.0, 1.0, True)


def test_no_replicates_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="replicates"):
        bootstrap_intervals([1.0], [0.0], replicates=0, rng=np.random.default_rng(0))
