"""Promises of the scikit-learn flavour, kept on real MLflow model folders."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.models import infer_signature
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KernelDensity, NearestCentroid, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, ObservationError
from mlflow_privacy_gate.models.catalogue import load_model
from mlflow_privacy_gate.models.sklearn_model import SklearnModel

CANCER = load_breast_cancer(as_frame=True)
X: pd.DataFrame = CANCER.data.iloc[:200, :6]
Y: pd.Series = CANCER.target.iloc[:200]
FOREST = RandomForestClassifier(n_estimators=5, random_state=0)


def saved(folder: Path, estimator: Any, **options: Any) -> Path:
    options.setdefault("serialization_format", "cloudpickle")
    options.setdefault("pip_requirements", ["scikit-learn"])  # inferring them starts a process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # MLflow's advice on integer columns
        mlflow.sklearn.save_model(estimator, str(folder / "model"), **options)
    return folder / "model"


@pytest.mark.parametrize("labels", [Y, Y * 2 - 1, Y.map({0: "no", 1: "yes"}), Y == 1, Y.astype("float64")])
def test_probabilities_are_those_of_the_native_model_whatever_the_labels_are_called(
    tmp_path: Path, labels: pd.Series
) -> None:
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, labels)
    model = load_model(saved(tmp_path, forest))
    seen = model.observe(X, labels)
    expected = forest.predict_proba(X)
    assert seen.kind == "classification"
    assert seen.probabilities is not None
    np.testing.assert_array_equal(seen.probabilities, expected)
    assert seen.true_column is not None
    np.testing.assert_array_equal(seen.true_column, Y)


@pytest.mark.parametrize(
    "shape",
    [
        lambda y: y.to_frame(),
        lambda y: y.to_numpy().reshape(-1, 1),
        lambda y: y.astype("category"),
        lambda y: y.astype("Int64"),
        lambda y: y.astype("float64"),
    ],
)
def test_labels_of_any_shape_give_the_same_observations(shape: Any) -> None:
    model = SklearnModel(FOREST.fit(X, Y))
    np.testing.assert_array_equal(
        np.asarray(model.observe(X, shape(Y)).true_column), np.asarray(model.observe(X, Y).true_column)
    )


def test_labels_in_other_words_than_the_models_could_not_be_judged() -> None:
    model = SklearnModel(FOREST.fit(X, Y))
    with pytest.raises(ObservationError, match=r"none of the 200 labels"):
        model.observe(X, Y.map({0: "benign", 1: "malignant"}))


def test_columns_are_brought_into_the_order_of_training_and_others_are_left_out(tmp_path: Path) -> None:
    forest = FOREST.fit(X, Y)
    model = load_model(saved(tmp_path, forest))
    mixed = X[X.columns[::-1]].assign(patient=range(len(X)), target=Y)
    np.testing.assert_array_equal(np.asarray(model.observe(mixed, Y).probabilities), forest.predict_proba(X))
    assert model.input_columns == tuple(X.columns)


def test_a_missing_column_is_named_whether_the_model_knows_names_or_the_signature_does(tmp_path: Path) -> None:
    named = load_model(saved(tmp_path / "a", RandomForestClassifier(2).fit(X, Y)))
    signed = RandomForestClassifier(2).fit(X.to_numpy(), Y)
    by_signature = load_model(saved(tmp_path / "b", signed, signature=infer_signature(X)))
    for model in (named, by_signature):
        with pytest.raises(ModelUnusable, match="'mean area'"):
            model.observe(X.drop(columns="mean area"), Y)


def test_a_model_trained_with_its_label_among_the_features_is_never_fed_it(tmp_path: Path) -> None:
    leaky = X.assign(target=Y)
    model = load_model(saved(tmp_path, RandomForestClassifier(2).fit(leaky, Y)))
    with pytest.raises(ModelUnusable, match="'target'"):
        model.observe(X, Y)


def test_array_and_named_training_are_both_served_without_a_warning(tmp_path: Path) -> None:
    by_array = LogisticRegression().fit(X.to_numpy() / 1000, Y)
    model = load_model(saved(tmp_path, by_array, signature=infer_signature(X)))
    shuffled = (X / 1000)[X.columns[::-1]]
    np.testing.assert_allclose(
        np.asarray(model.observe(shuffled, Y).probabilities), by_array.predict_proba(X.to_numpy() / 1000), rtol=1e-12
    )


def test_a_model_without_any_names_takes_the_columns_by_position_and_only_their_very_number() -> None:
    model = SklearnModel(RandomForestClassifier(2).fit(X.to_numpy(), Y))
    assert model.input_columns is None
    assert model.observe(X, Y).n == 200
    with pytest.raises(ModelUnusable, match=r"takes 6 columns without names, the splits have 7"):
        model.observe(X.assign(patient=1), Y)


def test_whole_numbers_that_came_back_as_floats_are_cast_to_the_signature(tmp_path: Path) -> None:
    codes = pd.DataFrame({"code": [1, 2, 3, 1, 2, 3] * 10, "x": np.linspace(0, 1, 60)})
    y = pd.Series([0, 1, 0, 1, 1, 0] * 10)
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="error"), ["code"]), remainder="passthrough"),
        LogisticRegression(),
    ).fit(codes, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        signature = infer_signature(codes)
    model = load_model(saved(tmp_path, pipeline, signature=signature))
    for back in (codes.astype({"code": "float64"}), codes.astype({"code": "Int64"})):
        np.testing.assert_array_equal(np.asarray(model.observe(back, y).probabilities), pipeline.predict_proba(codes))
    assert not model.notes.warnings


def test_a_column_that_cannot_be_cast_without_loss_is_scored_as_it_is_and_recorded(tmp_path: Path) -> None:
    whole = X.round().astype("int64")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = load_model(saved(tmp_path, RandomForestClassifier(2).fit(whole, Y), signature=infer_signature(whole)))
    fractions = whole.assign(**{"mean area": whole["mean area"] + 0.5})
    assert model.observe(fractions, Y).n == 200
    assert any("mean area" in note for note in model.notes.warnings)


def test_decision_margins_stand_in_for_probabilities_and_the_notes_say_so() -> None:
    scaled = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
    for estimator in (LinearSVC(), RidgeClassifier(), SVC(kernel="linear")):
        model = SklearnModel(estimator.fit(scaled, Y))
        seen = model.observe(scaled, Y)
        assert seen.basis == "decision margins"
        assert any("decision margins" in note for note in model.notes.warnings)


def test_margins_between_pairs_of_classes_are_not_taken_for_margins_of_classes() -> None:
    iris = load_iris(as_frame=True)
    model = SklearnModel(SVC(decision_function_shape="ovo").fit(iris.data, iris.target))
    assert model.observe(iris.data, iris.target).kind == "label_only"


class NearestLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    def fit(self, rows: Any, labels: Any) -> NearestLabel:
        self.classes_ = np.unique(labels)
        self._rows, self._labels = np.asarray(rows), np.asarray(labels)
        return self

    def predict(self, rows: Any) -> Any:
        return self._labels[NearestNeighbors(n_neighbors=1).fit(self._rows).kneighbors(np.asarray(rows))[1][:, 0]]


def test_a_classifier_that_shows_labels_only_gets_the_weaker_question_and_the_notes_say_so() -> None:
    model = SklearnModel(NearestLabel().fit(X, Y))
    seen = model.observe(X, Y)
    assert seen.kind == "label_only"
    assert any("labels only" in note for note in model.notes.warnings)


def test_regressors_answer_with_predictions() -> None:
    data, target = load_diabetes(return_X_y=True, as_frame=True)
    ridge = Ridge().fit(data, target)
    seen = SklearnModel(ridge).observe(data, target)
    assert seen.kind == "regression"
    assert seen.residuals is not None
    np.testing.assert_allclose(seen.residuals[:, 0], np.abs(ridge.predict(data) - target))


@pytest.mark.parametrize("estimator", [KernelDensity(), GaussianMixture(2, random_state=0)])
def test_densities_answer_with_log_likelihood(estimator: Any) -> None:
    seen = SklearnModel(estimator.fit(X)).observe(X, Y)
    assert seen.kind == "density"
    assert seen.log_likelihood is not None
    np.testing.assert_array_equal(seen.log_likelihood, estimator.score_samples(X))


def test_a_density_over_the_column_called_the_label_is_given_that_column() -> None:
    whole = X.assign(target=Y.astype("float64"))
    density = KernelDensity().fit(whole)
    seen = SklearnModel(density).observe(X, whole["target"])
    np.testing.assert_array_equal(np.asarray(seen.log_likelihood), density.score_samples(whole))


def test_several_labels_at_once_are_refused_in_words() -> None:
    with pytest.raises(ModelUnusable, match="2 labels at once"):
        SklearnModel(MultiOutputClassifier(RandomForestClassifier(2)).fit(X, np.column_stack([Y, Y])))


def test_an_estimator_whose_answers_mean_nothing_known_is_refused_in_words() -> None:
    with pytest.raises(ModelUnusable, match="StandardScaler"):
        SklearnModel(StandardScaler().fit(X))


class Failing(LogisticRegression):  # type: ignore[misc]  # scikit-learn has no types
    def predict_proba(self, rows: Any) -> Any:
        raise RuntimeError("device lost")


class PartlyNaN(LogisticRegression):  # type: ignore[misc]  # scikit-learn has no types
    def predict_proba(self, rows: Any) -> Any:
        answers = super().predict_proba(rows)
        answers[: len(answers) * 3 // 10] = np.nan
        return answers


@pytest.mark.parametrize(("kind", "words"), [(Failing, "RuntimeError: device lost"), (PartlyNaN, "60 of 200")])
def test_a_model_that_fails_or_answers_nan_on_some_rows_could_not_be_judged(kind: Any, words: str) -> None:
    model = SklearnModel(kind().fit(X / 1000, Y))
    with pytest.raises(CouldNotJudge, match=words):
        model.observe(X / 1000, Y)


def test_recipe_is_the_same_estimator_unfitted() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.001)).fit(X, Y)
    recipe: Any = SklearnModel(pipeline).recipe()
    assert recipe.get_params()["logisticregression__C"] == 0.001
    assert not hasattr(recipe.steps[-1][1], "coef_")
    assert hasattr(pipeline.steps[-1][1], "coef_")


def test_there_is_no_recipe_where_a_refit_would_keep_what_the_model_learned() -> None:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    prefit = CalibratedClassifierCV(FrozenEstimator(FOREST.fit(X, Y))).fit(X, Y)
    assert SklearnModel(prefit).recipe() is None


def test_recorded_and_present_versions_are_in_the_notes_and_drift_is_said(tmp_path: Path) -> None:
    folder = saved(tmp_path, FOREST.fit(X, Y))
    assert not load_model(folder).notes.warnings
    file = folder / "MLmodel"
    import sklearn

    file.write_text(file.read_text().replace(f"sklearn_version: {sklearn.__version__}", "sklearn_version: 1.2.0"))
    notes = load_model(folder).notes
    assert notes.library_versions is not None
    assert notes.library_versions["scikit-learn at training"] == "1.2.0"
    assert notes.library_versions["scikit-learn"] == sklearn.__version__
    assert any("1.2.0" in warning and sklearn.__version__ in warning for warning in notes.warnings)


def test_a_pickle_of_another_scikit_learn_warns_in_the_notes_and_nowhere_else(tmp_path: Path) -> None:
    folder = saved(tmp_path, LogisticRegression().fit(X / 1000, Y), serialization_format="pickle")
    import sklearn

    pickled = folder / "model.pkl"
    pickled.write_bytes(pickled.read_bytes().replace(sklearn.__version__.encode(), b"9.9.9"))
    assert any("9.9.9" in warning for warning in load_model(folder).notes.warnings)


def test_forbidden_deserialisation_is_respected_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path, FOREST.fit(X, Y))
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    with pytest.raises(ModelUnusable, match="MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false stands"):
        load_model(folder)


def test_untrusted_skops_types_are_refused_with_the_two_ways_out_and_declared_ones_load(tmp_path: Path) -> None:
    forest = FOREST.fit(X, Y)
    trusted = ["sklearn.tree._tree.Tree"]
    folder = saved(tmp_path, forest, serialization_format="skops", skops_trusted_types=trusted)
    np.testing.assert_array_equal(np.asarray(load_model(folder).observe(X, Y).probabilities), forest.predict_proba(X))
    # As another version of skops, with another list of its own, left it.
    (folder / "MLmodel").write_text(
        (folder / "MLmodel").read_text().replace("- sklearn.tree._tree.Tree", "- builtins.int")
    )
    with pytest.raises(ModelUnusable, match=r"sklearn\.tree\._tree\.Tree") as caught:
        load_model(folder)
    assert "skops_trusted_types=" in str(caught.value)
    assert "cloudpickle" in str(caught.value)


def test_a_damaged_model_file_is_a_model_that_cannot_be_opened(tmp_path: Path) -> None:
    folder = saved(tmp_path, FOREST.fit(X, Y))
    (folder / "model.pkl").write_bytes(b"not a pickle")
    with pytest.raises(ModelUnusable, match="cannot be opened"):
        load_model(folder)


def test_forest_and_regressor_nodes_and_coefficients_are_counted() -> None:
    forest = RandomForestRegressor(3, max_depth=2, random_state=0).fit(X, Y)
    assert SklearnModel(forest).notes.parameters == sum(tree.tree_.node_count for tree in forest.estimators_)
    assert SklearnModel(LogisticRegression().fit(X / 1000, Y)).notes.parameters == 7
    assert SklearnModel(NearestCentroid().fit(X, Y)).notes.parameters is None
