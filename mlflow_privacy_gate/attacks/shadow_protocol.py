"""The ``shadow_protocol`` figure: a forest told from the target's own losses which rows are members, cross-validated.

The commonly used check trains ``RandomForestClassifier`` on each row's cross-entropy to predict membership and reports the mean and
standard deviation of the AUC over five stratified folds; a mean of 0.60 or more fails. It is reported because others ask for it, under
its own name, and must not be read as resistance: a forest that sees a single number misses leaks. It gives 0.578, a pass, where the true
AUC of the very same losses is 0.667.

After Shokri et al., *Membership Inference Attacks Against Machine Learning Models*, IEEE S&P 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlflow_privacy_gate.attacks import confidence
from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.arrays import refuse_rows
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError

FOLDS = 5
TREES = 100
SEED = 42
# The protocol's own limit on the mean; it is not this project's margin.
FAILS_FROM = 0.60
# The protocol's floor under a probability.
SMALLEST_PROBABILITY = 1e-12
NOTE = "a forest that sees a single number misses leaks: it passes losses of a true attack AUC of 0.667"


@dataclass(frozen=True)
class ProtocolResult:
    """The AUC of each fold, a fraction in [0, 1], their ``mean`` and population standard deviation ``std``."""

    folds: tuple[float, ...]
    mean: float
    std: float

    @property
    def acceptable(self) -> bool:
        """Whether the protocol's own limit is kept: a mean under 0.60."""
        return self.mean < FAILS_FROM


def shadow_protocol(observations: Observations, is_member: BoolArray) -> ProtocolResult:
    """Run the protocol on what the target says of n rows, ``is_member`` (n,) bool: the mean and spread of the AUC over five folds."""
    return cross_validated(cross_entropy(observations), is_member)


def cross_validated(losses: FloatArray, is_member: BoolArray, *, seed: int = SEED) -> ProtocolResult:
    """Cross-validate a forest on losses (n,) against membership (n,) bool.

    Folds are cut from the rows in the order given, as the protocol cuts them: the order of rows matters here. ObservationError for NaN,
    an infinite loss, or fewer than five rows on a side.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    _refuse(losses, is_member)
    forest = RandomForestClassifier(TREES, random_state=seed)
    folds = cross_val_score(forest, losses[:, None], is_member, cv=StratifiedKFold(FOLDS), scoring="roc_auc")
    return ProtocolResult(tuple(float(fold) for fold in folds), float(folds.mean()), float(folds.std()))


def cross_entropy(observations: Observations) -> FloatArray:
    """Give -log p_y, float64 (n,), p_y no smaller than 1e-12."""
    return np.asarray(-np.log(np.maximum(confidence.scores(observations), SMALLEST_PROBABILITY)), dtype=np.float64)


def scores(observations: Observations, *, is_member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Score n rows by a forest that was fitted on the other folds, (n,) float64; higher = more likely a member.

    The AUC of these pooled scores is not the protocol's figure, which is :func:`shadow_protocol`'s.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    losses = cross_entropy(observations)
    _refuse(losses, is_member)
    order = np.lexsort((is_member, losses))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    forest = RandomForestClassifier(TREES, random_state=int(rng.integers(2**31)))
    answer = np.empty(losses.size)
    answer[order] = cross_val_predict(forest, losses[order, None], is_member[order], cv=folds, method="predict_proba")[
        :, 1
    ]
    return answer


def _refuse(losses: FloatArray, is_member: BoolArray) -> None:
    if losses.shape != is_member.shape or losses.ndim != 1:
        raise ObservationError(
            f"shadow_protocol: expected losses and membership of one shape (n,), got {losses.shape} and {is_member.shape}"
        )
    refuse_rows(~np.isfinite(losses), "shadow_protocol", "have a loss that is NaN or infinite")
    members = int(is_member.sum())
    if min(members, is_member.size - members) < FOLDS:
        raise ObservationError(
            f"shadow_protocol: needs {FOLDS} rows or more a side, got {members} members and {is_member.size - members} non-members"
        )
