"""A refit trains the model's own recipe on other rows, repeats itself to the bit, and answers alike in a process of its own."""

from __future__ import annotations

import warnings
from pathlib import Path

import mlflow.sklearn
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.isolated import isolated
from mlflow_privacy_gate.models.sklearn_model import SklearnModel

RNG = np.random.default_rng(0)
FEATURES = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["a", "b", "c"])
LABELS = pd.Series(np.repeat(["no", "yes", "maybe"], 30), name="label")
FOREST = RandomForestClassifier(8, random_state=0).fit(FEATURES, LABELS)


def shuffled() -> tuple[pd.DataFrame, pd.Series]:
    order = np.random.default_rng(1).permutation(90)
    return FEATURES.iloc[order], LABELS.iloc[order]


def test_a_refit_knows_the_rows_it_was_trained_on_and_not_the_logged_ones() -> None:
    features, labels = shuffled()
    said = SklearnModel(FOREST).refit(features, labels, train_rows=45, seed=0)
    assert said is not None
    assert said.true_column is not None
    own = np.asarray(said.probabilities)[np.arange(90), said.true_column]
    assert own[:45].mean() > 0.6
    assert own[45:].mean() < 0.5


def test_a_refit_repeats_itself_and_leaves_the_global_random_state_alone() -> None:
    features, labels = shuffled()
    before = str(np.random.get_state())  # noqa: NPY002
    first, again, other = (SklearnModel(FOREST).refit(features, labels, train_rows=45, seed=seed) for seed in (3, 3, 4))
    assert first is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(np.asarray(first.probabilities), np.asarray(again.probabilities))
    assert not np.array_equal(np.asarray(first.probabilities), np.asarray(other.probabilities))
    assert str(np.random.get_state()) == before  # noqa: NPY002


def test_a_label_that_the_refit_never_met_is_left_out_and_counted() -> None:
    said = SklearnModel(FOREST).refit(FEATURES, LABELS, train_rows=60, seed=0)
    assert said is not None
    assert (said.n, said.unknown_labels) == (60, 30)


def test_what_would_not_start_from_nothing_is_not_refitted() -> None:
    frozen = CalibratedClassifierCV(FrozenEstimator(FOREST)).fit(FEATURES, LABELS)
    assert SklearnModel(frozen).refit(FEATURES, LABELS, train_rows=90, seed=0) is None


def test_a_refit_that_fails_says_on_how_many_rows() -> None:
    model = SklearnModel(LogisticRegression().fit(FEATURES, LABELS))
    with pytest.raises(ModelUnusable, match="the refit on 30 rows"):
        model.refit(FEATURES, LABELS, train_rows=30, seed=0)


def test_a_refit_in_a_child_process_gives_the_same_bits(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # MLflow's own, on type hints of its modules
        mlflow.sklearn.save_model(
            FOREST, str(folder), serialization_format="cloudpickle", pip_requirements=["scikit-learn"]
        )
    features, labels = shuffled()
    here = SklearnModel(FOREST).refit(features, labels, train_rows=45, seed=0)
    with isolated(folder, seconds=120, memory_gb=4) as child:
        there = child.refit(features, labels, train_rows=45, seed=0)
    assert here is not None
    assert there is not None
    np.testing.assert_array_equal(np.asarray(there.probabilities), np.asarray(here.probabilities))
