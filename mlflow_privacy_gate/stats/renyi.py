"""Epsilon of the sampled Gaussian mechanism (DP-SGD) by Rényi accounting, in numpy and scipy alone.

Each step samples every row with probability q, clips, and adds Gaussian noise of sigma times the clipping norm; neighbouring data sets
differ by one row added or removed. The Rényi divergence of one step is log A(alpha) / (alpha - 1): a finite sum for whole orders, and
two alternating series for the others (Mironov, Talwar and Zhang 2019, sections 3.3.1 and 3.3.2). Steps add up, and epsilon is the
smallest over the orders of
``rdp - (log(delta) + log(alpha)) / (alpha - 1) + log((alpha - 1) / alpha)`` (Balle, Barthe, Gaboardi, Hsu and Sato 2020).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import binom, gammaln, log_ndtr, logsumexp

from mlflow_privacy_gate.errors import UsageError

# The orders that Opacus tries, so that both find the same minimum.
ORDERS: tuple[float, ...] = (*(1 + step / 10 for step in range(1, 100)), *map(float, range(12, 64)))
_FloatArray = npt.NDArray[np.float64]
_NEGLIGIBLE = -30.0  # of the sum so far, as a logarithm
# Where sampling is frequent and noise small the terms fall as a power only; each next one bounds what is left out.
_TERMS_TRIED = (1_000, 40_000)


# Beyond these a double no longer holds what epsilon is made of; no training comes near.
LEAST_NOISE, MOST_NOISE = 1e-6, 1e6
MOST_STEPS = 10**12
NOISE_EXPECTED = "a number from 1e-6 to 1e6"
STEPS_EXPECTED = "a whole number from 1 to 10^12"


def renyi_epsilon(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Return an upper bound on epsilon at ``delta``; infinite where no order gives one.

    ``sampling_rate`` in (0, 1], ``noise_multiplier`` from 1e-6 to 1e6, ``steps`` a whole number from 1 to 10^12, ``delta`` in (0, 1);
    UsageError otherwise.
    """
    require_training(sampling_rate, noise_multiplier, steps, delta)
    orders = np.array(ORDERS)
    divergence = steps * np.array([_divergence(sampling_rate, noise_multiplier, order) for order in ORDERS])
    epsilons = divergence - (math.log(delta) + np.log(orders)) / (orders - 1) + np.log((orders - 1) / orders)
    return max(0.0, float(np.min(epsilons)))


def require_training(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> None:
    """Raise UsageError unless these describe a training whose epsilon can be worked out."""
    for name, fits, expected, got in (
        ("sampling_rate", 0.0 < sampling_rate <= 1.0, "a fraction in (0, 1]", sampling_rate),
        ("noise_multiplier", LEAST_NOISE <= noise_multiplier <= MOST_NOISE, NOISE_EXPECTED, noise_multiplier),
        ("steps", 1 <= steps <= MOST_STEPS, STEPS_EXPECTED, steps),
        ("delta", 0.0 < delta < 1.0, "a fraction in (0, 1)", delta),
    ):
        if not fits:
            raise UsageError(f"{name}: expected {expected}, got {got!r}")


def _divergence(q: float, sigma: float, order: float) -> float:
    if q == 1.0:
        return order / (2 * sigma**2)
    log_a = _log_a_whole(q, sigma, int(order)) if order.is_integer() else _log_a_fraction(q, sigma, order)
    return log_a / (order - 1)


def _log_a_whole(q: float, sigma: float, order: int) -> float:
    k = np.arange(order + 1)
    log_binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = log_binomial + k * math.log(q) + (order - k) * math.log1p(-q) + (k * k - k) / (2 * sigma**2)
    return float(logsumexp(terms))


def _log_a_fraction(q: float, sigma: float, order: float) -> float:
    """Sum both series with their signs; infinite where they do not settle, so that the order is not used."""
    for terms in _TERMS_TRIED:
        total = _summed(q, sigma, order, terms)
        if total is not None:
            return total
    return math.inf


def _summed(q: float, sigma: float, order: float, most: int) -> float | None:
    i = np.arange(most, dtype=np.float64)
    j = order - i
    coefficient = binom(order, i)
    with np.errstate(divide="ignore"):
        log_coefficient = np.log(np.abs(coefficient))
    z = sigma**2 * math.log(1 / q - 1) + 0.5
    below = i * math.log(q) + j * math.log1p(-q) + (i * i - i) / (2 * sigma**2) + log_ndtr((z - i) / sigma)
    above = j * math.log(q) + i * math.log1p(-q) + (j * j - j) / (2 * sigma**2) + log_ndtr((j - z) / sigma)
    terms = np.stack((log_coefficient + below, log_coefficient + above))
    settled = _terms_that_matter(terms)
    if settled is None:
        return None
    total, sign = logsumexp(terms[:, :settled], b=np.sign(coefficient[:settled]), return_sign=True)
    return float(total) if sign > 0 else None


def _terms_that_matter(terms: _FloatArray) -> int | None:
    """Return after how many terms both series fall and are negligible; None where they do not."""
    largest = np.maximum.accumulate(terms.max(axis=0))
    falling = (np.diff(terms, axis=1) < 0).all(axis=0)
    done = np.flatnonzero(falling & (terms[:, 1:].max(axis=0) < largest[1:] + _NEGLIGIBLE))
    return int(done[0]) + 2 if done.size else None
