"""Promises on boosted trees of other libraries, through their scikit-learn API; skipped, aloud, where a library is not installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.catalogue import load_model
from mlflow_privacy_gate.models.sklearn_model import SklearnModel

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
]

ROWS = 300
RNG = np.random.default_rng(0)
FEATURES: pd.DataFrame = pd.DataFrame(RNG.normal(size=(ROWS, 4)), columns=list("abcd"))
LABELS: pd.Series[Any] = pd.Series(RNG.integers(0, 3, ROWS), name="label")
RARE: pd.Series[Any] = LABELS.where(np.arange(ROWS) != 7, 3).where(np.arange(ROWS) != 0, 0)

CLASSIFIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "xgboost": ("XGBClassifier", {"n_estimators": 8, "max_depth": 6, "subsample": 0.8, "n_jobs": 2}),
    "lightgbm": ("LGBMClassifier", {"n_estimators": 8, "min_child_samples": 3, "verbose": -1, "n_jobs": 2}),
    "catboost": (
        "CatBoostClassifier",
        {"iterations": 8, "verbose": False, "allow_writing_files": False, "thread_count": 2},
    ),
}
library = pytest.mark.parametrize("library", CLASSIFIERS)


def classifier(library: str) -> Any:
    name, parameters = CLASSIFIERS[library]
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    return getattr(module, name)(**parameters)


@library
def test_references_are_trained_from_the_logged_model_with_seeds_of_their_own(library: str) -> None:
    model = SklearnModel(classifier(library).fit(FEATURES, LABELS))
    found, again, other = (model.references(FEATURES, LABELS, count=3, seed=seed) for seed in (7, 7, 8))
    assert found is not None
    assert again is not None
    assert other is not None
    assert found.scores.tobytes() == again.scores.tobytes()
    assert found.scores.tobytes() != other.scores.tobytes()
    gap = found.scores[found.in_mask].mean() - found.scores[~found.in_mask].mean()
    assert gap > 0.1, "each knows the half that it was trained on"


@library
def test_a_pipeline_with_a_boosted_last_step_is_trained_anew(library: str) -> None:
    model = SklearnModel(
        make_pipeline(StandardScaler().set_output(transform="pandas"), classifier(library)).fit(FEATURES, LABELS)
    )
    found = model.references(FEATURES, LABELS, count=2, seed=7)
    assert found is not None
    assert np.isfinite(found.scores).all()


@library
def test_a_class_that_a_half_lacks_has_probability_zero_there_with_the_floor(library: str) -> None:
    model = SklearnModel(classifier(library).fit(FEATURES, RARE))
    found = model.references(FEATURES, RARE, count=6, seed=1)
    assert found is not None
    lacking = ~found.in_mask[:, 7]
    assert 0 < lacking.sum() < 6
    assert (found.scores[lacking, 7] < -13).all()
    assert np.isfinite(found.scores).all()


@library
def test_labels_that_do_not_begin_at_zero_are_told_apart_in_the_half_that_lacks_one(library: str) -> None:
    """A half that lacks the first of three classes must not shift the columns of the others."""
    labels = LABELS.where(LABELS != 0, 1).where(np.arange(ROWS) != 7, 0)
    model = SklearnModel(classifier(library).fit(FEATURES, labels))
    found = model.references(FEATURES, labels, count=6, seed=1)
    assert found is not None
    lacking = ~found.in_mask[:, 7]
    for reference in np.flatnonzero(lacking):
        assert found.scores[reference][found.in_mask[reference]].mean() > 0


@library
def test_membership_is_reproduced_by_a_refit(library: str) -> None:
    members = slice(0, 200)
    estimator = classifier(library)
    seed = {"catboost": "random_seed"}.get(library, "random_state")
    model = SklearnModel(estimator.set_params(**{seed: 3}).fit(FEATURES[members], LABELS[members]))
    assert model.reproduced(FEATURES, LABELS, train_rows=200)
    assert not model.reproduced(FEATURES, LABELS, train_rows=199)


@pytest.mark.parametrize("flavour", ["xgboost", "lightgbm"])
def test_a_model_logged_in_its_own_flavour_answers_as_it_did(flavour: str, tmp_path: Path) -> None:
    estimator = classifier(flavour).fit(FEATURES, LABELS)
    importlib.import_module(f"mlflow.{flavour}").save_model(estimator, str(tmp_path / "model"))
    model = load_model(tmp_path / "model")
    assert model.notes.flavour == flavour
    assert flavour in (model.notes.library_versions or {})
    assert model.input_columns == tuple("abcd")
    answers = model.observe(FEATURES, LABELS).probabilities
    np.testing.assert_array_equal(answers, estimator.predict_proba(FEATURES))


def test_xgboosts_own_flavour_keeps_no_parameters_so_nothing_is_trained_from_it(tmp_path: Path) -> None:
    estimator = classifier("xgboost").fit(FEATURES, LABELS)
    importlib.import_module("mlflow.xgboost").save_model(estimator, str(tmp_path / "model"))
    model = load_model(tmp_path / "model")
    assert model.references(FEATURES, LABELS, count=2, seed=0) is None
    assert not model.reproduced(FEATURES, LABELS, train_rows=200)
    assert "keeps no training parameters" in " ".join(model.notes.warnings)


def test_lightgbms_own_flavour_keeps_the_parameters(tmp_path: Path) -> None:
    estimator = classifier("lightgbm").fit(FEATURES, LABELS)
    importlib.import_module("mlflow.lightgbm").save_model(estimator, str(tmp_path / "model"))
    found = load_model(tmp_path / "model").references(FEATURES, LABELS, count=2, seed=0)
    expected = SklearnModel(estimator).references(FEATURES, LABELS, count=2, seed=0)
    assert found is not None
    assert expected is not None
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("flavour", ["xgboost", "lightgbm"])
def test_a_bare_booster_is_refused_in_words(flavour: str, tmp_path: Path) -> None:
    estimator = classifier(flavour).fit(FEATURES, LABELS)
    booster = estimator.get_booster() if flavour == "xgboost" else estimator.booster_
    importlib.import_module(f"mlflow.{flavour}").save_model(booster, str(tmp_path / "model"))
    with pytest.raises(ModelUnusable, match=r"bare .* booster"):
        load_model(tmp_path / "model")
