"""What a claim of (epsilon, delta)-differential privacy allows an attacker, and the least epsilon an attack's success is compatible with.

Every attack on every (epsilon, delta) mechanism obeys the ceilings (Kairouz, Oh and Viswanath 2015). Turned round, an attack that
succeeds is a lower bound on epsilon (Jagielski, Ullman and Oprea 2020); the rows of one trained model stand for repeated trainings
(Steinke, Nasr and Jagielski 2023). A bound maximised over thresholds on the rows it is stated for is above 0 on nine noise draws in ten,
so attack, tail and threshold are chosen on one half of the rows and the bound is taken on the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats.results import EpsilonBound, FloatArray

STRONG_UP_TO = 1.0
MODERATE_UP_TO = 10.0
# exp() of more is infinite; a ceiling at such an epsilon is 1 all the same.
_LARGEST_EXPONENT = 700.0
_CANDIDATES_PER_END = 200
_BoolArray = npt.NDArray[np.bool_]
_Counts = npt.NDArray[np.int64]


def tpr_ceiling(epsilon: float, delta: float, fpr: float) -> float:
    """Return the largest TPR at ``fpr`` that (epsilon, delta) allows: min(e^eps · fpr + delta, 1 - e^-eps · (1 - delta - fpr)), a fraction.

    ``epsilon`` at least 0, ``delta`` and ``fpr`` fractions in [0, 1]; UsageError otherwise.
    """
    _require_budget(epsilon, delta)
    if not 0.0 <= fpr <= 1.0:
        raise UsageError(f"fpr: expected a fraction in [0, 1], got {fpr!r}")
    rising = math.exp(min(epsilon, _LARGEST_EXPONENT)) * fpr + delta
    falling = 1.0 - math.exp(-epsilon) * (1.0 - delta - fpr)
    return min(1.0, rising, falling)


def auc_ceiling(epsilon: float, delta: float) -> float:
    """Return the largest attack AUC that (epsilon, delta) allows: 1 - (1 - delta)² / (1 + e^eps), a fraction. Errors as above."""
    _require_budget(epsilon, delta)
    return 1.0 - (1.0 - delta) ** 2 / (1.0 + math.exp(min(epsilon, _LARGEST_EXPONENT)))


def band(epsilon: float) -> str:
    """Name a claim's band: ``strong`` up to 1, ``moderate`` up to 10, ``weak`` beyond."""
    if epsilon <= STRONG_UP_TO:
        return "strong"
    return "moderate" if epsilon <= MODERATE_UP_TO else "weak"


def epsilon_lower_bound(
    scores: Mapping[str, npt.ArrayLike],
    is_member: npt.ArrayLike,
    *,
    delta: float,
    rng: np.random.Generator,
    level: float = 0.95,
) -> EpsilonBound:
    """Return an epsilon that the model's true one exceeds with confidence ``level``, whatever its training claims.

    ``scores``: several attacks' scores of the same n rows, (n,) each, higher = more likely a member, NaN where an attack left the row
    out (such rows are used for none of them). ``is_member`` (n,) bool. ``delta``: a fraction in [0, 1). Both sides are halved at random.
    On the first half the attack, its tail (``in``: members on top, ``out``: non-members at the bottom) and its threshold are chosen;
    on the second TPR and FPR get one-sided Clopper-Pearson bounds, each at (1 - level) / 2, and
    epsilon ≥ log((TPR - delta) / FPR), in the other tail log((TNR - delta) / FNR). Scores must not have been learned from ``is_member``.

    The order of the rows does not matter. ObservationError for fewer than two rows a side, UsageError for the other parameters.
    """
    _require_budget(0.0, delta)
    if not 0.0 < level < 1.0:
        raise UsageError(f"level: expected a fraction in (0, 1), got {level!r}")
    names, table, members = _table(scores, is_member)
    first, second = _halves(table, members, rng)
    risk = (1.0 - level) / 2
    best = max(
        ((name, *_sharpest(first.of(column), delta, risk)) for column, name in enumerate(names)),
        key=lambda choice: choice[-1],
    )
    name, tail, threshold, _ = best
    sides = second.of(names.index(name))
    bound = _bounds(_counts(sides, tail, np.array([threshold])), delta, risk)[0]
    return EpsilonBound(float(bound), name, tail, level, sides.members.size, sides.non_members.size)


@dataclass(frozen=True, eq=False)
class _Sides:
    """One attack's scores on one half of the rows, ascending."""

    members: FloatArray
    non_members: FloatArray


