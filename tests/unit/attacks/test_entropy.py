"""Entropy knows that 0 log 0 is 0, and knows nothing of the label."""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks import Observations, scores

TABLE = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.7, 0.2, 0.1]]
EXPECTED = [0.0, -np.log(2), -np.log(3), 0.7 * np.log(0.7) + 0.2 * np.log(0.2) + 0.1 * np.log(0.1)]


def test_entropy_is_the_sum_of_p_log_p_with_zero_for_nothing() -> None:
    observed = Observations.from_probabilities(TABLE, [0, 1, 2, 0], [0, 1, 2])
    np.testing.assert_allclose(scores("entropy", observed), EXPECTED, rtol=1e-14)


def test_entropy_is_the_same_from_logits_and_for_every_label() -> None:
    with np.errstate(divide="ignore"):
        observed = Observations.from_logits(np.log(TABLE), [2, 2, 1, 1], [0, 1, 2])
    np.testing.assert_allclose(scores("entropy", observed), EXPECTED, rtol=1e-14, atol=1e-15)
