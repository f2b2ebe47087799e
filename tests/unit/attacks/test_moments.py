"""Moments of reference scores, row by row, over the models a mask chooses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.attacks.moments import row_moments
from mlflow_privacy_gate.errors import CouldNotJudge


@given(st.integers(2, 12), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_moments_equal_those_of_the_chosen_scores_alone(models: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, mask = rng.normal(5, 3, (models, rows)), rng.random((models, rows)) < 0.6
    moments = row_moments(scores, mask)
    for row in range(rows):
        chosen = scores[mask[:, row], row]
        assert moments.counted[row] == chosen.size
        if chosen.size:
            assert moments.mean[row] == pytest.approx(chosen.mean(), abs=1e-12)
        else:
            assert np.isnan(moments.mean[row])
        if chosen.size > 1:
            assert moments.variance[row] == pytest.approx(chosen.var(ddof=1), abs=1e-10)
        else:
            assert np.isnan(moments.variance[row])


def test_pooled_spread_centres_each_row_on_its_own_mean() -> None:
    scores = np.array([[0.0, 100.0], [2.0, 102.0], [4.0, 104.0]])
    moments = row_moments(scores, np.ones((3, 2), dtype=np.bool_))
    # Σ(s - mean_row)² = 8 + 8 over 6 scores less 2 rows.
    assert moments.pooled_sigma(np.array([True, True])) == 2.0


def test_pooled_spread_does_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    scores, mask = rng.normal(0, 10.0 ** rng.integers(-6, 6, 500), (8, 500)), rng.random((8, 500)) < 0.5
    order = rng.permutation(500)
    rows = mask.sum(axis=0) >= 2
    straight = row_moments(scores, mask).pooled_sigma(rows)
    assert row_moments(scores[:, order], mask[:, order]).pooled_sigma(rows[order]) == straight


def test_no_row_with_two_models_is_no_spread() -> None:
    moments = row_moments(np.zeros((2, 3)), np.array([[True] * 3, [False] * 3]))
    with pytest.raises(CouldNotJudge, match="more references"):
        moments.pooled_sigma(np.array([False, False, False]))
