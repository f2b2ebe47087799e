"""A small network of dense layers and its training, plain or differentially private (DP-SGD, Abadi et al. 2016), in numpy alone.

For a dense layer the gradient of one row is the outer product of its input and its error. So the norm of every row's gradient is known
without any of them being written out: |input|² · |error|², summed over the layers (a bias is an input that is always 1). Clipping is then a
weight per row, and the sum of the clipped gradients is one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Training:
    """How to train: ``steps`` of gradient descent, each on every row independently with probability ``sampling_rate``.

    ``noise_multiplier`` None: plain training. Otherwise every row's gradient is clipped to the norm ``clip``, and Gaussian noise of
    ``noise_multiplier * clip`` is added to their sum.
    """

    steps: int
    sampling_rate: float
    learning_rate: float
    momentum: float = 0.9
    noise_multiplier: float | None = None
    clip: float = 1.0
    hidden: int = 64


@dataclass(frozen=True)
class Network:
    """Weights of a network with one hidden layer; the last row of each matrix is the bias."""

    first: FloatArray
    second: FloatArray

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """Answer with the probability of each class, (n, C)."""
        return _softmax(_with_bias(np.tanh(_with_bias(rows) @ self.first)) @ self.second)


def train(rows: FloatArray, labels: IntArray, classes: int, how: Training, seed: int) -> Network:
    """Train on ``rows`` (n, d) with ``labels`` (n,) in 0 … classes - 1."""
    rng = np.random.default_rng(seed)
    inputs, targets = _with_bias(rows), np.eye(classes)[labels]
    weights = [
        rng.normal(scale=1 / np.sqrt(inputs.shape[1]), size=(inputs.shape[1], how.hidden)),
        rng.normal(scale=1 / np.sqrt(how.hidden + 1), size=(how.hidden + 1, classes)),
    ]
    velocity = [np.zeros_like(matrix) for matrix in weights]
    expected = how.sampling_rate * len(rows)
    for _ in range(how.steps):
        drawn = rng.random(len(rows)) < how.sampling_rate
        gradients = _summed_gradients(weights, inputs[drawn], targets[drawn], how)
        for matrix, speed, gradient in zip(weights, velocity, gradients, strict=True):
            if how.noise_multiplier is not None:
                gradient = gradient + rng.normal(scale=how.noise_multiplier * how.clip, size=gradient.shape)
            # Divided by the expected number of rows: the number that was drawn is itself private.
            speed *= how.momentum
            speed -= how.learning_rate * gradient / expected
            matrix += speed
    return Network(*weights)


def gradient_norms(network: Network, rows: FloatArray, labels: IntArray) -> FloatArray:
    """Give the norm of each row's own gradient, (n,), in closed form."""
    classes = network.second.shape[1]
    layers = _layers([network.first, network.second], _with_bias(rows), np.eye(classes)[labels])
    return np.sqrt(sum((given**2).sum(axis=1) * (error**2).sum(axis=1) for given, error in layers))


def _summed_gradients(
    weights: list[FloatArray], inputs: FloatArray, targets: FloatArray, how: Training
) -> list[FloatArray]:
    """Sum the rows' gradients, each clipped first where the training is private."""
    layers = _layers(weights, inputs, targets)
    if how.noise_multiplier is None:
        return [given.T @ error for given, error in layers]
    norms = np.sqrt(sum((given**2).sum(axis=1) * (error**2).sum(axis=1) for given, error in layers))
    kept = np.minimum(1.0, how.clip / np.maximum(norms, 1e-12))[:, None]
    return [given.T @ (kept * error) for given, error in layers]


def _layers(weights: list[FloatArray], inputs: FloatArray, targets: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Give each layer's input and the error that reaches it, by row."""
    first, second = weights
    active = np.tanh(inputs @ first)
    hidden = _with_bias(active)
    error = _softmax(hidden @ second) - targets
    back = (error @ second[:-1].T) * (1 - active**2)
    return [(inputs, back), (hidden, error)]


def _with_bias(rows: FloatArray) -> FloatArray:
    return np.concatenate((rows, np.ones((len(rows), 1))), axis=1)


def _softmax(scores: FloatArray) -> FloatArray:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
