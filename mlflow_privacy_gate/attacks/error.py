"""Error of a regressor: a row the model was trained on tends to be predicted more closely.

Score: -|y - yhat|; with several outputs the mean over outputs of -|y_k - yhat_k| / s_k, where s_k is the mean absolute error of output k
over members and non-members together, so that no unit outweighs another. Yeom et al. (2018, section 3.2).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.arrays import read_only
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError


def scores(observations: Observations) -> FloatArray:
    """Return the negative error of each row, float64 (n,); in the target's unit for one output, else in mean errors.

    ObservationError for several outputs without a scale that both sides share: see :func:`with_shared_scale`.
    """
    residuals = _residuals(observations)
    if observations.output_scale is not None:
        return -np.asarray(np.mean(residuals / observations.output_scale, axis=1), dtype=np.float64)
    if observations.outputs > 1:
        raise ObservationError(
            f"error: {observations.outputs} outputs need one scale for members and non-members; "
            "score both sides at once, or give `output_scale`"
        )
    return -np.asarray(residuals[:, 0], dtype=np.float64)


def with_shared_scale(*sides: Observations) -> tuple[Observations, ...]:
    """Give all sides the same scale per output: the mean absolute error over all of them, exact for any order of rows."""
    residuals = np.concatenate([_residuals(side) for side in sides])
    scale = read_only(np.array([_mean(column) or 1.0 for column in residuals.T]))
    return tuple(replace(side, output_scale=scale) for side in sides)


def _mean(errors: FloatArray) -> float:
    """Return the mean without rounding on the way, so that the order of rows cannot show in it."""
    largest = float(errors.max())
    return largest * (math.fsum(errors / largest) / errors.size) if largest > 0 else 0.0


def _residuals(observations: Observations) -> FloatArray:
    if observations.residuals is None:
        raise ObservationError(f"expected predictions of a regressor, got {observations.basis}")
    return observations.residuals
