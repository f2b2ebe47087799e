"""Whether the statistics keep their promises over thousands of simulated tests, with fixed seeds.

Scores are Gaussian, or rounded down to a coarse grid for ties; the true AUC and TPR are known in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from mlflow_privacy_gate.stats import (
    attack_auc,
    bootstrap_intervals,
    delong_interval,
    max_auc_interval,
    minimum_rows,
    smallest_detectable_auc,
    tpr_upper_bound,
)

Scores = NDArray[np.float64]
SIMULATIONS = 4000
TIES = 1.5  # width of the grid: about six distinct scores


@dataclass(frozen=True)
class Population:
    """Members N(shift, 1) and non-members N(0, 1), rounded down to a grid of width ``step`` where it is positive."""

    auc_before_rounding: float
    step: float = 0.0

    @property
    def shift(self) -> float:
        return float(np.sqrt(2) * norm.ppf(self.auc_before_rounding))

    @property
    def auc(self) -> float:
        if not self.step:
            return self.auc_before_rounding
        edges = self.step * np.arange(-10, 11)
        members, non_members = np.diff(norm.cdf(edges, self.shift)), np.diff(norm.cdf(edges))
        below = np.cumsum(non_members) - non_members
        return float((members * (below + non_members / 2)).sum())

    def draw(self, rng: np.random.Generator, members: int, non_members: int) -> tuple[Scores, Scores]:
        sides = rng.normal(self.shift, 1, members), rng.normal(0, 1, non_members)
        if not self.step:
            return sides
        return self.step * np.floor(sides[0] / self.step), self.step * np.floor(sides[1] / self.step)


def delong_coverage(population: Population, members: int, non_members: int, simulations: int = SIMULATIONS) -> float:
    rng = np.random.default_rng([members, non_members, int(1000 * population.auc_before_rounding)])
    intervals = [delong_interval(*population.draw(rng, members, non_members)) for _ in range(simulations)]
    return float(np.mean([interval.low <= population.auc <= interval.high for interval in intervals]))


every_auc = pytest.mark.parametrize("auc", [0.5, 0.6, 0.7])
with_and_without_ties = pytest.mark.parametrize("step", [0.0, TIES], ids=["distinct", "tied"])


@every_auc
@with_and_without_ties
@pytest.mark.parametrize("rows", [(50, 50), (200, 200)], ids=str)
def test_delong_covers_the_true_auc_95_times_in_a_hundred(auc: float, step: float, rows: tuple[int, int]) -> None:
    assert 0.93 <= delong_coverage(Population(auc, step), *rows) <= 0.97


@pytest.mark.slow
@every_auc
@with_and_without_ties
@pytest.mark.parametrize("rows", [(60, 600), (2000, 2000), (20_000, 20_000)], ids=str)
def test_delong_covers_the_true_auc_on_many_and_on_uneven_rows(auc: float, step: float, rows: tuple[int, int]) -> None:
    assert 0.93 <= delong_coverage(Population(auc, step), *rows) <= 0.97


def bootstrap_coverage(population: Population, rows: int, simulations: int, replicates: int) -> float:
    rng = np.random.default_rng([rows, int(1000 * population.auc_before_rounding)])
    covered = 0
    for _ in range(simulations):
        found = bootstrap_intervals(*population.draw(rng, rows, rows), fprs=(), replicates=replicates, rng=rng)
        covered += found.auc.low <= population.auc <= found.auc.high
    return covered / simulations


@with_and_without_ties
def test_the_bootstrap_covers_the_true_auc_95_times_in_a_hundred(step: float) -> None:
    assert 0.93 <= bootstrap_coverage(Population(0.6, step), rows=200, simulations=1500, replicates=250) <= 0.97


@pytest.mark.slow
@every_auc
@with_and_without_ties
def test_the_bootstrap_covers_every_auc(auc: float, step: float) -> None:
    assert 0.93 <= bootstrap_coverage(Population(auc, step), rows=200, simulations=4000, replicates=500) <= 0.97


@with_and_without_ties
def test_the_upper_bound_lets_a_model_over_the_margin_pass_at_most_5_times_in_a_hundred(step: float) -> None:
    population, rows = Population(0.55, step), minimum_rows(0.55, 100)  # at the margin itself: the hardest case
    rng = np.random.default_rng(11)
    passed = [delong_interval(*population.draw(rng, rows, rows)).upper <= population.auc for _ in range(SIMULATIONS)]
    assert np.mean(passed) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


@pytest.mark.parametrize(("fpr", "rows"), [(0.1, 200), (0.01, 300), (0.01, 2000), (0.001, 3000)])
@pytest.mark.parametrize("auc", [0.5, 0.65])
def test_the_tpr_bound_is_exceeded_by_the_truth_at_most_5_times_in_a_hundred(fpr: float, rows: int, auc: float) -> None:
    population = Population(auc)
    true_tpr = norm.sf(norm.isf(fpr), population.shift)
    rng = np.random.default_rng(rows)
    exceeded = [tpr_upper_bound(*population.draw(rng, rows, rows), fpr) < true_tpr for _ in range(1000)]
    assert np.mean(exceeded) <= 0.05


def equal_attacks(rng: np.random.Generator, count: int, rows: int, shift: float) -> dict[str, tuple[Scores, Scores]]:
    """``count`` attacks of the same true AUC; half of each score is shared by all."""
    members, non_members = rng.normal(size=(2, rows))
    return {
        str(k): (members + rng.normal(shift * np.sqrt(2), 1, rows), non_members + rng.normal(0, 1, rows))
        for k in range(count)
    }


@pytest.mark.parametrize("auc", [0.5, 0.6])
def test_the_interval_of_the_worst_attack_accounts_for_the_choice(auc: float) -> None:
    rng = np.random.default_rng(21)
    shift = Population(auc).shift
    low, naive_low, covered = 0, 0, 0
    for _ in range(800):
        scores = equal_attacks(rng, 6, 200, shift)
        interval = max_auc_interval(scores, rng=rng, replicates=2000)
        worst = max(scores.values(), key=lambda pair: attack_auc(*pair))
        low += interval.low > auc
        naive_low += delong_interval(*worst).low > auc
        covered += interval.low <= auc <= interval.high
    assert covered / 800 >= 0.93
    assert low / 800 <= 0.04
    assert naive_low / 800 > 0.06  # what ignoring the choice would do


def test_a_constant_and_a_random_model_are_not_caught_and_a_leaky_one_is() -> None:
    rng = np.random.default_rng(0)
    assert delong_interval(np.ones(300), np.ones(300)).low <= 0.5
    noise = [delong_interval(*rng.normal(size=(2, 300))).low > 0.5 for _ in range(1000)]
    assert np.mean(noise) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 1000)
    leaky = Population(smallest_detectable_auc(300, 300, power=0.999))
    assert delong_interval(*leaky.draw(rng, 300, 300)).low > 0.5
