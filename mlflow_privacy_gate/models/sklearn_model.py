"""The scikit-learn flavour, opened natively, so that probabilities are to be had where pyfunc gives labels only."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import sklearn
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.recipe_changes import NO_CHANGES, Changes, Parameter
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.attacks.refitting import fit_references, refit, reproduce
from mlflow_privacy_gate.errors import ModelUnusable, PrivacyGateError
from mlflow_privacy_gate.models._interface import ModelNotes
from mlflow_privacy_gate.models.answers import Answer, final_step, strongest_answer
from mlflow_privacy_gate.models.columns import ColumnLayout
from mlflow_privacy_gate.models.estimator_parts import learned_parameters, parts, training_rows_kept
from mlflow_privacy_gate.models.mlmodel import InputColumn, read_mlmodel
from mlflow_privacy_gate.models.recipe_parameters import changed, numeric_parameters
from mlflow_privacy_gate.models.row_chunks import in_chunks
from mlflow_privacy_gate.models.versions import compared, python_here

FLAVOUR = "sklearn"


class SklearnLoader:
    """Opens model folders of MLflow's ``sklearn`` flavour."""

    flavour = FLAVOUR

    def load(self, folder: Path) -> SklearnModel:
        """Open the model in ``folder``, which runs its author's code; ModelUnusable with the way out where that fails."""
        mlmodel = read_mlmodel(folder)
        estimator, said = opened("mlflow.sklearn", folder)
        recorded = mlmodel.flavours.get(FLAVOUR, {}).get("sklearn_version")
        versions, drift = compared(
            {"scikit-learn": recorded, "python": mlmodel.python_version},
            {"scikit-learn": sklearn.__version__, "python": python_here()},
        )
        return SklearnModel(estimator, mlmodel.inputs, library_versions=versions, warnings=(*drift, *said))


