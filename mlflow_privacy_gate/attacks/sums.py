"""Sums over classes, class after class, so that a row's sum has the same bits whichever rows stand beside it.

numpy's own sum adds in another order when an array holds one row, or is laid out differently.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from mlflow_privacy_gate.attacks._interface import FloatArray


def sum_over_classes(per_class: FloatArray) -> FloatArray:
    """Return the sum of each row, (m,), from (C, m) laid out class by class."""
    return np.asarray(reduce(np.add, per_class), dtype=np.float64)


def log_sum_exp(per_class: FloatArray) -> FloatArray:
    """Return log sum_j exp z_j of each row, (m,), from (C, m), without overflow; ``-inf`` where every z_j is."""
    largest = per_class.max(axis=0)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(shift + np.log(sum_over_classes(np.exp(per_class - shift))), dtype=np.float64)
