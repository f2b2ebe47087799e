"""Relative membership inference (``rmia``): does the row gain more from this model than other rows of the population do?

A row's ratio is p(x) / p̄(x), its probability under the target over what it gets from reference models. The attack AUC is taken on
that ratio. The share of population rows z with ratio(x) ≥ gamma · ratio(z) is the paper's score and is reported beside it: with the
non-members for population it counts each of them against itself, which leans towards passing.

Zarifzadeh, Liu and Shokri, *Low-Cost High-Power Membership Inference Attacks*, ICML 2024 (equations 9 and 10).
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.moments import row_moments
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References, probability_of_label, target_loss
from mlflow_privacy_gate.errors import ObservationError

GAMMA = 1.0
OFFLINE_SLOPE = 0.3


def online_ratios(target: FloatArray, references: References) -> FloatArray:
    """Give p(x) / p̄(x) from ``loss`` scores (n,), p̄ the mean over all references.

    NaN where fewer than two models were trained with the row, or without it.
    """
    mean = row_moments(references.probability_of_label, np.ones_like(references.in_mask)).mean
    rows = references.enough_out & references.enough_in
    return np.where(rows, probability_of_label(target) / mean, np.nan)


def offline_ratios(target: FloatArray, references: References, *, slope: float = OFFLINE_SLOPE) -> FloatArray:
    """Give p(x) / p̄(x) from ``loss`` scores (n,) when no model was trained with the rows: p̄ = ½((1 + a)·p̄_out + (1 - a)).

    ``slope`` is the paper's a. NaN where fewer than two models were trained without the row.
    """
    out = row_moments(references.probability_of_label, ~references.in_mask).mean
    mean = 0.5 * ((1 + slope) * out + (1 - slope))
    return np.where(references.enough_out, probability_of_label(target) / mean, np.nan)


def share_outdone(ratios: FloatArray, population: FloatArray, *, gamma: float = GAMMA) -> FloatArray:
    """Give for each ratio (n,) the share of ``population`` ratios (m,) it outdoes: those z with ratio ≥ gamma · z, a fraction in [0, 1].

    NaN stays NaN; NaN in the population is left out. Memory is linear in n + m. ObservationError for an empty population.
    """
    bars = np.sort(gamma * population[~np.isnan(population)])
    if bars.size == 0:
        raise ObservationError("rmia: the population has no row with enough reference models; use more references")
    outdone = np.searchsorted(bars, ratios, side="right") / bars.size
    return np.where(np.isnan(ratios), np.nan, outdone)


def scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows by p(x) / p̄(x), (n,) float64; higher = more likely a member, NaN for rows left out.

    Online; offline only where none of the references was trained with any of the rows (foreign models).
    """
    target = target_loss(observations, references)
    return online_ratios(target, references) if references.in_mask.any() else offline_ratios(target, references)
