"""Reference models: what models trained by the same recipe, with and without each row, say about the rows under test.

An attack that knows how hard a row is sees leaks that a raw score hides. References are kept as one (K, n) matrix of ``loss`` scores
and one of membership; a reference's probabilities are never kept whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from mlflow_privacy_gate.attacks import loss
from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.vocabulary import ReferenceOrigin

# A forest's loss scores are infinite for two rows in five, and inf - inf is no number: what is subtracted or averaged is clipped first.
PROBABILITY_FLOOR = 1e-6
LOSS_LIMIT = float(np.log1p(-PROBABILITY_FLOOR) - np.log(PROBABILITY_FLOOR))
CLIPPING_NOTE = f"probabilities clipped to [{PROBABILITY_FLOOR:g}, 1 - {PROBABILITY_FLOOR:g}]"
# One model that did not see a row gives no spread.
FEWEST_MODELS = 2
TOP_PROBABILITIES = 3


@dataclass(frozen=True)
class Posteriors:
    """What the shadow attack learns from: the ``top`` three probabilities, largest first, (…, n, 3) float32, and ``correct`` (…, n) bool.

    With two classes the third probability is 0.
    """

    top: npt.NDArray[np.float32]
    correct: BoolArray

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Posteriors:
        """Make room for the posteriors of ``shape`` models and rows."""
        return cls(np.zeros((*shape, TOP_PROBABILITIES), dtype=np.float32), np.zeros(shape, dtype=np.bool_))

    @classmethod
    def of(cls, observations: Observations) -> Posteriors:
        """Take from a classifier's observations what the shadow attack learns from."""
        found = cls.empty((observations.n,))
        for block in observations.blocks():
            ordered = np.sort(block.probabilities, axis=0)[::-1][:TOP_PROBABILITIES]
            found.top[block.rows, : len(ordered)] = ordered.T
            found.correct[block.rows] = block.probabilities.argmax(axis=0) == block.true_column
        return found


@dataclass(frozen=True)
class References:
    """K reference models' answers about the n rows under test.

    ``scores`` (K, n) float64: the ``loss`` score of each row, in [-13.8, 13.8] when it came from probabilities clipped to
    [1e-6, 1 - 1e-6]. ``in_mask`` (K, n) bool: True where that model was trained on the row. ``origin``: a word of
    :class:`.vocabulary.ReferenceOrigin`. ``seed``: None where the models were trained elsewhere. ``posteriors`` (K, n, …) are kept
    on request, for the shadow attack. ``notes``: sentences for the evidence. ObservationError where the matrices do not fit or hold
    NaN or infinity.
    """

    scores: FloatArray
    in_mask: BoolArray
    origin: str
    seed: int | None = None
    posteriors: Posteriors | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.origin not in tuple(ReferenceOrigin):
            known = ", ".join(ReferenceOrigin)
            raise ObservationError(f"references: origin: expected one of {known}, got {self.origin!r}")
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

    @classmethod
    def from_observations(
        cls,
        observations: Iterable[Observations],
        in_mask: BoolArray,
        *,
        origin: str = ReferenceOrigin.LOGGED_MODELS,
        seed: int | None = None,
        keep_posteriors: bool = True,
    ) -> References:
        """Build references from models that are there already: what each says of the same n rows, and which rows it was trained on.

        ``observations`` are taken one by one and none is kept whole. ``in_mask`` (K, n) bool. ``keep_posteriors``: for the shadow attack.
        Each model must know the label of every row; ObservationError where one does not.
        """
        scores, posteriors = [], []
        for index, one in enumerate(observations):
            if one.unknown_labels:
                raise ObservationError(
                    f"references: reference {index + 1} does not know the labels of {one.unknown_labels} of {one.kept.size} rows"
                )
            scores.append(clipped_loss(one))
            if keep_posteriors:
                posteriors.append(Posteriors.of(one))
        kept = None
        if posteriors:
            kept = Posteriors(np.stack([one.top for one in posteriors]), np.stack([one.correct for one in posteriors]))
        return cls(np.stack(scores), in_mask, origin, seed, kept, (CLIPPING_NOTE,))

    def take(self, rows: IntArray | BoolArray) -> References:
        """Give the references of some rows only, in the order asked for."""
        kept = self.posteriors and Posteriors(self.posteriors.top[:, rows], self.posteriors.correct[:, rows])
        return replace(self, scores=self.scores[:, rows], in_mask=self.in_mask[:, rows], posteriors=kept)


def clipped_loss(observations: Observations) -> FloatArray:
    """Score n rows by ``loss``, clipped to the scores of the probabilities 1e-6 and 1 - 1e-6, float64 (n,)."""
    return np.clip(loss.scores(observations), -LOSS_LIMIT, LOSS_LIMIT)


def target_loss(observations: Observations, references: References) -> FloatArray:
    """Score the target's n rows as the references' were scored; ObservationError where the references are of other rows."""
    if observations.n != references.n:
        raise ObservationError(
            f"references: they score {references.n} rows, the target {observations.n}; both must be of the same rows in one order"
        )
    return clipped_loss(observations)


def probability_of_label(scores: FloatArray) -> FloatArray:
    """Turn ``loss`` scores into probabilities of the row's own label, within [1e-6, 1 - 1e-6]."""
    return np.clip(np.asarray(expit(scores), dtype=np.float64), PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)


def _some(indices: npt.NDArray[np.intp]) -> str:
    shown = ", ".join(str(index) for index in indices[:5])
    return shown if indices.size <= 5 else f"{shown}, … ({indices.size} in all)"
