"""Log-likelihood ratio: how much likelier the model finds a row than models that never saw it; what is merely easy cancels out.

Score: log p_target(x) - mean_k log p_reference_k(x), the generative form of Carlini et al. (2022, "Membership inference attacks from first
principles"); its z-score divides by the references' standard deviation (ddof 1). References that were trained on a row have no say of it.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.arrays import refuse_rows
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError

FLOOR = 1e-3  # smallest standard deviation in nats, so that references that agree exactly do not divide by nothing


def scores(observations: Observations) -> FloatArray:
    """Return the log-likelihood ratio of each row, float64 (n,); NaN where every reference was trained on the row.

    ObservationError, naming rows, where target and reference are infinite alike and the ratio means nothing.
    """
    target, reference, out = _all_three(observations)
    with np.errstate(invalid="ignore"):
        ratio = target - _mean(reference, out)
    refuse_rows(
        np.isnan(ratio) & out.any(axis=0), "log-likelihood ratio", "are infinite under the model and a reference alike"
    )
    return ratio


def z_scores(observations: Observations) -> FloatArray:
    """Return the ratio of each row in standard deviations of the references, float64 (n,); NaN where fewer than two have a say."""
    _, reference, out = _all_three(observations)
    counted = out.sum(axis=0)
    if counted.max() < 2:
        raise ObservationError(
            f"the z-score of a log-likelihood ratio needs two references or more, got {counted.max()} that were not trained on a row"
        )
    refuse_rows((~np.isfinite(reference) & out).any(axis=0), "reference log-likelihood", "are infinite")
    with np.errstate(invalid="ignore"):
        squares = np.where(out, np.square(reference - _mean(reference, out)), 0.0).sum(axis=0)
    spread = np.sqrt(squares / np.maximum(counted - 1, 1))
    return np.where(counted > 1, scores(observations) / np.maximum(spread, FLOOR), np.nan)


def _mean(reference: FloatArray, out: BoolArray) -> FloatArray:
    """Return the mean over the models that were not trained on the row, (n,); NaN where there is none."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(out, reference, 0.0).sum(axis=0) / out.sum(axis=0), dtype=np.float64)


def _all_three(observations: Observations) -> tuple[FloatArray, FloatArray, BoolArray]:
    target, reference = observations.log_likelihood, observations.reference_log_likelihood
    trained_on = observations.reference_in_mask
    if target is None or reference is None or trained_on is None:
        raise ObservationError(f"expected log-likelihoods of the model and of a reference, got {observations.basis}")
    return target, reference, ~trained_on