@dataclass(frozen=True, eq=False)
class _Half:
    table: FloatArray
    is_member: _BoolArray

    def of(self, column: int) -> _Sides:
        scores = self.table[column]
        return _Sides(np.sort(scores[self.is_member]), np.sort(scores[~self.is_member]))


@dataclass(frozen=True, eq=False)
class _Successes:
    """How many rows a guess is right about (``right`` of ``of``), and how often it is made of the other side (``wrong`` of ``among``)."""

    right: _Counts
    of: int
    wrong: _Counts
    among: int


def _table(
    scores: Mapping[str, npt.ArrayLike], is_member: npt.ArrayLike
) -> tuple[tuple[str, ...], FloatArray, _BoolArray]:
    """Stack the attacks' scores (k, n) without the rows that any of them left out."""
    members = np.asarray(is_member)
    if members.dtype != np.bool_ or members.ndim != 1:
        raise UsageError(f"is_member: expected booleans of shape (n,), got {members.dtype} of shape {members.shape}")
    if not scores:
        raise UsageError("scores: expected at least one attack")
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    for name, column in columns.items():
        if column.shape != members.shape:
            raise UsageError(f"{name}: expected {members.size} scores, got shape {column.shape}")
    table = np.stack(list(columns.values()))
    known = ~np.isnan(table).any(axis=0)
    table, members = table[:, known], members[known]
    for side, rows in (("members", members.sum()), ("non-members", (~members).sum())):
        if rows < 2:
            raise ObservationError(f"a bound on epsilon needs two {side} or more that every attack scores, got {rows}")
    return tuple(scores), table, members


def _halves(table: FloatArray, members: _BoolArray, rng: np.random.Generator) -> tuple[_Half, _Half]:
    """Halve both sides at random; rows are put in the order of their scores first, so that their order in the file has no say."""
    order = np.lexsort((*table[::-1], members))
    table, members = table[:, order], members[order]
    first = np.zeros(members.size, dtype=np.bool_)
    for side in (members, ~members):
        rows = np.flatnonzero(side)
        first[rng.permutation(rows)[: rows.size // 2]] = True
    return _Half(table[:, first], members[first]), _Half(table[:, ~first], members[~first])


def _sharpest(sides: _Sides, delta: float, risk: float) -> tuple[str, float, float]:
    """Return the tail and threshold with the highest bound on these rows, and that bound."""
    thresholds = _candidates(np.unique(np.concatenate((sides.members, sides.non_members))))
    found = []
    for tail in ("in", "out"):
        bounds = _bounds(_counts(sides, tail, thresholds), delta, risk)
        at = int(np.argmax(bounds))
        found.append((tail, float(thresholds[at]), float(bounds[at])))
    return max(found, key=lambda choice: choice[-1])


def _candidates(ascending: FloatArray) -> FloatArray:
    """Thin distinct scores towards both ends, where the bounds are high, to a few hundred."""
    last = ascending.size - 1
    steps = np.unique(np.geomspace(1, last + 1, _CANDIDATES_PER_END).astype(np.intp)) - 1
    return ascending[np.unique(np.concatenate((steps, last - steps)))]


def _counts(sides: _Sides, tail: str, thresholds: FloatArray) -> _Successes:
    """Count guesses "member if score >= threshold" (``in``) or "non-member if score < threshold" (``out``)."""
    members = np.searchsorted(sides.members, thresholds, side="left").astype(np.int64)
    non_members = np.searchsorted(sides.non_members, thresholds, side="left").astype(np.int64)
    m, n = sides.members.size, sides.non_members.size
    return _Successes(m - members, m, n - non_members, n) if tail == "in" else _Successes(non_members, n, members, m)


def _bounds(counted: _Successes, delta: float, risk: float) -> FloatArray:
    right, wrong = counted.right, counted.wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(right == 0, 0.0, beta.ppf(risk, right, counted.of - right + 1))
        high = np.where(wrong == counted.among, 1.0, beta.ppf(1.0 - risk, wrong + 1, counted.among - wrong))
        return np.where(low > delta, np.maximum(0.0, np.log(np.maximum(low - delta, 0.0) / high)), 0.0)


def _require_budget(epsilon: float, delta: float) -> None:
    if not epsilon >= 0.0:
        raise UsageError(f"epsilon: expected a number of at least 0, got {epsilon!r}")
    if not 0.0 <= delta <= 1.0:
        raise UsageError(f"delta: expected a fraction in [0, 1], got {delta!r}")
