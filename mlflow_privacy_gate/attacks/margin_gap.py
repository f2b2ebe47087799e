"""Gap to the next class: how far the true label's probability stands above the best of the others.

Score: p_y - max_{j != y} p_j, the hinge form of the confidence attack (Carlini et al. 2022, section IV-C, compare it with the loss).
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations


def scores(observations: Observations) -> FloatArray:
    """Return each row's gap, float64 (n,), in [-1, 1]."""
    answer = np.empty(observations.n)
    for block in observations.blocks():
        best_other = block.without_true(block.probabilities, -np.inf).max(axis=0)
        answer[block.rows] = block.of_true(block.probabilities) - best_other
    return answer
