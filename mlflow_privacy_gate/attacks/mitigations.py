"""What a service could answer instead of the model's own probabilities; each is a function of observations, and retrains nothing.

An answer that keeps the predicted label leaves every attack that needs the label alone as it was (Choquette-Choo et al. 2021), and
protects only where each answer passes through it: the model itself stays what it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.arrays import read_only
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError, UsageError


def rounded(observations: Observations, digits: int) -> Observations:
    """Answer with probabilities of ``digits`` decimals; what is lost to rounding is shared out in proportion."""
    return _answering(observations, _sharing_out(np.round(_probabilities(observations), digits)))


def top_one(observations: Observations) -> Observations:
    """Answer with the predicted class and its probability; an attacker gives the others equal shares of the rest."""
    probabilities = _probabilities(observations)
    rows, top = np.arange(len(probabilities)), probabilities.argmax(axis=1)
    highest = probabilities[rows, top]
    shared = np.repeat((1.0 - highest)[:, None] / max(probabilities.shape[1] - 1, 1), probabilities.shape[1], axis=1)
    shared[rows, top] = highest
    return _answering(observations, shared)


def label_only(observations: Observations) -> Observations:
    """Answer with the predicted label alone; only ``correctness`` is left to attack it by."""
    correct = _probabilities(observations).argmax(axis=1) == observations.true_column
    return Observations("label_only", "predicted labels", observations.kept, correct=read_only(correct))


def tempered(observations: Observations, temperature: float) -> Observations:
    """Answer with probabilities flattened by a ``temperature`` above 1: p to the power 1/temperature, made to sum to 1 again."""
    if not temperature > 0:
        raise UsageError(f"temperature: expected a number above 0, got {temperature!r}")
    flattened = _probabilities(observations) ** (1.0 / temperature)
    return _answering(observations, _sharing_out(flattened))


def noisy(observations: Observations, scale: float, rng: np.random.Generator) -> Observations:
    """Answer with Gaussian noise of standard deviation ``scale`` on every probability, cut to [0, 1]; the same row gets the same answer.

    (A service that drew anew each time would let an attacker average.)
    """
    probabilities = _probabilities(observations)
    drawn = probabilities + rng.normal(scale=scale, size=probabilities.shape)
    return _answering(observations, _sharing_out(np.clip(drawn, 0.0, 1.0)))


def _probabilities(observations: Observations) -> FloatArray:
    if observations.kind != "classification":
        raise ObservationError(f"expected observations of a classifier's probabilities, got {observations.basis}")
    return np.concatenate([block.probabilities.T for block in observations.blocks()])


def _sharing_out(shares: FloatArray) -> FloatArray:
    total = shares.sum(axis=1, keepdims=True)
    shared: FloatArray = np.full_like(shares, 1.0 / shares.shape[1])
    np.divide(shares, total, out=shared, where=total > 0)
    return shared


def _answering(observations: Observations, probabilities: FloatArray) -> Observations:
    return replace(observations, basis="probabilities", probabilities=read_only(probabilities), logits=None)
