"""A classifier's answers as (rows, classes): their shape, finiteness and sums checked before anything is scored."""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray
from mlflow_privacy_gate.attacks.arrays import AnyFloat, as_floats, refuse_rows, row_blocks
from mlflow_privacy_gate.attacks.sums import sum_over_classes
from mlflow_privacy_gate.errors import ObservationError

SUM_TOLERANCE = 1e-3  # rows of probabilities whose sum is further from 1 are refused
ROUNDING = (
    1e-6  # rows nearer to 1 are left as they are (dividing would break ties); values this far out of [0, 1] are clipped
)


def proper_probabilities(values: object, rows: int, classes: int) -> AnyFloat:
    """Return probabilities (rows, classes), each in [0, 1] and each row summing to 1; no copy where they already do.

    ``values``: (rows, classes), or (rows,) or (rows, 1) of the second of two classes. ObservationError otherwise, naming rows.
    """
    given = as_floats(values, "probabilities")
    if _one_column(given, classes, "probabilities"):
        second = given.reshape(len(given))
        if np.isin(second, (0.0, 1.0)).all():
            raise ObservationError(
                "probabilities: one column that holds nothing but 0 and 1 reads like labels; "
                "give (n, 2) probabilities, or the labels to `from_predicted_labels`"
            )
        given = np.stack((1 - second, second), axis=1)
    _refuse_shape(given, rows, classes, "probabilities")
    clip, divide = _faults_of(given)
    if clip:
        given = np.clip(given, 0, 1)
    if divide.any():
        given = given.copy()
        given[divide] /= _sums(given[divide])[:, None]
    return given


def proper_logits(values: object, rows: int, classes: int, what: str) -> AnyFloat:
    """Return logits (rows, classes) without NaN or inf; ``-inf`` is allowed as long as a row holds one finite value.

    ``values``: (rows, classes), or (rows,) or (rows, 1) log-odds of the second of two classes. ObservationError otherwise.
    """
    given = as_floats(values, what)
    if _one_column(given, classes, what):
        odds = given.reshape(len(given))
        given = np.stack((np.zeros_like(odds), odds), axis=1)
    _refuse_shape(given, rows, classes, what)
    bad = np.empty(len(given), dtype=np.bool_)
    for block in row_blocks(given.shape):
        bad[block] = ~np.isfinite(given[block].max(axis=1))  # the maximum is NaN where any entry is
    refuse_rows(bad, what, "hold NaN or inf, or nothing but -inf")
    return given


def _one_column(given: AnyFloat, classes: int, what: str) -> bool:
    if classes < 2 or (given.ndim != 1 and given.shape[1:] != (1,)):
        return False
    if classes != 2:
        raise ObservationError(f"{what}: one column of {classes} classes; expected one column per class")
    return True


def _refuse_shape(given: AnyFloat, rows: int, classes: int, what: str) -> None:
    if rows == 0:
        raise ObservationError(f"{what}: no rows; a split without rows cannot be judged")
    if classes < 2:
        raise ObservationError(f"{what}: the model knows {classes} class; an attack needs two classes or more")
    if given.shape != (rows, classes):
        raise ObservationError(f"{what}: expected shape ({rows}, {classes}) (labels, classes), got {given.shape}")


def _sums(rows: AnyFloat) -> FloatArray:
    return sum_over_classes(np.array(rows.T, dtype=np.float64, order="C"))


def _faults_of(given: AnyFloat) -> tuple[bool, BoolArray]:
    """Refuse what is no distribution; say whether any value must be clipped, and which rows divided by their sum."""
    rows = len(given)
    missing, outside, off, divide = (np.zeros(rows, dtype=np.bool_) for _ in range(4))
    clip = False
    for block in row_blocks(given.shape):
        part = given[block]
        low, high = part.min(axis=1), part.max(axis=1)
        missing[block] = np.isnan(low)
        outside[block] = (low < -ROUNDING) | (high > 1 + ROUNDING)
        clip = clip or bool((low < 0).any() or (high > 1).any())
        distance = np.abs(_sums(part) - 1)
        off[block], divide[block] = ~(distance <= SUM_TOLERANCE), distance > ROUNDING
    refuse_rows(missing, "probabilities", "hold NaN")
    refuse_rows(outside, "probabilities", "hold a value outside [0, 1]")
    refuse_rows(off, "probabilities", f"sum to something further than {SUM_TOLERANCE} from 1")
    return clip, divide
