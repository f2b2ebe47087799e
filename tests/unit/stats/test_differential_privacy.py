from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats import EpsilonBound, auc_ceiling, epsilon_lower_bound, tpr_ceiling
from mlflow_privacy_gate.stats.differential_privacy import band

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors" / "dp" / "epsilon.json").read_text(encoding="utf-8")
)
DELTA = 1e-5


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ceilings_equal_the_reference_table(case: dict[str, Any]) -> None:
    epsilon, delta = case["opacus_rdp_epsilon"], case["delta"]
    assert auc_ceiling(epsilon, delta) == pytest.approx(case["auc_ceiling"], abs=1e-12)
    for fpr, ceilings in case["tpr_ceiling"].items():
        assert tpr_ceiling(epsilon, delta, float(fpr)) == pytest.approx(ceilings["tight"], abs=1e-12)


@given(epsilon=st.floats(0, 2000), delta=st.floats(0, 1), fpr=st.floats(0, 1))
def test_a_ceiling_is_a_rate_that_is_never_below_guessing(epsilon: float, delta: float, fpr: float) -> None:
    assert fpr - 1e-12 <= tpr_ceiling(epsilon, delta, fpr) <= 1.0
    assert 0.5 <= auc_ceiling(epsilon, delta) <= 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_the_highest_auc_is_the_area_under_the_highest_tprs(epsilon: float) -> None:
    rates = np.linspace(0, 1, 200_001)
    curve = np.array([tpr_ceiling(epsilon, 0.01, float(rate)) for rate in rates])
    area = float(np.mean(curve[1:] + curve[:-1])) / 2  # by trapezoids
    assert area == pytest.approx(auc_ceiling(epsilon, 0.01), abs=1e-5)


def test_bands_change_after_one_and_after_ten() -> None:
    assert [band(epsilon) for epsilon in (0.0, 1.0, 1.01, 10.0, 10.01)] == [
        "strong",
        "strong",
        "moderate",
        "moderate",
        "weak",
    ]


@pytest.mark.parametrize(("epsilon", "delta", "fpr"), [(-1, 0, 0), (math.nan, 0, 0), (1, 2, 0), (1, 0, 1.5)])
def test_a_ceiling_of_no_claim_is_refused(epsilon: float, delta: float, fpr: float) -> None:
    with pytest.raises(UsageError, match="expected"):
        tpr_ceiling(epsilon, delta, fpr)


def bound(
    members: npt.ArrayLike, non_members: npt.ArrayLike, *, delta: float = DELTA, seed: int = 0, **others: npt.ArrayLike
) -> EpsilonBound:
    members, non_members = np.asarray(members, dtype=float), np.asarray(non_members, dtype=float)
    is_member = np.repeat([True, False], [members.size, non_members.size])
    scores: dict[str, npt.ArrayLike] = {"loss": np.concatenate((members, non_members)), **others}
    return epsilon_lower_bound(scores, is_member, delta=delta, rng=np.random.default_rng(seed))


def test_on_noise_the_bound_is_above_zero_in_at_most_one_draw_in_twenty() -> None:
    above = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        coarse = rng.integers(0, 4, size=600).astype(float)
        above += bound(rng.normal(size=300), rng.normal(size=300), seed=seed, coarse=coarse).epsilon > 0
    assert above <= 10


def test_choosing_among_many_attacks_is_no_evidence_for_the_rows_they_were_not_chosen_on() -> None:
    above = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        many = {f"noise {number}": rng.normal(size=400) for number in range(20)}
        above += epsilon_lower_bound(many, np.repeat([True, False], 200), delta=0.0, rng=rng).epsilon > 0
    assert above <= 2


def randomised_response(epsilon: float, rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Scores of the sharpest mechanism of that epsilon: the truth about membership, told with probability e^eps / (1 + e^eps)."""
    truthful = math.exp(epsilon) / (1 + math.exp(epsilon))
    return (rng.random(rows) < truthful).astype(float), (rng.random(rows) >= truthful).astype(float)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_of_the_sharpest_mechanism_is_nearly_always_below_its_epsilon(epsilon: float) -> None:
    bounds = [
        bound(*randomised_response(epsilon, 1000, np.random.default_rng(seed)), delta=0.0, seed=seed).epsilon
        for seed in range(200)
    ]
    assert np.mean(np.array(bounds) > epsilon) <= 0.05
    assert np.median(bounds) > 0.6 * epsilon - 0.1


@pytest.mark.parametrize("tail", ["in", "out"])
def test_a_few_rows_that_stand_out_are_found_in_either_tail(tail: str) -> None:
    rng = np.random.default_rng(3)
    members, others = rng.normal(size=2000), rng.normal(size=2000)
    if tail == "in":
        members[:100] += 20
    else:
        others[:100] -= 20
    found = bound(members, others)
    assert (found.tail, found.members, found.non_members) == (tail, 1000, 1000)
    assert found.epsilon > 1.5


def test_the_attack_is_chosen_on_other_rows_than_its_bound_is_taken_on() -> None:
    rng = np.random.default_rng(0)
    telling = np.concatenate((rng.normal(3, 1, 500), rng.normal(0, 1, 500)))
    found = bound(rng.normal(size=500), rng.normal(size=500), telling=telling)
    assert (found.attack, found.members + found.non_members) == ("telling", 500)
    assert found.epsilon > 2


def test_the_order_of_the_rows_does_not_change_a_bit() -> None:
    rng = np.random.default_rng(1)
    scores, is_member = rng.normal(size=(2, 400)), rng.random(400) < 0.5
    scores[0] += is_member
    shuffled = rng.permutation(400)
    first, again = (
        epsilon_lower_bound(
            {"a": scores[0, order], "b": scores[1, order]},
            is_member[order],
            delta=DELTA,
            rng=np.random.default_rng(5),
        )
        for order in (np.arange(400), shuffled)
    )
    assert first == again


def test_infinite_scores_rank_like_others_and_rows_left_out_by_one_attack_are_used_by_none() -> None:
    members, others = np.full(100, np.inf), np.full(100, -np.inf)
    partial = np.where(np.arange(200) % 2 == 0, np.nan, 0.0)
    found = bound(members, others, partial=partial)
    assert (found.attack, found.members, found.non_members) == ("loss", 25, 25)
    assert found.epsilon > 1.5


def test_a_larger_delta_explains_more_away() -> None:
    members, others = randomised_response(4.0, 1000, np.random.default_rng(2))
    assert bound(members, others, delta=0.5).epsilon < bound(members, others, delta=0.0).epsilon


def test_what_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(ObservationError, match="two members"):
        bound([1.0], [0.0, 1.0])
    with pytest.raises(UsageError, match="delta"):
        bound([1.0, 2.0], [0.0, 1.0], delta=2.0)
    with pytest.raises(UsageError, match="other: expected 4 scores, got shape"):
        bound([1.0, 2.0], [0.0, 1.0], other=[1.0])
    with pytest.raises(UsageError, match="booleans"):
        epsilon_lower_bound({"a": [1.0, 2.0]}, [1, 0], delta=DELTA, rng=np.random.default_rng(0))
