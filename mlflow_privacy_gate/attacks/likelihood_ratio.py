"""Log-likelihood ratio: how much likelier the model finds a row than models that never saw it; what is merely easy cancels out.

Score: log p_target(x) - mean_k log p_reference_k(x), the generative form of Carlini et al. (2022, "Membership inference attacks from first
principles"); its z-score divides by the references' standard deviation (ddof 1).
"""

from __future__ import annotations

from typing import cast

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.arrays import refuse_rows
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError

FLOOR = 1e-3  # smallest standard deviation in nats, so that references that agree exactly do not divide by nothing


def scores(observations: Observations) -> FloatArray:
    """Return the log-likelihood ratio of each row, float64 (n,).

    ObservationError, naming rows, where target and reference are infinite alike and the ratio means nothing.
    """
    target, reference = _both(observations)
    with np.errstate(invalid="ignore"):
        ratio = target - reference.mean(axis=0)
    refuse_rows(np.isnan(ratio), "log-likelihood ratio", "are infinite under the model and a reference alike")
    return cast(FloatArray, ratio)


def z_scores(observations: Observations) -> FloatArray:
    """Return the ratio of each row in standard deviations of two or more references, float64 (n,)."""
    _, reference = _both(observations)
    if len(reference) < 2:
        raise ObservationError("the z-score of a log-likelihood ratio needs two references or more, got 1")
    refuse_rows(~np.isfinite(reference).all(axis=0), "reference log-likelihood", "are infinite")
    spread = np.asarray(np.maximum(reference.std(axis=0, ddof=1), FLOOR), dtype=np.float64)
    return scores(observations) / spread


def _both(observations: Observations) -> tuple[FloatArray, FloatArray]:
    target, reference = observations.log_likelihood, observations.reference_log_likelihood
    if target is None or reference is None:
        raise ObservationError(f"expected log-likelihoods of the model and of a reference, got {observations.basis}")
    return target, reference