class SklearnModel:
    """A fitted estimator or pipeline that can be asked about rows; ``notes`` grows by what is met while it is asked."""

    def __init__(
        self,
        estimator: object,
        signature: tuple[InputColumn, ...] | None = None,
        *,
        flavour: str = FLAVOUR,
        keeps_parameters: bool = True,
        library_versions: dict[str, str] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._estimator: Any = estimator
        self._signature = signature
        self._keeps_parameters = keeps_parameters
        self._layout = ColumnLayout.of(estimator, signature)
        self._answer, said = strongest_answer(estimator)
        self.notes = ModelNotes(
            flavour=flavour,
            holds_training_rows=training_rows_kept(estimator),
            library_versions=library_versions,
            warnings=(*warnings, *said),
            parameters=learned_parameters(estimator),
        )

    @property
    def input_columns(self) -> tuple[str, ...] | None:
        """The columns that the model takes, in order, or None where only their number is known."""
        return self._layout.names

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The numeric parameters of the recipe as ``step__parameter``, None included; empty where it cannot be trained again."""
        recipe = self.recipe()
        return {} if recipe is None else numeric_parameters(recipe)

    def observe(self, features: pd.DataFrame, labels: pd.Series) -> Observations:
        """Ask the model about n labelled rows; ``features`` (n, d), of which it sees its own columns only, ``labels`` (n,).

        ModelUnusable where a column is missing or the model fails; ObservationError, naming rows, where its answers cannot be used.
        """
        if self._answer is Answer.LOG_LIKELIHOOD and labels.name in (self._layout.names or ()):
            features = features.assign(
                **{str(labels.name): labels}
            )  # a density has no label: this is one of its columns
        rows, said = self._layout.arrange(features)
        self.notes = replace(self.notes, warnings=tuple(dict.fromkeys((*self.notes.warnings, *said))))
        answers = self._asked(rows)
        if self._answer is Answer.PROBABILITIES:
            return Observations.from_probabilities(answers, labels, self._estimator.classes_)
        if self._answer is Answer.MARGINS:
            return Observations.from_decision_margins(answers, labels, self._estimator.classes_)
        if self._answer is Answer.LABELS:
            return Observations.from_predicted_labels(answers, labels, getattr(self._estimator, "classes_", None))
        if self._answer is Answer.PREDICTIONS:
            return Observations.from_predictions(answers, labels)
        return Observations.from_log_likelihood(answers)

    def recipe(self, changes: Changes = NO_CHANGES) -> object | None:
        """Give an unfitted estimator with the model's own parameters but for ``changes``, or None where a refit would keep what it knows.

        ModelUnusable where a change names no parameter of it.
        """
        if not self._keeps_parameters:
            return None
        if any(type(part).__name__ == "FrozenEstimator" or _prefit(part) for part in parts(self._estimator)):
            return None
        try:
            unfitted = clone(self._estimator)
        except (TypeError, RuntimeError, AttributeError):  # parameters that its constructor does not take as they are
            return None
        asked_for: object = changed(unfitted, changes)
        return asked_for

    def references(
        self,
        features: pd.DataFrame,
        labels: pd.Series,
        *,
        count: int,
        seed: int,
        keep_posteriors: bool = False,
        changes: Changes = NO_CHANGES,
        progress: Callable[[int, int], None] | None = None,
    ) -> References | None:
        """Train ``count`` models by this model's own recipe, each on a random half of the n rows; None when it cannot be trained again."""
        recipe = self.recipe(changes)
        if recipe is None or self._answer not in (Answer.PROBABILITIES, Answer.MARGINS):
            return None
        rows, _ = self._layout.arrange(features)
        return fit_references(
            recipe,
            rows,
            labels,
            self._estimator.classes_,
            count=count,
            seed=seed,
            keep_posteriors=keep_posteriors,
            progress=progress,
        )

    def refit(
        self, features: pd.DataFrame, labels: pd.Series, *, train_rows: int, seed: int, changes: Changes = NO_CHANGES
    ) -> Observations | None:
        """Train the recipe anew on the first ``train_rows`` rows and ask that model about all n; None when it cannot be trained again."""
        recipe = self.recipe(changes)
        if recipe is None:
            return None
        rows, _ = self._layout.arrange(features.iloc[:train_rows])
        classes = getattr(self._estimator, "classes_", None)
        anew = refit(recipe, rows, labels.iloc[:train_rows], classes, seed=seed)
        return SklearnModel(anew, self._signature).observe(features, labels)

    def reproduced(self, features: pd.DataFrame, labels: pd.Series, *, train_rows: int) -> bool:
        """Whether training again on the first ``train_rows`` rows, with the logged seeds, gives this model's own probabilities of all n."""
        recipe = self.recipe()
        if recipe is None or self._answer is not Answer.PROBABILITIES:
            return False
        rows, _ = self._layout.arrange(features)
        members, _ = self._layout.arrange(features.iloc[:train_rows])
        logged, classes = self._asked(rows), self._estimator.classes_
        return reproduce(recipe, members, labels.iloc[:train_rows], rows, logged, classes).reproduced

    def _asked(self, rows: Any) -> Any:
        method = getattr(self._estimator, self._answer.method)
        try:
            return in_chunks(method, rows)
        except PrivacyGateError:
            raise
        except Exception as exc:
            name = type(final_step(self._estimator)).__name__
            raise ModelUnusable(
                f"{name}.{self._answer.method} failed on {len(rows)} rows: {type(exc).__name__}: {exc}"
            ) from exc


def _prefit(part: object) -> bool:
    return getattr(part, "cv", None) == "prefit"


def opened(loader: str, folder: Path) -> tuple[object, tuple[str, ...]]:
    """Load the estimator by MLflow's module for its flavour, with what scikit-learn said of its versions."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator = importlib.import_module(loader).load_model(str(folder))
        except Exception as exc:
            raise ModelUnusable(f"the model cannot be opened: {_why(exc)}") from exc
    said = {str(one.message) for one in caught if issubclass(one.category, InconsistentVersionWarning)}
    return estimator, tuple(sorted(said))


def _why(exc: Exception) -> str:
    """Say why loading failed and what to do, in the words of whoever refused."""
    from mlflow import environment_variables

    allowing = getattr(environment_variables, "MLFLOW_ALLOW_PICKLE_DESERIALIZATION", None)  # not in the oldest MLflow
    if allowing is not None and not allowing.get():
        return (
            f"{exc} (MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false stands in this environment and is respected: check the model where "
            "that is allowed, such as a separate machine without credentials)"
        )
    if type(exc).__name__ == "UntrustedTypesFoundException":
        return (
            f"{exc} Two ways out, for whoever logs the model: name the types it may hold, "
            '`mlflow.sklearn.log_model(…, skops_trusted_types=[…])`, or log it with `serialization_format="cloudpickle"`'
        )
    if isinstance(exc, ModuleNotFoundError):
        return f"it needs the module {exc.name!r}, which is not installed here; install what the model's requirements.txt names"
    return f"{type(exc).__name__}: {exc}"
