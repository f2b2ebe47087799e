"""Correct label: a model errs less on rows it was trained on. All that can be seen of a model that shows labels only, and weaker.

Score: 1 where the predicted label is the true one, else 0. Yeom et al. (2018, "Privacy risk in machine learning",
adversary 1).
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations


def scores(observations: Observations) -> FloatArray:
    """Return 1.0 or 0.0 for each row, float64 (n,); of tied classes the first is the predicted one, as in scikit-learn."""
    if observations.correct is not None:
        return observations.correct.astype(np.float64)
    answer = np.empty(observations.n)
    for block in observations.blocks():
        likeliest = block.logits if block.logits is not None else block.probabilities
        answer[block.rows] = likeliest.argmax(axis=0) == block.true_column
    return answer
