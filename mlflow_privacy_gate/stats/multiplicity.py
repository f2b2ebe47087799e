"""More than one test on the same rows: the interval of the worst of several attacks, and Holm's correction.

The max-statistic bootstrap is Chernozhukov, Chetverikov and Kato 2013, with Gaussian multipliers on DeLong's placement values: rows
keep their attacks together, so that attacks which agree are not counted as independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats.auc import interval_of
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.results import FloatArray, IntegerArray, Interval
from mlflow_privacy_gate.stats.scores import SortedScores, real_vector

_LEVEL = 0.95
_INTEGER_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class _Side:
    """One attack's scores of one side, ``ascending``, and the caller's row that each is of (``order``): the same row in every attack."""

    order: npt.NDArray[np.intp]
    ascending: FloatArray

    @classmethod
    def of(cls, scores: npt.ArrayLike, what: str) -> _Side:
        """Check and sort one side's scores, once."""
        vector = real_vector(scores, what)
        order = np.argsort(vector)
        return cls(order, vector[order])

    def placements(self, others: _Side) -> IntegerArray:
        """Return 2·#{others below} + #{others equal} for each row, in row order (searched in score order, which is kind to the cache)."""
        below, not_above = (np.searchsorted(others.ascending, self.ascending, side=side) for side in ("left", "right"))
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = below + not_above
        return found


@dataclass(frozen=True, eq=False)
class _RowScores:
    """One attack's scores of both sides."""

    members: _Side
    non_members: _Side

    @property
    def sorted(self) -> SortedScores:
        """The scores without their rows."""
        return SortedScores(self.members.ascending, self.non_members.ascending)

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows there are on each side."""
        return len(self.members.order), len(self.non_members.order)


def max_auc_interval(
    scores: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, rng: np.random.Generator, replicates: int = 20_000
) -> Interval:
    """Return the 95 % interval of the largest AUC among several attacks on the same rows, the choice of the largest accounted for.

    ``scores`` maps each attack's name to its (member scores (m,), non-member scores (n,)); row i is the same row in every attack.
    With t the 97.5 % point of the largest standardised error among all attacks (the max statistic, ``replicates`` draws of their joint
    Gaussian limit), ``low`` = max(AUC - t · SE). ``high`` and ``upper`` are the largest of the attacks' own bounds, which need no
    correction: whichever attack is truly worst, its own bound covers it and the largest bound is no smaller.
    For one attack this is :func:`mlflow_privacy_gate.stats.delong_interval` up to the draws.
    Raises ObservationError as :func:`mlflow_privacy_gate.stats.attack_auc` does, and where attacks differ in their numbers of rows.
    """
    if not scores:
        raise UsageError("scores: expected at least one attack, got none")
    if replicates < 1:
        raise UsageError(f"replicates: expected at least 1, got {replicates}")
    attacks = _aligned(scores)
    aucs, own = _each_auc_and_interval(attacks)
    spread = [index for index, interval in enumerate(own) if not interval.degenerate]
    lows = [interval.low for interval in own if interval.degenerate]
    if spread:
        covariance = _auc_covariance([attacks[index] for index in spread])
        errors = np.sqrt(np.diag(covariance))
        t = _max_statistic(covariance / np.outer(errors, errors), rng, replicates)
        lows.extend(float(aucs[index] - t * error) for index, error in zip(spread, errors, strict=True))
    return Interval(
        low=max(0.0, *lows),
        high=max(interval.high for interval in own),
        upper=max(interval.upper for interval in own),
        method=f"max-statistic bootstrap over {len(own)} attacks, {replicates} draws",
        degenerate=own[int(np.argmax(aucs))].degenerate,
    )


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return Holm's step-down adjusted p-values (k,), in the order given; an adjusted p at or below 0.05 holds for the family.

    ``p_values`` (k,) fractions in [0, 1]; ObservationError otherwise. Source: Holm 1979.
    """
    given = real_vector(p_values, "p-values")
    outside = np.flatnonzero((given < 0) | (given > 1))
    if len(outside):
        raise ObservationError(
            f"p-values: {len(outside)} of {len(given)} lie outside [0, 1] (the first is number {outside[0]})"
        )
    order = np.argsort(given, kind="stable")
    stepped = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _aligned(scores: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> list[_RowScores]:
    attacks = {
        name: _RowScores(_Side.of(members, f"{name}: member scores"), _Side.of(others, f"{name}: non-member scores"))
        for name, (members, others) in sorted(scores.items())
    }
    sizes = {name: attack.rows for name, attack in attacks.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {m} + {n}" for name, (m, n) in sizes.items())
        raise ObservationError(f"attacks must score the same rows; got members + non-members: {listed}")
    return list(attacks.values())


def _each_auc_and_interval(attacks: list[_RowScores]) -> tuple[list[float], list[Interval]]:
    placed = [place(attack.sorted) for attack in attacks]
    return [placements.auc for placements in placed], [interval_of(placements, _LEVEL) for placements in placed]


def _auc_covariance(attacks: list[_RowScores]) -> FloatArray:
    """Return DeLong's covariance (K, K) of the attacks' AUCs; the sums are exact, so row order does not change a bit."""
    members = np.stack([attack.members.placements(attack.non_members) for attack in attacks])
    non_members = np.stack([attack.non_members.placements(attack.members) for attack in attacks])
    return _mean_covariance(members, non_members.shape[1]) + _mean_covariance(non_members, members.shape[1])


def _mean_covariance(placements: IntegerArray, others: int) -> FloatArray:
    """Return the covariance (K, K) of the K means of ``placements`` (K, rows) / (2 · others)."""
    count, rows = placements.shape
    sums = [int(total) for total in placements.sum(axis=1)]
    products = [[0] * count for _ in range(count)]
    block = max(1, min(rows, _INTEGER_LIMIT // (4 * others * others)))
    for start in range(0, rows, block):
        part = placements[:, start : start + block]
        for k, row in enumerate((part @ part.T).tolist()):
            products[k] = [total + more for total, more in zip(products[k], row, strict=True)]
    scale = 4 * others * others * rows * rows * (rows - 1)
    return np.array(
        [[(rows * products[k][j] - sums[k] * sums[j]) / scale for j in range(count)] for k in range(count)],
        dtype=np.float64,
    )


def _max_statistic(correlation: FloatArray, rng: np.random.Generator, replicates: int) -> float:
    """Return the 97.5 % point of the largest of K standard normal errors with that correlation; never below one error's own."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    largest = (rng.standard_normal((replicates, len(correlation))) @ root.T).max(axis=1)
    return max(float(np.quantile(largest, (1 + _LEVEL) / 2)), float(norm.ppf((1 + _LEVEL) / 2)))
