"""Negative prediction entropy: a model tends to be surer of rows it was trained on, whatever their label.

Score: sum_j p_j log p_j, with 0 log 0 = 0. Salem et al. (2019, "ML-Leaks", adversary 3).
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.sums import sum_over_classes


def scores(observations: Observations) -> FloatArray:
    """Return the negative entropy of each row's probabilities in nats, float64 (n,), in [-log C, 0]."""
    answer = np.empty(observations.n)
    for block in observations.blocks():
        answer[block.rows] = sum_over_classes(xlogy(block.probabilities, block.probabilities))
    return answer
