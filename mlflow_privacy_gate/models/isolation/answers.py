"""What a model says, on its way back: taken apart into arrays by its process, put together and checked anew by the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.attacks.arrays import read_only
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import Posteriors, References
from mlflow_privacy_gate.models.isolation.frames import NoFrame

Arrays = Mapping[str, npt.NDArray[Any]]

_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "classification": ("probabilities", "logits"),
    "label_only": ("correct",),
    "regression": ("residuals", "output_scale"),
    "density": ("log_likelihood",),
}
_BY_BASIS: Mapping[str, tuple[str, Callable[..., Observations]]] = {
    "probabilities": ("probabilities", Observations.from_probabilities),
    "logits": ("logits", Observations.from_logits),
    "decision margins": ("logits", Observations.from_decision_margins),
}


def arrays_of_observations(observations: Observations) -> dict[str, npt.NDArray[Any]]:
    """Take observations apart into their arrays."""
    names = ("kept", "true_column", *_OF_KIND[observations.kind])
    given = {name: getattr(observations, name) for name in names}
    if given["true_column"] is not None:
        given["true_column"] = given["true_column"].astype(np.int64)
    return {name: array for name, array in given.items() if array is not None}


def observations_of(kind: object, basis: object, arrays: Arrays, *, rows: int) -> Observations:
    """Build observations of ``rows`` rows by the constructors that check them.

    NoFrame where arrays are missing or do not fit each other; ObservationError, naming rows, where their values cannot be used.
    """
    kept = _taken(arrays, "kept", np.bool_, (rows,))
    n = int(np.count_nonzero(kept))
    if kind == "classification" and isinstance(basis, str) and basis in _BY_BASIS:
        return replace(_classification(basis, arrays, n), kept=read_only(kept))
    if kind == "label_only":
        correct = _taken(arrays, "correct", np.bool_, (n,))
        built = Observations.from_predicted_labels(correct, np.ones(n, dtype=np.bool_), [False, True])
        return replace(built, kept=read_only(kept))
    if n != rows:
        raise NoFrame("rows left out of an answer that has no labels")
    if kind == "regression":
        residuals = _taken(arrays, "residuals", np.float64, (rows, None))
        scale = arrays.get("output_scale")
        if scale is not None:
            scale = _taken(arrays, "output_scale", np.float64, (residuals.shape[1],))
        return Observations.from_predictions(residuals, np.zeros_like(residuals), output_scale=scale)
    if kind == "density":
        return Observations.from_log_likelihood(_taken(arrays, "log_likelihood", np.float64, (rows,)))
    raise NoFrame("observations of a kind that is not known here")


def arrays_of_references(references: References) -> dict[str, npt.NDArray[Any]]:
    """Take references apart into their arrays."""
    arrays: dict[str, npt.NDArray[Any]] = {"scores": references.scores, "in_mask": references.in_mask}
    if references.posteriors is not None:
        arrays |= {"top": references.posteriors.top, "correct": references.posteriors.correct}
    return arrays


def references_of(
    arrays: Arrays, *, count: int, rows: int, seed: int, origin: str, notes: tuple[str, ...], keep_posteriors: bool
) -> References:
    """Build the references that were asked for: ``count`` models, ``rows`` rows, all scores finite.

    NoFrame where the arrays are of another shape; ObservationError where a score is NaN or infinite.
    """
    scores = _taken(arrays, "scores", np.float64, (count, rows))
    in_mask = _taken(arrays, "in_mask", np.bool_, (count, rows))
    posteriors = None
    if keep_posteriors:
        top = _taken(arrays, "top", np.float32, (count, rows, None))
        if not ((top >= 0) & (top <= 1)).all():
            raise NoFrame("posteriors outside [0, 1]")
        posteriors = Posteriors(top, _taken(arrays, "correct", np.bool_, (count, rows)))
    return References(scores, in_mask, origin, seed, posteriors, notes)


def _classification(basis: str, arrays: Arrays, n: int) -> Observations:
    name, build = _BY_BASIS[basis]
    column = _taken(arrays, "true_column", np.int64, (n,)).astype(np.intp)
    given = _taken(arrays, name, None, (n, None))
    built = build(given, column, np.arange(given.shape[1]))
    if built.unknown_labels:
        raise NoFrame("labels that are not among the classes")
    if name == "probabilities" and not ((given >= 0) & (given <= 1)).all():
        raise NoFrame("probabilities outside [0, 1]")
    # The other side has divided rows by their sum where that was due; doing it twice would change bits.
    if name == "probabilities":
        return replace(built, probabilities=read_only(given))
    return replace(built, logits=read_only(given))


def _taken(arrays: Arrays, name: str, dtype: npt.DTypeLike | None, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """Return the array of that name; NoFrame unless it has the dtype (None: float64 or float32) and shape (None: any)."""
    array = arrays.get(name)
    if array is None:
        raise NoFrame(f"no array {name!r}")
    allowed = (np.float32, np.float64) if dtype is None else (dtype,)
    fits = len(array.shape) == len(shape) and all(e in (None, got) for e, got in zip(shape, array.shape, strict=True))
    if array.dtype not in allowed or not fits:
        raise NoFrame(f"array {name!r} of {array.dtype} {array.shape}; expected {shape}")
    return array
