"""Asking the models: the audited one about every set of rows, and a calibration model about the rows it was and was not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlflow_privacy_gate.attacks import ema
from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks._interface import FloatArray
    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.removal.row_sets import AuditRows, RowSet

REFITTED = "refitted"


@dataclass(frozen=True)
class Asked:
    """What the audited model said of one set: ``features`` (n, d), ``labels`` (n,) and ``said`` hold the n rows whose label it knows."""

    rows: RowSet
    features: pd.DataFrame
    labels: pd.Series[Any]
    said: Observations


@dataclass(frozen=True)
class AskedSets:
    """What the audited model said of every set; ``held_out`` are the calibration test rows."""

    query: Asked
    calibration_train: Asked
    held_out: Asked
    control: Asked | None

    @property
    def every(self) -> tuple[Asked, ...]:
        """The sets that there are."""
        sets = (self.query, self.calibration_train, self.held_out)
        return sets if self.control is None else (*sets, self.control)


@dataclass(frozen=True)
class Calibration:
    """What a calibration model says: EMA's metrics of its own training rows and of its test rows, and the query's true-label probability.

    Each an array over the rows of that set whose label it knows. ``origin`` is ``refitted`` or a given model's URI, ``digest`` then
    of its bytes.
    """

    train: Mapping[str, FloatArray]
    test: Mapping[str, FloatArray]
    query_confidence: FloatArray
    origin: str = REFITTED
    digest: str | None = None


def ask_sets(model: LoadedModel, rows: AuditRows) -> AskedSets:
    """Ask the audited model about every row; ModelUnusable where it gives no class probabilities to go by."""
    control = None if rows.control is None else _ask(model, rows.control, rows.target)
    return AskedSets(
        _ask(model, rows.query, rows.target),
        _ask(model, rows.calibration_train, rows.target),
        _ask(model, rows.calibration_test, rows.target),
        control,
    )


def refitted_calibration(model: LoadedModel, asked: AskedSets, *, seed: int) -> Calibration:
    """Train the audited model's recipe on the calibration training rows; ModelUnusable where it cannot be trained again."""
    features, labels = _table(asked)
    said = model.refit(features, labels, train_rows=asked.calibration_train.said.n, seed=seed)
    if said is None:
        raise ModelUnusable(
            "the model cannot be trained again from its own parameters; name a calibration model (--calibration-model) that was trained "
            "by the same recipe on the calibration training rows"
        )
    return _calibration(said, asked)


def given_calibration(model: LoadedModel, asked: AskedSets, *, origin: str, digest: str) -> Calibration:
    """Ask a calibration model that was handed in; ModelUnusable where it gives no class probabilities."""
    said = _observed(model, *_table(asked), about=f"{origin}: the calibration model")
    _refuse_without_probabilities(said, "the calibration model")
    return _calibration(said, asked, origin=origin, digest=digest)


def _table(asked: AskedSets) -> tuple[pd.DataFrame, pd.Series[Any]]:
    import pandas as pd

    sets = (asked.calibration_train, asked.held_out, asked.query)
    return (
        pd.concat([one.features for one in sets], ignore_index=True),
        pd.concat([one.labels for one in sets], ignore_index=True),
    )


def _calibration(
    said: Observations, asked: AskedSets, *, origin: str = REFITTED, digest: str | None = None
) -> Calibration:
    sizes = [one.said.n for one in (asked.calibration_train, asked.held_out, asked.query)]
    of = np.repeat(np.arange(len(sizes)), sizes)[said.kept]
    found = ema.metrics(said)
    train, test = ({name: values[of == part] for name, values in found.items()} for part in (0, 1))
    return Calibration(train, test, found["confidence"][of == 2], origin, digest)


def _ask(model: LoadedModel, rows: RowSet, target: str) -> Asked:
    features, labels = rows.frame.drop(columns=target), rows.frame[target]
    said = _observed(model, features, labels, about=rows.role)
    _refuse_without_probabilities(said, "the model")
    if said.unknown_labels:
        features, labels = features[said.kept], labels[said.kept]
    return Asked(rows, features, labels, said)


def _observed(model: LoadedModel, features: pd.DataFrame, labels: pd.Series[Any], *, about: str) -> Observations:
    """Ask, and let a refusal name the set of rows or the model that it is about: there are several of each."""
    try:
        return model.observe(features, labels)
    except CouldNotJudge as exc:
        raise type(exc)(f"{about}: {exc.message}", code=exc.code) from exc


def _refuse_without_probabilities(said: Observations, who: str) -> None:
    if said.kind != "classification":
        raise ModelUnusable(f"a removal audit needs class probabilities; {who} gives {said.basis}")
