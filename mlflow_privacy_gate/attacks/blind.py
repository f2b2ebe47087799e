"""Blind baseline: how well members and non-members are told apart without asking the model at all.

A gradient-boosted classifier is fitted on features and label and scores only rows it was not fitted on. Where it succeeds, the two splits
differ by themselves and no attack AUC on them means anything. Das, Zhang and Tramer (2024, "Blind baselines beat membership inference
attacks for foundation models"). The interval is DeLong's, its half-width times 1.5: Nadeau and Bengio (2003, "Inference for the
generalization error") put the variance of k-fold estimates at 1 + k/(k-1) times the naive one, 2.25 for five folds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
from mlflow_privacy_gate.attacks.differences import ColumnDifference, column_differences
from mlflow_privacy_gate.attacks.encoding import EncodedColumn, encode
from mlflow_privacy_gate.attacks.row_order import RowOrder, seeded_order
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import Interval, attack_auc, delong_interval

FOLDS = 5
FEWEST_ROWS = 50  # a side; the classifier's leaves hold 20 rows
MOST_ROWS = 10_000  # a side
_MOST_CELLS = 1_000_000  # a side, so that wide frames take no longer than long ones
_MOST_NAMED = 5
_WIDENING = math.sqrt(1 + FOLDS / (FOLDS - 1))


@dataclass(frozen=True)
class BlindBaseline:
    """What can be told without the model: out-of-fold ``auc`` with its ``interval``, on ``rows_members`` and ``rows_non_members``.

    ``columns``: the columns that give the splits away, worst first, time columns before all others; at most five.
    """

    auc: float
    interval: Interval
    columns: tuple[ColumnDifference, ...]
    rows_members: int
    rows_non_members: int

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of ``columns``."""
        return tuple(difference.column for difference in self.columns)


def blind_baseline(
    members: pd.DataFrame, non_members: pd.DataFrame, *, rng: np.random.Generator, most_rows: int = MOST_ROWS
) -> BlindBaseline:
    """Try to tell members from non-members by features and label alone, on a seeded sample of at most ``most_rows`` a side.

    ``members`` and ``non_members``: the splits with their target among the columns, the same columns on both sides. The answer depends on
    the seed and the rows, not on their order. ObservationError where columns differ or a side has fewer than 50 rows.
    """
    non_members = _same_columns(members, non_members)
    most_rows = max(FEWEST_ROWS, min(most_rows, _MOST_CELLS // members.shape[1]))
    salt = int(rng.integers(np.iinfo(np.int64).max))
    orders = [seeded_order(side, salt, most_rows) for side in (members, non_members)]
    sampled = [side.iloc[order.rows] for side, order in zip((members, non_members), orders, strict=True)]
    is_member = np.repeat([True, False], [len(side) for side in sampled])
    columns = [_pooled(sampled, position) for position in range(members.shape[1])]
    scores = _out_of_fold_scores(columns, is_member, _folds(orders))
    told_apart = column_differences(columns, is_member)
    sides = scores[is_member], scores[~is_member]
    auc = attack_auc(*sides)
    interval = _widened(auc, delong_interval(*sides))
    return BlindBaseline(auc, interval, told_apart[:_MOST_NAMED], len(sampled[0]), len(sampled[1]))


def _widened(auc: float, interval: Interval) -> Interval:
    """Widen DeLong's interval for folds that were trained on each other's rows; without it noise is called a difference too often."""
    low, high, upper = (
        min(1.0, max(0.0, auc + _WIDENING * (bound - auc))) for bound in (interval.low, interval.high, interval.upper)
    )
    return replace(interval, low=low, high=high, upper=upper, method=f"{interval.method}, widened for cross-validation")


def _same_columns(members: pd.DataFrame, non_members: pd.DataFrame) -> pd.DataFrame:
    """Return the non-members with their columns in the members' order."""
    alone = set(members.columns) ^ set(non_members.columns)
    if alone or members.shape[1] == 0:
        named = f": {sorted(map(str, alone))[:5]} on one side only" if alone else ""
        raise ObservationError(f"blind baseline: expected the same columns on both sides, and at least one{named}")
    for frame, side in ((members, "members"), (non_members, "non-members")):
        if not frame.columns.is_unique:
            raise ObservationError(f"blind baseline: columns of the {side} stand more than once")
        if len(frame) < FEWEST_ROWS:
            raise ObservationError(f"blind baseline: {len(frame)} {side}; at least {FEWEST_ROWS} a side are needed")
    aligned: pd.DataFrame = non_members[list(members.columns)]
    return aligned


def _pooled(sides: Sequence[pd.DataFrame], position: int) -> EncodedColumn:
    parts: list[pd.Series[Any]] = [side.iloc[:, position] for side in sides]
    if parts[0].dtype != parts[1].dtype and not all(pd.api.types.is_numeric_dtype(part.dtype) for part in parts):
        parts = [part.astype(object) for part in parts]
    return encode(parts[0].name, pd.concat(parts, ignore_index=True))


def _folds(orders: Sequence[RowOrder]) -> IntArray:
    """Deal the different rows of each side over the folds; equal rows go together, or the classifier would know its test rows."""
    return np.concatenate([order.distinct % FOLDS for order in orders])


def _out_of_fold_scores(columns: Sequence[EncodedColumn], is_member: BoolArray, folds: IntArray) -> FloatArray:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X = np.column_stack([column.numbers for column in columns])
    scores = np.empty(len(X))
    for fold in range(FOLDS):
        held_out = folds == fold
        classifier = HistGradientBoostingClassifier(
            max_iter=50,
            max_leaf_nodes=15,
            early_stopping=False,
            categorical_features=[column.kind == "category" for column in columns],
            random_state=0,
        )
        with threadpool_limits(limits=1):  # many threads on few rows wait for each other longer than one works
            classifier.fit(X[~held_out], is_member[~held_out])
            scores[held_out] = classifier.decision_function(X[held_out])
    return scores
