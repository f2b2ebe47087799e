from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from dp_extra import needs_dp_accounting

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.renyi import ORDERS, renyi_epsilon

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors" / "dp" / "epsilon.json").read_text(encoding="utf-8")
)


def training(case: dict[str, Any]) -> tuple[float, float, int, float]:
    return case["q"], case["sigma"], case["steps"], case["delta"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_epsilon_equals_the_accountant_of_opacus_to_one_in_a_billion(case: dict[str, Any]) -> None:
    assert renyi_epsilon(*training(case)) == pytest.approx(case["opacus_rdp_epsilon"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_epsilon_is_below_the_older_conversion_and_above_the_tight_one(case: dict[str, Any]) -> None:
    assert case["opacus_prv_epsilon"] < renyi_epsilon(*training(case)) < case["mironov2017_epsilon"]


def test_without_sampling_epsilon_is_the_gaussian_mechanisms_own() -> None:
    sigma, steps, delta = 3.0, 7, 1e-6
    by_hand = min(
        steps * order / (2 * sigma**2)
        - (math.log(delta) + math.log(order)) / (order - 1)
        + math.log((order - 1) / order)
        for order in ORDERS
    )
    assert renyi_epsilon(1.0, sigma, steps, delta) == pytest.approx(by_hand, rel=1e-12)


def test_more_noise_fewer_steps_and_rarer_sampling_all_lower_epsilon() -> None:
    most = renyi_epsilon(0.1, 1.0, 500, 1e-5)
    assert renyi_epsilon(0.1, 1.5, 500, 1e-5) < most
    assert renyi_epsilon(0.1, 1.0, 400, 1e-5) < most
    assert renyi_epsilon(0.05, 1.0, 500, 1e-5) < most
    assert renyi_epsilon(0.1, 1.0, 500, 1e-6) > most


@pytest.mark.parametrize("case", [(0.2, 0.5, 100, 1e-9), (0.5, 0.3, 1000, 1e-5), (1e-4, 0.5, 10**6, 1e-6)])
def test_little_noise_still_gives_a_finite_epsilon(case: tuple[float, float, int, float]) -> None:
    assert 0 < renyi_epsilon(*case) < 10_000


@needs_dp_accounting
@pytest.mark.parametrize(("q", "sigma"), [(0.05, 1.0), (0.2, 0.8), (0.01, 3.0)])
def test_divergences_equal_google_s_at_whole_orders_and_never_exceed_them(q: float, sigma: float) -> None:
    import dp_accounting

    def theirs(orders: tuple[float, ...]) -> float:
        accountant = dp_accounting.rdp.RdpAccountant(orders)
        once = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
        accountant.compose(dp_accounting.SelfComposedDpEvent(once, 100))
        return float(accountant.get_epsilon(1e-5))

    ours = renyi_epsilon(q, sigma, 100, 1e-5)
    assert ours <= theirs(ORDERS) * (1 + 1e-9)
    assert ours <= theirs(tuple(order for order in ORDERS if order.is_integer())) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("training", "named"),
    [
        ((0.0, 1.0, 10, 1e-5), "sampling_rate"),
        ((1.1, 1.0, 10, 1e-5), "sampling_rate"),
        ((0.1, 0.0, 10, 1e-5), "noise_multiplier"),
        ((0.1, math.nan, 10, 1e-5), "noise_multiplier"),
        ((0.1, 1e-300, 10, 1e-5), "noise_multiplier"),
        ((0.1, 1e300, 10, 1e-5), "noise_multiplier"),
        ((0.1, 1.0, 10**13, 1e-5), "steps"),
        ((0.1, 1.0, 0, 1e-5), "steps"),
        ((0.1, 1.0, 10, 0.0), "delta"),
        ((0.1, 1.0, 10, math.nan), "delta"),
    ],
)
def test_a_training_that_cannot_be_is_refused_by_name(training: tuple[float, float, int, float], named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named}: expected"):
        renyi_epsilon(*training)
