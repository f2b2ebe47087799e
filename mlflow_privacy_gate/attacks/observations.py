"""What a model says about labelled rows: the only thing an attack sees of it.

=================  ================================  ==============================================
kind               a model that answers with         held here
=================  ================================  ==============================================
classification     probabilities, logits, margins    ``probabilities`` or ``logits``, ``true_column``
label_only         a label                           ``correct``
regression         one or more numbers               ``residuals``
density            a log-likelihood                  ``log_likelihood``, ``reference_log_likelihood``, ``reference_in_mask``
=================  ================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
from mlflow_privacy_gate.attacks.arrays import AnyFloat, as_floats, read_only, refuse_rows, row_blocks
from mlflow_privacy_gate.attacks.distributions import proper_logits, proper_probabilities
from mlflow_privacy_gate.attacks.labels import UNKNOWN, columns_of, label_values
from mlflow_privacy_gate.attacks.sums import log_sum_exp
from mlflow_privacy_gate.errors import ObservationError


@dataclass(frozen=True)
class Block:
    """A run of rows laid out class by class: ``probabilities`` and ``logits`` (C, m) float64, ``true_column`` (m,).

    ``logits`` is None where the model gave probabilities. The arrays are the reader's own.
    """

    rows: slice
    probabilities: FloatArray
    logits: FloatArray | None
    true_column: IntArray

    def of_true(self, per_class: FloatArray) -> FloatArray:
        """Return from (C, m) the entries of each row's own label, (m,)."""
        return per_class[self.true_column, np.arange(self.true_column.size)]

    def without_true(self, per_class: FloatArray, fill: float) -> FloatArray:
        """Return a copy of (C, m) in which the entries of each row's own label are ``fill``."""
        others = np.array(per_class)
        others[self.true_column, np.arange(self.true_column.size)] = fill
        return others


