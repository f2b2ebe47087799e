"""Mean and spread of reference scores, row by row, over the models that were trained with a row or without it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.errors import CouldNotJudge


@dataclass(frozen=True)
class Moments:
    """Per row (n,): how many models were ``counted``, their ``mean``, and the ``squares`` Σ(s - mean)².

    ``mean`` is NaN where no model was counted.
    """

    counted: npt.NDArray[np.intp]
    mean: FloatArray
    squares: FloatArray

    @property
    def variance(self) -> FloatArray:
        """The variance with ddof 1, (n,); NaN where fewer than two models were counted."""
        degrees = np.where(self.counted > 1, self.counted - 1, 1)
        return np.where(self.counted > 1, self.squares / degrees, np.nan)

    def pooled_sigma(self, rows: BoolArray) -> float:
        """Give one standard deviation for all ``rows``, each centred on its own mean: sqrt(Σ squares / (N - rows)).

        The sum is exact, so the order of rows cannot change it. CouldNotJudge when no row has two models.
        """
        degrees = int(self.counted[rows].sum()) - int(rows.sum())
        if degrees < 1:
            raise CouldNotJudge("reference models: no row was left out by at least two of them; use more references")
        return math.sqrt(math.fsum(self.squares[rows]) / degrees)


def row_moments(scores: FloatArray, mask: BoolArray) -> Moments:
    """Take the moments of (K, n) ``scores`` over the models where ``mask`` (K, n) is True; extra memory is a few (n,) arrays."""
    counted = mask.sum(axis=0)
    total, squares = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    for row, chosen in zip(scores, mask, strict=True):
        np.add(total, row, out=total, where=chosen)
    mean = np.divide(total, counted, out=np.full_like(total, np.nan), where=counted > 0)
    for row, chosen in zip(scores, mask, strict=True):
        np.add(squares, np.square(row - mean), out=squares, where=chosen)
    return Moments(counted, mean, squares)
