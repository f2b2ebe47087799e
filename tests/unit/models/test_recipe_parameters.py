"""A recipe's numbers can be read and changed, alike in this process and in one of the model's own."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import mlflow.sklearn
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.isolated import isolated
from mlflow_privacy_gate.models.recipe_parameters import changed, numeric_parameters
from mlflow_privacy_gate.models.sklearn_model import SklearnModel

RNG = np.random.default_rng(0)
FEATURES: pd.DataFrame = pd.DataFrame(RNG.normal(size=(120, 3)), columns=["a", "b", "c"])
LABELS = pd.Series(RNG.integers(0, 2, 120), name="label")
PIPELINE = make_pipeline(SimpleImputer(), LogisticRegression(C=5, max_iter=500)).fit(FEATURES, LABELS)
FOREST = RandomForestClassifier(5, random_state=0).fit(FEATURES, LABELS)


class Silent:
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        raise RuntimeError("not telling")


def test_numbers_and_nothing_else_are_read_by_the_name_of_their_part() -> None:
    found = SklearnModel(PIPELINE).parameters
    assert found["logisticregression__C"] == 5
    assert isinstance(found["logisticregression__C"], int)
    assert found["simpleimputer__fill_value"] is None
    assert "simpleimputer__missing_values" not in found  # NaN
    assert "simpleimputer__copy" not in found  # a truth value
    assert "logisticregression__solver" not in found
    assert isinstance(numeric_parameters(Ridge(alpha=np.float64(2.5)))["alpha"], float)


def test_a_model_that_cannot_be_trained_again_or_does_not_tell_has_none() -> None:
    frozen = CalibratedClassifierCV(FrozenEstimator(FOREST)).fit(FEATURES, LABELS)
    assert SklearnModel(frozen).parameters == {}
    assert numeric_parameters(Silent()) == {}


def test_a_change_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(ModelUnusable, match="cannot be changed"):
        changed(LogisticRegression(), {"depth": 3})
    with pytest.raises(ModelUnusable, match="cannot be changed"):
        SklearnModel(PIPELINE).refit(FEATURES, LABELS, train_rows=60, seed=0, changes={"depth": 3})


def probabilities(model: Any, changes: dict[str, float]) -> np.ndarray:
    said = model.refit(FEATURES, LABELS, train_rows=60, seed=0, changes=changes)
    assert said is not None
    return np.asarray(said.probabilities)


def test_a_changed_recipe_trains_another_model_and_leaves_the_logged_one_as_it_is() -> None:
    model = SklearnModel(PIPELINE)
    before = np.asarray(model.observe(FEATURES, LABELS).probabilities)
    strong = probabilities(model, {"logisticregression__C": 1e-4})
    assert strong.std(axis=0).max() < 0.01 * probabilities(model, {}).std(axis=0).max()
    assert PIPELINE[-1].C == 5
    np.testing.assert_array_equal(np.asarray(model.observe(FEATURES, LABELS).probabilities), before)


def test_a_regression_is_trained_again_too() -> None:
    model = SklearnModel(Ridge(alpha=1.0).fit(FEATURES, LABELS.astype(float)))
    said = model.refit(FEATURES, LABELS.astype(float), train_rows=60, seed=0, changes={"alpha": 1e9})
    assert said is not None
    assert said.residuals is not None
    assert said.residuals[:, 0] == pytest.approx(np.abs(LABELS[:60].mean() - LABELS), abs=1e-3)


def test_references_follow_a_change() -> None:
    model = SklearnModel(FOREST)
    plain, shallow = (
        model.references(FEATURES, LABELS, count=2, seed=0, changes=changes) for changes in ({}, {"max_depth": 1})
    )
    assert plain is not None
    assert shallow is not None
    assert np.abs(shallow.scores).mean() < np.abs(plain.scores).mean()


@pytest.mark.skipif(os.name != "posix", reason="child processes of this kind need POSIX")
def test_a_model_in_a_process_of_its_own_has_the_same_parameters_and_changes_alike(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.sklearn.save_model(PIPELINE, tmp_path / "model", serialization_format="cloudpickle")
    changes = {"logisticregression__C": 0.01}
    with isolated(tmp_path / "model", seconds=120, memory_gb=4) as model:
        assert model.parameters == SklearnModel(PIPELINE).parameters
        np.testing.assert_array_equal(probabilities(model, changes), probabilities(SklearnModel(PIPELINE), changes))
        anew = model.references(FEATURES, LABELS, count=2, seed=0, changes=changes)
    here = SklearnModel(PIPELINE).references(FEATURES, LABELS, count=2, seed=0, changes=changes)
    assert anew is not None
    assert here is not None
    np.testing.assert_array_equal(anew.scores, here.scores)