@dataclass(frozen=True, eq=False)
class Observations:
    """What the model says about n labelled rows; build it with one of the ``from_`` constructors.

    ``kind`` is ``classification``, ``label_only``, ``regression`` or ``density``. ``basis`` says what the model gave: ``probabilities``,
    ``logits``, ``decision margins``, ``predicted labels``, ``predictions`` or ``log-likelihood``. ``kept`` (rows given,) is False where
    the model does not know the row's label: such rows are left out of everything else here, which has n rows.
    """

    kind: str
    basis: str
    kept: BoolArray
    true_column: IntArray | None = None
    probabilities: AnyFloat | None = None
    logits: AnyFloat | None = None
    correct: BoolArray | None = None
    residuals: FloatArray | None = None
    output_scale: FloatArray | None = None
    log_likelihood: FloatArray | None = None
    reference_log_likelihood: FloatArray | None = None
    reference_in_mask: BoolArray | None = None

    @property
    def n(self) -> int:
        """Rows that are scored."""
        return int(np.count_nonzero(self.kept))

    @property
    def unknown_labels(self) -> int:
        """Rows left out because the model does not know their label."""
        return int(self.kept.size - np.count_nonzero(self.kept))

    @classmethod
    def from_probabilities(cls, probabilities: object, labels: object, classes: object) -> Observations:
        """Observe a classifier by its probabilities.

        ``probabilities``: (n, C), finite, in [0, 1], row sums within 1e-3 of 1; or (n,) or (n, 1), the probability of ``classes[1]``
        where there are exactly two classes. ``labels``: see :func:`.labels.columns_of`. ``classes``: (C,), in the order of the columns.
        ObservationError otherwise, naming rows and counts.
        """
        columns = columns_of(labels, classes)
        given = proper_probabilities(probabilities, columns.size, len(label_values(classes)))
        return _classification("probabilities", columns, probabilities=_known(given, columns, labels, classes))

    @classmethod
    def from_logits(cls, logits: object, labels: object, classes: object) -> Observations:
        """Observe a classifier by its logits or log-probabilities, which stay apart where probabilities saturate at 1.

        ``logits``: (n, C), any constant added per row is allowed, ``-inf`` means probability 0; or (n,) or (n, 1), the log-odds of
        ``classes[1]`` where there are exactly two classes. Errors as for :meth:`from_probabilities`.
        """
        return _by_logits(logits, labels, classes, "logits")

    @classmethod
    def from_decision_margins(cls, margins: object, labels: object, classes: object) -> Observations:
        """Observe a classifier that gives decision margins only (a linear SVC): read as logits, and named as margins.

        ``margins``: (n, C), one against the rest; or (n,), positive for ``classes[1]`` where there are exactly two classes.
        """
        return _by_logits(margins, labels, classes, "decision margins")

    @classmethod
    def from_predicted_labels(cls, predicted: object, labels: object, classes: object | None = None) -> Observations:
        """Observe a classifier by the labels it predicts, which is all that some models show.

        ``predicted`` and ``labels``: (n,) or (n, 1). With ``classes``, rows with a label that is none of them are left out.
        ObservationError where no label ever equals a predicted one: then the two are written in different words.
        """
        known = classes if classes is not None else label_values(predicted, what="predicted labels").unique()
        said = columns_of(predicted, known, what="predicted labels")
        refuse_rows(said == UNKNOWN, "predicted labels", "hold a label that is not among the classes")
        columns = columns_of(labels, known)
        if said.size != columns.size:
            raise ObservationError(f"predicted labels: got {said.size} for {columns.size} labels")
        _refuse_empty(said.size)
        _refuse_strangers(columns, labels, known)
        kept = columns != UNKNOWN if classes is not None else np.ones(columns.size, dtype=np.bool_)
        return cls("label_only", "predicted labels", read_only(kept), correct=read_only((said == columns)[kept]))

    @classmethod
    def from_predictions(
        cls, predictions: object, targets: object, *, output_scale: Sequence[float] | FloatArray | None = None
    ) -> Observations:
        """Observe a regressor by its predictions.

        ``predictions`` and ``targets``: (n,) or (n, outputs), finite. ``output_scale``: (outputs,), what an error of each output is
        divided by; the same for members and non-members (see :func:`.error.with_shared_scale`).
        """
        said, true = as_floats(predictions, "predictions"), as_floats(targets, "targets")
        said, true = (array[:, None] if array.ndim == 1 else array for array in (said, true))
        if said.shape != true.shape or said.ndim != 2:
            raise ObservationError(f"predictions: shape {said.shape} does not fit targets of shape {true.shape}")
        _refuse_empty(len(said))
        for array, what in ((said, "predictions"), (true, "targets")):
            refuse_rows(~np.isfinite(array).all(axis=1), what, "hold NaN or an infinite value")
        with np.errstate(over="ignore"):
            residuals = np.abs(np.subtract(said, true, dtype=np.float64, order="C"))
        refuse_rows(
            ~np.isfinite(residuals).all(axis=1), "predictions", "differ from their targets by more than a double holds"
        )
        scale = None if output_scale is None else read_only(np.asarray(output_scale, dtype=np.float64))
        kept = np.ones(len(said), dtype=np.bool_)
        return cls("regression", "predictions", read_only(kept), residuals=read_only(residuals), output_scale=scale)

    @classmethod
    def from_log_likelihood(
        cls, target: object, reference: object | None = None, *, in_mask: BoolArray | None = None
    ) -> Observations:
        """Observe a density or generative model by the log-likelihood of each row, in nats or any one unit.

        ``target``: (n,) under the model. ``reference``: (n,) or (K, n) under reference models. ``in_mask``: like ``reference``, bool,
        True where that model was trained on that row and so has no say of it; None: none was trained on any of these rows. Infinite
        values are allowed, NaN is an ObservationError.
        """
        said = as_floats(target, "log-likelihood").astype(np.float64)
        if said.ndim != 1:
            raise ObservationError(f"log-likelihood: expected shape (n,), got {said.shape}")
        _refuse_empty(said.size)
        refuse_rows(np.isnan(said), "log-likelihood", "hold NaN")
        kept = np.ones(said.size, dtype=np.bool_)
        observed = cls("density", "log-likelihood", read_only(kept), log_likelihood=read_only(said))
        if reference is None:
            return observed
        others = np.atleast_2d(as_floats(reference, "reference log-likelihood").astype(np.float64))
        if others.ndim != 2 or others.shape[1] != said.size:
            raise ObservationError(
                f"reference log-likelihood: expected shape ({said.size},) or (K, {said.size}), got {others.shape}"
            )
        refuse_rows(np.isnan(others).any(axis=0), "reference log-likelihood", "hold NaN")
        mask = np.zeros(others.shape, dtype=np.bool_) if in_mask is None else np.atleast_2d(np.array(in_mask))
        if mask.shape != others.shape or mask.dtype != np.bool_:
            raise ObservationError(
                f"reference log-likelihood: expected in_mask of shape {others.shape} and dtype bool, got {mask.shape} of {mask.dtype}"
            )
        return replace(observed, reference_log_likelihood=read_only(others), reference_in_mask=read_only(mask))

    @property
    def outputs(self) -> int:
        """Outputs of a regressor; 1 for every other kind."""
        return 1 if self.residuals is None else int(self.residuals.shape[1])

    def blocks(self) -> Iterator[Block]:
        """Give the rows of a classifier in small blocks, laid out class by class, probabilities from logits where there are any."""
        if self.true_column is None:
            raise ObservationError(f"expected observations of a classifier's probabilities, got {self.basis}")
        given = self.logits if self.logits is not None else self.probabilities
        assert given is not None
        for rows in row_blocks(given.shape):
            per_class = np.array(given[rows].T, dtype=np.float64, order="C")
            logits = per_class if self.logits is not None else None
            if logits is not None:
                with np.errstate(under="ignore"):
                    per_class = np.exp(logits - log_sum_exp(logits))
            yield Block(rows, per_class, logits, self.true_column[rows])


