"""Log-likelihood: a density or generative model gives rows it was trained on a higher likelihood.

Score: log p(x). The loss attack of Yeom et al. (2018) for a model whose loss is the negative log-likelihood.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError


def scores(observations: Observations) -> FloatArray:
    """Return the log-likelihood of each row under the model, float64 (n,)."""
    if observations.log_likelihood is None:
        raise ObservationError(f"expected log-likelihoods, got {observations.basis}")
    return np.array(observations.log_likelihood)
