"""Loss, logit-scaled: a row the model was trained on tends to have a lower cross-entropy.

Score: log p_y - log sum_{j != y} p_j, from logits z_y - logsumexp_{j != y} z_j. It orders rows as the cross-entropy of Yeom et al. (2018,
"Privacy risk in machine learning", section 3) does, on the scale of Carlini et al. (2022, "Membership inference attacks from first
principles", section IV-C). The sum of the others stands for 1 - p_y, which loses every digit near p_y = 1.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.sums import log_sum_exp, sum_over_classes


def scores(observations: Observations) -> FloatArray:
    """Return the log-odds of each row's own label, float64 (n,); ``inf`` where all else has probability 0, ``-inf`` where it has."""
    answer = np.empty(observations.n)
    for block in observations.blocks():
        if block.logits is not None:
            others = log_sum_exp(block.without_true(block.logits, -np.inf))
            answer[block.rows] = block.of_true(block.logits) - others
        else:
            with np.errstate(divide="ignore"):
                others = np.log(sum_over_classes(block.without_true(block.probabilities, 0.0)))
                answer[block.rows] = np.log(block.of_true(block.probabilities)) - others
    return answer