def joined(first: Observations, second: Observations) -> Observations:
    """Put two observations of one model one after the other, as the pool that reference models are drawn from."""
    if (first.kind, first.basis) != (second.kind, second.basis):
        raise ObservationError(f"cannot join {first.kind} by {first.basis} with {second.kind} by {second.basis}")
    if str(first.output_scale) != str(second.output_scale):
        raise ObservationError("cannot join observations whose errors are on different scales")
    merged: dict[str, Any] = {}
    for name, axis in _ROWS_OF.items():
        pair = getattr(first, name), getattr(second, name)
        if (pair[0] is None) != (pair[1] is None):
            raise ObservationError(f"cannot join observations of which one alone holds {name.replace('_', ' ')}")
        if pair[0] is not None:
            merged[name] = read_only(np.concatenate(pair, axis=axis))
    return replace(first, **merged)


# Which axis of each array runs over the rows.
_ROWS_OF = {
    "kept": 0,
    "true_column": 0,
    "probabilities": 0,
    "logits": 0,
    "correct": 0,
    "residuals": 0,
    "log_likelihood": 0,
    "reference_log_likelihood": 1,
    "reference_in_mask": 1,
}


def _by_logits(scores: object, labels: object, classes: object, basis: str) -> Observations:
    columns = columns_of(labels, classes)
    given = proper_logits(scores, columns.size, len(label_values(classes)), basis)
    return _classification(basis, columns, logits=_known(given, columns, labels, classes))


def _classification(
    basis: str, columns: IntArray, *, probabilities: AnyFloat | None = None, logits: AnyFloat | None = None
) -> Observations:
    kept = columns != UNKNOWN
    return Observations(
        "classification",
        basis,
        read_only(kept),
        true_column=read_only(columns[kept]),
        probabilities=probabilities,
        logits=logits,
    )


def _known(given: AnyFloat, columns: IntArray, labels: object, classes: object) -> AnyFloat:
    """Leave out rows whose label is unknown; no copy where there are none."""
    _refuse_strangers(columns, labels, classes)
    kept = columns != UNKNOWN
    return read_only(given if kept.all() else given[kept])


def _refuse_strangers(columns: IntArray, labels: object, classes: object) -> None:
    if columns.size and (columns == UNKNOWN).all():
        words, known = (list(label_values(values).unique()[:5]) for values in (labels, classes))
        raise ObservationError(
            f"labels: the model knows none of the {columns.size} labels (labels like {words}, classes {known}); "
            "give the labels in the model's own words"
        )


def _refuse_empty(rows: int) -> None:
    if rows == 0:
        raise ObservationError("observations: no rows; a split without rows cannot be judged")
