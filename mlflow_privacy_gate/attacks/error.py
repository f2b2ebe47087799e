"""Error of a regressor: a row the model was trained on tends to be predicted more closely.

Score: -|y - yhat|; with several outputs the mean over outputs of -|y_k - yhat_k| / s_k, where s_k is the mean absolute error of output k over
members and non-members together, so that no unit outweighs another. Yeom et al. (2018, "Privacy risk in machine learning", section 3.2).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError


def scores(observations: Observations) -> FloatArray:
    """Return the negative error of each row, float64 (n,); in the target's unit for one output, else in mean errors.

    ObservationError for several outputs without a scale that both sides share: see :func:`with_shared_scale`.
    """
    residuals = _residuals(observations)
    if observations.output_scale is not None:
        return -(residuals / observations.output_scale).sum(axis=1) / observations.outputs
    if observations.outputs > 1:
        raise ObservationError(
            f"error: {observations.outputs} outputs need one scale for members and non-members; "
            "score both sides at once, or give `output_scale`"
        )
    return -residuals[:, 0]


def with_shared_scale(*sides: Observations) -> tuple[Observations, ...]:
    """Give all sides the same scale per output: the mean absolute error over all of them, exact for any order of rows."""
    residuals = np.concatenate([_residuals(side) for side in sides])
    means = [math.fsum(column) / len(residuals) for column in residuals.T]
    scale = np.array([mean if mean > 0 else 1.0 for mean in means])
    scale.flags.writeable = False
    return tuple(replace(side, output_scale=scale) for side in sides)


def _residuals(observations: Observations) -> FloatArray:
    if observations.residuals is None:
        raise ObservationError(f"expected predictions of a regressor, got {observations.basis}")
    return observations.residuals
