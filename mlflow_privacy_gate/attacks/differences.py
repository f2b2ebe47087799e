"""Which columns tell two frames apart by themselves: the largest gap between two distributions, with its p-value.

Numbers, times and long lists of texts: Kolmogorov-Smirnov on ranks, a missing value below all others. Categories: chi-square, and as
distance the total variation, which is on the same scale (the largest difference in probability of any set of values).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, ks_2samp

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.encoding import EncodedColumn
from mlflow_privacy_gate.stats import holm

LEVEL = 0.01
_FEWEST_EXPECTED = 5  # categories expected less often on a side are taken together, as chi-square needs


@dataclass(frozen=True)
class ColumnDifference:
    """How one column differs between members and non-members.

    ``kind`` as in :mod:`.encoding`; ``test`` is ``KS`` or ``chi-square``; ``distance`` a fraction in [0, 1]; ``p_value`` Holm-corrected
    over all columns.
    """

    column: str
    kind: str
    test: str
    distance: float
    p_value: float


def column_differences(columns: Sequence[EncodedColumn], is_member: BoolArray) -> tuple[ColumnDifference, ...]:
    """Name the columns that differ (Holm-corrected p at most 0.01), time columns first, then the largest distance first."""
    raw = [_compare(column, is_member) for column in columns]
    corrected = holm([p_value for _, _, p_value in raw])
    found = [
        ColumnDifference(column.name, column.kind, test, distance, float(p_value))
        for column, (test, distance, _), p_value in zip(columns, raw, corrected, strict=True)
        if p_value <= LEVEL
    ]
    return tuple(sorted(found, key=lambda found: (found.kind != "time", -found.distance, found.column)))


def _compare(column: EncodedColumn, is_member: BoolArray) -> tuple[str, float, float]:
    values = np.where(np.isnan(column.numbers), -np.inf, column.numbers)
    if column.kind == "category":
        return "chi-square", *_categories(values, is_member)
    result = ks_2samp(values[is_member], values[~is_member], method="asymp")
    return "KS", float(result.statistic), float(result.pvalue)


def _categories(values: FloatArray, is_member: BoolArray) -> tuple[float, float]:
    """Return total variation and chi-square p-value of one categorical column."""
    different, codes = np.unique(values, return_inverse=True)
    table = np.stack([np.bincount(codes[side], minlength=different.size) for side in (is_member, ~is_member)])
    shares = table / table.sum(axis=1, keepdims=True)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    rare = (expected < _FEWEST_EXPECTED).any(axis=0)
    table = np.column_stack((table[:, ~rare], table[:, rare].sum(axis=1)))
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return distance, 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    return distance, float(chi2.sf(statistic, table.shape[1] - 1))
