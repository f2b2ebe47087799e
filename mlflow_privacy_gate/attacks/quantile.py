"""The ``quantile`` attack: is the model surer of this row than rows like it make one expect?

A regressor learns from features and label which ``loss`` score the model gives to rows it was *not* trained on; the attack's score is
what a row's own loss score has beyond that. No reference model is needed, so a black box can be tested that cannot be trained again.
Every row, member or not, is compared with a regressor fitted on four fifths of the non-members, and on no row equal to it.

Bertran, Tang, Kearns, Morgenstern, Roth and Wu, *Scalable Membership Inference Attacks via Quantile Regression*, NeurIPS 2023.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.arrays import refuse_rows
from mlflow_privacy_gate.attacks.labelled_rows import LabelledRows, labelled_rows
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import clipped_loss
from mlflow_privacy_gate.errors import ObservationError

FOLDS = 5
# Fewer non-members cannot teach a regressor what is usual.
FEWEST_NON_MEMBERS = 50


def scores(
    observations: Observations, *, features: pd.DataFrame, is_member: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Score n rows, (n,) float64: the loss score less what features (n, d) and label predict; higher = more likely a member."""
    loss = clipped_loss(observations)
    assert observations.true_column is not None  # clipped_loss refuses anything but a classifier's probabilities
    return residuals(loss, labelled_rows(features, observations.true_column), is_member, rng=rng)


def residuals(
    loss: FloatArray,
    rows: LabelledRows,
    is_member: BoolArray,
    *,
    rng: np.random.Generator,
    quantile: float | None = 0.5,
) -> FloatArray:
    """Give each loss score (n,) less what a regressor fitted on other non-members predicts from its row, (n,) float64.

    ``quantile`` in (0, 1): which quantile of the loss score is predicted; None: its mean. ObservationError for fewer than 50 non-members.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    _refuse(loss, rows, is_member)
    order = rows.order(is_member.astype(np.float64), loss)
    groups = rows.groups(order)
    fold = (rng.permutation(int(groups[-1]) + 1) % FOLDS)[groups]
    regressor = HistGradientBoostingRegressor(
        loss="squared_error" if quantile is None else "quantile",
        quantile=quantile,
        categorical_features=list(rows.categories),
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    predicted = np.empty(loss.size)
    with threadpool_limits(limits=1, user_api="openmp"):
        for number in range(FOLDS):
            learn, ask = order[(fold != number) & ~is_member[order]], order[fold == number]
            if ask.size:
                predicted[ask] = regressor.fit(rows.table[learn], loss[learn]).predict(rows.table[ask])
    return loss - predicted


def _refuse(loss: FloatArray, rows: LabelledRows, is_member: BoolArray) -> None:
    if len(rows.table) != loss.size or is_member.shape != loss.shape:
        raise ObservationError(
            f"quantile: expected rows and membership for {loss.size} scores, got {len(rows.table)} and {is_member.shape}"
        )
    refuse_rows(~np.isfinite(loss), "quantile", "have a loss score that is NaN or infinite")
    non_members = loss.size - int(is_member.sum())
    if non_members < FEWEST_NON_MEMBERS:
        raise ObservationError(f"quantile: needs {FEWEST_NON_MEMBERS} non-members or more, got {non_members}")
