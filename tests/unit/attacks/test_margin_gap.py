"""The gap is measured to the best of the other classes."""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks import Observations, scores


def test_the_gap_is_the_own_probability_less_the_best_other() -> None:
    observed = Observations.from_probabilities(
        [[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0, 2, 0, 0], [0, 1, 2]
    )
    np.testing.assert_allclose(scores("margin_gap", observed), [0.3, -0.5, 1.0, -1.0], rtol=1e-15)
