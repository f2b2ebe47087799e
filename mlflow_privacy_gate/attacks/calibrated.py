"""The ``calibrated`` attack: how far a row's loss score lies above what models say that never saw the row.

``(s - mean_out) / sqrt(max(var_out, floor))`` with ddof 1 over the reference models trained without the row, s = the ``loss`` score.
Watson, Guo, Cormode and Sablayrolles, *On the Importance of Difficulty Calibration in Membership Inference Attacks*, ICLR 2022
(equation 3), with the division by the row's own spread.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.moments import row_moments
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References, target_loss

VARIANCE_FLOOR = 0.01


def calibrated(target: FloatArray, references: References, *, variance_floor: float = VARIANCE_FLOOR) -> FloatArray:
    """Calibrate the target's ``loss`` scores (n,) by the models that did not see each row.

    Gives float64 (n,); NaN where fewer than two models were trained without the row.
    """
    out = row_moments(references.scores, ~references.in_mask)
    score = (target - out.mean) / np.sqrt(np.maximum(out.variance, variance_floor))
    return np.where(references.enough_out, score, np.nan)


def scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows, (n,) float64; higher = more likely a member, NaN where fewer than two models were trained without the row."""
    return calibrated(target_loss(observations, references), references)
