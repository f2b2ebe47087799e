"""rho_KS: is what a model says of a set of rows further from a model of those rows than a model without them is?

``rho_KS = KS(f(Dq), f_q(Dq)) / KS(f_cal(Dq), f_q(Dq))``, where KS is the two-sample Kolmogorov-Smirnov distance of the outputs on the
query rows Dq, f the target, f_q a model trained on the query rows and f_cal one trained on calibration rows without them. 1 or more
is read as forgotten. It misleads in two known ways: where the query resembles the other training rows, and where the calibration
model is weak.

Liu and Tsaftaris, *Have You Forgotten? A Method to Assess if Machine Learning Models Have Forgotten Data*, MICCAI 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats.scores import sort_scores


@dataclass(frozen=True)
class RhoKs:
    """rho_KS with the two distances it is made of, each a fraction in [0, 1].

    ``value`` is None where both distances are 0 (undefined) and infinite where the second alone is. The division is exact and
    rounded once.
    """

    target_to_query: float
    calibration_to_query: float
    value: float | None

    @property
    def forgotten(self) -> bool | None:
        """Whether the rule reads it as forgotten (rho_KS ≥ 1); None where it is undefined."""
        return None if self.value is None else self.value >= 1


def rho_ks(target: npt.ArrayLike, query_model: npt.ArrayLike, calibration_model: npt.ArrayLike) -> RhoKs:
    """Compare what three models say of the query rows.

    Each (n,), the probability of the row's own label; or (n, C), every class, and the distances are averaged over the classes.
    ObservationError for NaN, no rows, or different numbers of classes.
    """
    numerator, denominator = _distance(target, query_model), _distance(calibration_model, query_model)
    if denominator:
        value: float | None = float(numerator / denominator)
    else:
        value = math.inf if numerator else None
    return RhoKs(float(numerator), float(denominator), value)


def _distance(one: npt.ArrayLike, other: npt.ArrayLike) -> Fraction:
    columns, others = _columns(one), _columns(other)
    if len(columns) != len(others):
        raise ObservationError(f"KS: outputs of {len(columns)} and of {len(others)} classes cannot be compared")
    distances = [_largest_gap(column, its) for column, its in zip(columns, others, strict=True)]
    return sum(distances, Fraction(0)) / len(distances)


def _columns(outputs: npt.ArrayLike) -> list[npt.ArrayLike]:
    array = np.asarray(outputs)
    return list(array.T) if array.ndim == 2 else [outputs]


def _largest_gap(one: npt.ArrayLike, other: npt.ArrayLike) -> Fraction:
    """Return the largest distance of the two distribution functions, exact."""
    sides = sort_scores(one, other)
    values = np.concatenate((sides.members, sides.non_members))
    m, n = len(sides.members), len(sides.non_members)
    gaps = n * _at_most(sides.members, values) - m * _at_most(sides.non_members, values)
    return Fraction(int(np.abs(gaps).max()), m * n)


def _at_most(ascending: FloatArray, values: FloatArray) -> npt.NDArray[np.int64]:
    return np.searchsorted(ascending, values, side="right").astype(np.int64)
