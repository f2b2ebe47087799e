"""The likelihood-ratio attacks (LiRA): is this loss score likelier from models that saw the row, or from models that did not?

With normal fits N(mean_out, sd_out) and N(mean_in, sd_in) to a row's reference scores and s its score under the target:

- ``lira_offline``: z = (s - mean_out) / sd_out, in the order of the paper's one-sided Φ(z) (equation 4), which saturates beyond z = 8.3;
- ``lira_offline_two_sided``: -log N(s; mean_out, sd_out), what the authors' code computes; it also scores a row far *below* mean_out high;
- ``lira_online``: log N(s; mean_in, sd_in) - log N(s; mean_out, sd_out).

Carlini, Chien, Nasr, Song, Terzis and Tramèr, *Membership Inference Attacks From First Principles*, IEEE S&P 2022.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.moments import Moments, row_moments
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References, target_loss
from mlflow_privacy_gate.errors import CouldNotJudge

# Below this many models a row's own spread is too noisy, and one pooled over all rows does better (Carlini et al., section VI).
ROW_SPREAD_FROM = 64
# Trees agree exactly on many rows, and a spread of zero would divide by zero.
SIGMA_FLOOR = 1e-3
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))


def offline(target: FloatArray, references: References) -> FloatArray:
    """Give z = (s - mean_out) / sd_out for ``loss`` scores (n,); NaN where fewer than two models were trained without the row."""
    rows = references.enough_out
    out = row_moments(references.scores, ~references.in_mask)
    z = (target - out.mean) / _sigma(out, rows, references.count)
    return np.where(rows, z, np.nan)


def offline_two_sided(target: FloatArray, references: References) -> FloatArray:
    """Give -log N(s; mean_out, sd_out) for ``loss`` scores (n,); NaN where fewer than two models were trained without the row."""
    rows = references.enough_out
    out = row_moments(references.scores, ~references.in_mask)
    return np.where(rows, -_log_normal(target, out, _sigma(out, rows, references.count)), np.nan)


def online(target: FloatArray, references: References) -> FloatArray:
    """Give log N(s; in) - log N(s; out) for ``loss`` scores (n,); NaN where fewer than two models were trained with, or without, the row.

    CouldNotJudge when no row has two models on either side.
    """
    rows = references.enough_out & references.enough_in
    if not rows.any():
        raise CouldNotJudge(
            "lira_online: no row has two reference models trained with it and two without; use more references"
        )
    with_row = row_moments(references.scores, references.in_mask)
    without = row_moments(references.scores, ~references.in_mask)
    likelihood_in = _log_normal(target, with_row, _sigma(with_row, rows, references.count))
    likelihood_out = _log_normal(target, without, _sigma(without, rows, references.count))
    return np.where(rows, likelihood_in - likelihood_out, np.nan)


def offline_scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows one-sidedly, (n,) float64; higher = more likely a member, NaN for rows left out."""
    return offline(target_loss(observations, references), references)


def offline_two_sided_scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows two-sidedly, (n,) float64; higher = less like a model that never saw the row, NaN for rows left out."""
    return offline_two_sided(target_loss(observations, references), references)


def online_scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows by the log-likelihood ratio, (n,) float64; higher = more likely a member, NaN for rows left out."""
    return online(target_loss(observations, references), references)


def _sigma(moments: Moments, rows: BoolArray, count: int) -> FloatArray:
    if count >= ROW_SPREAD_FROM:
        return np.sqrt(np.maximum(moments.variance, SIGMA_FLOOR**2))
    return np.full(moments.mean.shape, max(moments.pooled_sigma(rows), SIGMA_FLOOR))


def _log_normal(target: FloatArray, moments: Moments, sigma: FloatArray) -> FloatArray:
    z = (target - moments.mean) / sigma
    return np.asarray(-0.5 * z * z - np.log(sigma) - _HALF_LOG_TWO_PI, dtype=np.float64)
