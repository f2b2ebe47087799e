"""Negative modified entropy: entropy that knows the label, so that being sure and wrong does not look like a member.

Score: (1 - p_y) log p_y + sum_{j != y} p_j log(1 - p_j), which is -Mentr of Song and Mittal (2021, "Systematic evaluation of privacy
risks of machine learning models", equation 8). 1 - p of the largest class is taken as the sum of the others, which keeps its digits.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.sums import sum_over_classes


def scores(observations: Observations) -> FloatArray:
    """Return the negative modified entropy of each row in nats, float64 (n,), at most 0; ``-inf`` for sure and wrong."""
    answer = np.empty(observations.n)
    for block in observations.blocks():
        p = block.probabilities
        rest = _rest(p)
        own = xlogy(block.of_true(rest), block.of_true(p))
        answer[block.rows] = own + sum_over_classes(block.without_true(xlogy(p, rest), 0.0))
    return answer


def _rest(p: FloatArray) -> FloatArray:
    """Return 1 - p of (C, m) without loss of digits."""
    rest = 1 - p
    largest, rows = p.argmax(axis=0), np.arange(p.shape[1])
    others = p.copy()
    others[largest, rows] = 0.0
    rest[largest, rows] = sum_over_classes(others)
    return rest
