"""Reference models: what models trained by the same recipe, with and without each row, say about the rows under test.

An attack that knows how hard a row is sees leaks that a raw score hides. References are kept as one (K, n) matrix of ``loss`` scores
and one of membership; a reference's probabilities are never kept whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.errors import ObservationError

if TYPE_CHECKING:
    from mlflow_privacy_gate.attacks.observations import Observations

# 40 % of a forest's loss scores are infinite, and inf - inf is no number: whatever is subtracted or averaged is clipped first.
PROBABILITY_FLOOR = 1e-6
LOSS_LIMIT = float(np.log1p(-PROBABILITY_FLOOR) - np.log(PROBABILITY_FLOOR))
# One model that did not see a row gives no spread.
FEWEST_MODELS = 2
SHADOW_PROBABILITIES = 3

ORIGINS = ("clone", "function", "models")


@dataclass(frozen=True)
class ShadowFeatures:
    """What the shadow attack learns from: the ``top`` three probabilities, sorted, (K, n, 3) float32, and ``correct`` (K, n) bool.

    With two classes the third probability is 0.
    """

    top: npt.NDArray[np.float32]
    correct: BoolArray


@dataclass(frozen=True)
class References:
    """K reference models' answers about the n rows under test.

    ``scores`` (K, n) float64: the ``loss`` score of each row, in [-13.8, 13.8] when it came from probabilities clipped to
    [1e-6, 1 - 1e-6]. ``in_mask`` (K, n) bool: True where that model was trained on the row. ``origin``: ``clone`` of the logged
    estimator, training ``function``, or foreign ``models``. ``seed``: None where the models were trained elsewhere. ``shadow`` is kept
    on request. ``notes``: sentences for the evidence. ObservationError where the matrices do not fit or hold NaN or infinity.
    """

    scores: FloatArray
    in_mask: BoolArray
    origin: str
    seed: int | None = None
    shadow: ShadowFeatures | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise ObservationError(f"references: origin: expected one of {', '.join(ORIGINS)}, got {self.origin!r}")
        if self.scores.ndim != 2 or self.scores.shape != self.in_mask.shape:
            raise ObservationError(
                f"references: expected scores and in_mask of one shape (K, n), got {self.scores.shape} and {self.in_mask.shape}"
            )
        if self.in_mask.dtype != np.bool_:
            raise ObservationError(f"references: expected in_mask of dtype bool, got {self.in_mask.dtype}")
        bad = ~np.isfinite(self.scores)
        if bad.any():
            models, rows = np.flatnonzero(bad.any(axis=1)), np.flatnonzero(bad.any(axis=0))
            raise ObservationError(
                f"references: {int(bad.sum())} scores are NaN or infinite, in references {_some(models)} and rows {_some(rows)}; "
                f"clip probabilities to [{PROBABILITY_FLOOR:g}, 1 - {PROBABILITY_FLOOR:g}] first"
            )

    @property
    def count(self) -> int:
        """K, the number of reference models."""
        return int(self.scores.shape[0])

    @property
    def n(self) -> int:
        """The number of rows under test."""
        return int(self.scores.shape[1])

    @property
    def probability_of_label(self) -> FloatArray:
        """The probability each reference gave to each row's own label, (K, n), clipped as the scores are."""
        return probability_of_label(self.scores)

    @property
    def enough_out(self) -> BoolArray:
        """Which rows (n,) at least two models were trained without; the others are left out of every attack here."""
        return np.asarray((~self.in_mask).sum(axis=0) >= FEWEST_MODELS)

    @property
    def enough_in(self) -> BoolArray:
        """Which rows (n,) at least two models were trained with; the others are left out of the online attacks."""
        return np.asarray(self.in_mask.sum(axis=0) >= FEWEST_MODELS)

    def take(self, rows: npt.NDArray[np.intp] | BoolArray) -> References:
        """Give the references of some rows only, in the order asked for."""
        shadow = self.shadow and ShadowFeatures(self.shadow.top[:, rows], self.shadow.correct[:, rows])
        return References(self.scores[:, rows], self.in_mask[:, rows], self.origin, self.seed, shadow, self.notes)


def clipped(loss: npt.ArrayLike) -> FloatArray:
    """Clip ``loss`` scores to those of the probabilities 1e-6 and 1 - 1e-6, float64; NaN stays NaN."""
    return np.clip(np.asarray(loss, dtype=np.float64), -LOSS_LIMIT, LOSS_LIMIT)


def probability_of_label(loss: npt.ArrayLike) -> FloatArray:
    """Turn ``loss`` scores into the clipped probability of the true label, float64."""
    return np.clip(expit(np.asarray(loss, dtype=np.float64)), PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)


def _some(indices: npt.NDArray[np.intp]) -> str:
    shown = ", ".join(str(index) for index in indices[:5])
    return shown if indices.size <= 5 else f"{shown}, … ({indices.size} in all)"
