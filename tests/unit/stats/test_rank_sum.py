from __future__ import annotations

import numpy as np
import pytest

from mlflow_privacy_gate.stats import attack_auc, delong_interval, rank_test


def test_higher_query_scores_give_a_small_p_value() -> None:
    rng = np.random.default_rng(0)
    query, held_out = rng.normal(1.0, 1, 60), rng.normal(0, 1, 200)
    result = rank_test(query, held_out)
    assert result.p_value < 1e-6
    assert result.auc == attack_auc(query, held_out)
    assert result.interval == delong_interval(query, held_out)


def test_it_is_one_sided() -> None:
    rng = np.random.default_rng(0)
    assert rank_test(rng.normal(-1, 1, 60), rng.normal(0, 1, 60)).p_value > 0.99


def test_small_samples_are_exact() -> None:
    assert rank_test([4.0, 5.0, 6.0], [1.0, 2.0, 3.0]).p_value == pytest.approx(1 / 20)


def test_constant_scores_are_no_evidence() -> None:
    assert rank_test([1.0] * 30, [1.0] * 30).p_value == 1.0


def test_infinities_are_ranked() -> None:
    assert 0.0 < rank_test([np.inf, 2.0], [-np.inf, 1.0]).p_value < 0.5


def test_noise_is_called_significant_at_most_five_times_in_a_hundred() -> None:
    rng = np.random.default_rng(1)
    for digits in (12, 0):
        p_values = [rank_test(*np.round(rng.normal(size=(2, 40)), digits)).p_value for _ in range(1000)]
        assert np.mean(np.array(p_values) <= 0.05) <= 0.07
