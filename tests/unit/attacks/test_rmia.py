"""Relative membership inference: ratios, the share of the population outdone, and its cost."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlflow_privacy_gate.attacks import rmia
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.errors import ObservationError


def log_odds(probability: object) -> NDArray[np.float64]:
    p = np.asarray(probability, dtype=np.float64)
    return np.asarray(np.log(p) - np.log1p(-p))


def test_online_divides_by_the_mean_over_all_references() -> None:
    references = References(
        log_odds([[0.9], [0.7], [0.3], [0.1]]), np.array([[1], [1], [0], [0]], dtype=np.bool_), "clone"
    )
    assert rmia.online_ratios(log_odds([0.8]), references)[0] == pytest.approx(0.8 / 0.5, rel=1e-12)


def test_offline_raises_the_out_mean_towards_what_an_in_model_would_say() -> None:
    references = References(log_odds([[0.3], [0.1]]), np.zeros((2, 1), dtype=np.bool_), "logged_models")
    assert rmia.offline_ratios(log_odds([0.8]), references)[0] == pytest.approx(
        0.8 / (0.5 * (1.3 * 0.2 + 0.7)), rel=1e-12
    )
    assert rmia.offline_ratios(log_odds([0.8]), references, slope=1.0)[0] == pytest.approx(0.8 / 0.2, rel=1e-12)


def test_the_attack_is_online_unless_no_reference_saw_any_row() -> None:
    observed = Observations.from_probabilities([[0.2, 0.8]], [1], [0, 1])
    scores, seen = log_odds([[0.9], [0.7], [0.3], [0.1]]), np.array([[1], [1], [0], [0]], dtype=np.bool_)
    assert rmia.scores(observed, References(scores, seen, "clone"))[0] == pytest.approx(1.6)
    assert rmia.scores(observed, References(scores, np.zeros_like(seen), "logged_models"))[0] == pytest.approx(
        0.8 / 0.675
    )


def test_rows_with_too_few_models_are_left_out() -> None:
    in_mask = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=np.bool_)
    references = References(np.zeros((4, 3)), in_mask, "clone")
    assert np.isnan(rmia.online_ratios(np.zeros(3), references)).tolist() == [False, True, True]
    assert np.isnan(rmia.offline_ratios(np.zeros(3), references)).tolist() == [False, True, False]


# Few different values, so that ties are common; 0.1 * 3 makes the division form differ from the product.
tied = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.30000000000000004, 1.0, 3.0]), min_size=1, max_size=30)


@given(tied, tied, st.sampled_from([0.5, 1.0, 3.0]))
def test_the_share_is_what_counting_every_pair_gives(
    ratios: list[float], population: list[float], gamma: float
) -> None:
    share = rmia.share_outdone(np.array(ratios), np.array(population), gamma=gamma)
    expected = [sum(ratio >= gamma * z for z in population) / len(population) for ratio in ratios]
    assert share.tolist() == expected


def test_left_out_rows_neither_count_nor_are_counted() -> None:
    share = rmia.share_outdone(np.array([np.nan, 2.0]), np.array([np.nan, 1.0, 3.0]))
    assert np.isnan(share[0])
    assert share[1] == 0.5
    with pytest.raises(ObservationError, match="population"):
        rmia.share_outdone(np.array([1.0]), np.array([np.nan]))


def test_memory_is_linear_in_rows() -> None:
    rng = np.random.default_rng(0)
    ratios, population = rng.random(20_000), rng.random(20_000)
    tracemalloc.start()
    rmia.share_outdone(ratios, population)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
