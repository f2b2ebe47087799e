"""Confidence in the true label: a row the model was trained on tends to get a higher probability for its own label.

Score: p_y. The attack of the rule this project applies (MLO-41).
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations


def scores(observations: Observations) -> FloatArray:
    """Return the probability of each row's own label, float64 (n,), in [0, 1]."""
    answer = np.empty(observations.n)
    for block in observations.blocks():
        answer[block.rows] = block.of_true(block.probabilities)
    return answer
