"""What the statistics give back: frozen, with units in the names; rates and AUCs are fractions in [0, 1], never percentages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

IntegerArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def percent(rate: float) -> str:
    """Return a rate as people read it, to four digits: 0.001 is ``0.1%``."""
    return f"{Decimal(f'{100 * rate:.4g}').normalize():f}%"


@dataclass(frozen=True)
class Interval:
    """A two-sided interval [``low``, ``high``] and a one-sided ``upper`` bound, all finite fractions in [0, 1].

    For an AUC ``upper`` has the interval's own level (95 %), for a TPR 97.5 %. ``degenerate`` is True where the scores leave no
    spread to measure (every score equal, a perfect separation, one row on a side); ``method`` then says what stands instead.
    """

    low: float
    high: float
    upper: float
    method: str
    degenerate: bool = False


@dataclass(frozen=True)
class TprAtFpr:
    """The largest TPR (``value``) that an attacker reaches at a false positive rate of at most ``fpr``.

    ``realised_fpr`` is the false positive rate at that very threshold. ``resolvable`` is False where ``fpr`` allows less than one
    false positive (``value`` is then the TPR without any). ``warned`` is True below ten allowed false positives, and where ties
    keep the asked rate out of reach. ``note`` says all this in words; it is empty when there is nothing to say.
    """

    fpr: float
    value: float
    realised_fpr: float
    resolvable: bool
    warned: bool
    note: str

    @property
    def name(self) -> str:
        """The figure's name with its unit: ``TPR at 0.1% FPR``."""
        return f"TPR at {percent(self.fpr)} FPR"


@dataclass(frozen=True)
class BootstrapIntervals:
    """Stratified bootstrap intervals of one attack: of its AUC, and of its TPR at each asked FPR (the mapping's key)."""

    auc: Interval
    tpr: Mapping[float, Interval]


@dataclass(frozen=True)
class BalancedAccuracy:
    """The best (TPR + TNR)/2 over all thresholds, beside what pure noise reaches on as many rows (``null_value``)."""

    value: float
    null_value: float


@dataclass(frozen=True, eq=False)
class RocPoints:
    """Every attainable point of a ROC curve as whole numbers of rows, from (0, 0) up to all rows.

    ``false_positives`` and ``true_positives`` are int64 arrays (k,), both ascending. Scores never stand here.
    """

    false_positives: IntegerArray
    true_positives: IntegerArray

    @property
    def fpr(self) -> FloatArray:
        """The false positive rates (k,), float64 fractions."""
        return self.false_positives.astype(np.float64) / float(self.false_positives[-1])

    @property
    def tpr(self) -> FloatArray:
        """The true positive rates (k,), float64 fractions."""
        return self.true_positives.astype(np.float64) / float(self.true_positives[-1])

    @property
    def auc(self) -> float:
        """The area under the points by the trapezoid rule: the attack AUC, to the bit."""
        widths = np.diff(self.false_positives)
        twice_heights = self.true_positives[1:] + self.true_positives[:-1]
        return int(np.dot(widths, twice_heights)) / (2 * int(self.false_positives[-1]) * int(self.true_positives[-1]))


@dataclass(frozen=True)
class RankTest:
    """A one-sided rank test: ``p_value`` for "the first sample does not score higher", ``auc`` and its ``interval``."""

    p_value: float
    auc: float
    interval: Interval


@dataclass(frozen=True)
class AttackSummary:
    """What one attack's scores say, from one sort: AUC with DeLong interval, TPR at each asked FPR with its upper bound, tie share."""

    auc: float
    interval: Interval
    tpr: Mapping[float, TprAtFpr]
    tpr_upper: Mapping[float, float]
    tie_share: float


@dataclass(frozen=True)
class EpsilonBound:
    """A lower bound on a model's ``epsilon`` (at least 0) with confidence ``level``.

    ``attack`` and ``tail`` are the ones it rests on (``in``: members on top, ``out``: non-members at the bottom); ``members`` and
    ``non_members`` are the rows it was counted on, a half of those tested.
    """

    epsilon: float
    attack: str
    tail: str
    level: float
    members: int
    non_members: int
