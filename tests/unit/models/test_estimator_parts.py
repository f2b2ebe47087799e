"""Promises on what an artifact itself holds of its training rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import KNNImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation
from sklearn.svm import SVC, LinearSVC, OneClassSVM

from mlflow_privacy_gate.models.estimator_parts import training_rows_kept

X, Y = load_iris(return_X_y=True, as_frame=True)
KEEPERS = [
    KNeighborsClassifier(),
    KNeighborsClassifier(algorithm="kd_tree"),
    RadiusNeighborsRegressor(),
    SVC(),
    OneClassSVM(),
    GaussianProcessClassifier(optimizer=None),
    GaussianProcessRegressor(optimizer=None),
    KernelDensity(),
    KernelRidge(),
    LabelPropagation(),
]


@pytest.mark.parametrize("estimator", KEEPERS, ids=lambda one: type(one).__name__)
def test_estimators_that_keep_training_rows_are_found_alone_and_in_a_pipeline(estimator: Any) -> None:
    name = type(estimator).__name__
    scaled: pd.DataFrame = X / 10
    for whole in (estimator, make_pipeline(StandardScaler(), estimator)):
        found = training_rows_kept(whole.fit(scaled, Y))
        assert found is not None
        assert name in found or "_Binary" in found


def test_rows_kept_by_a_part_of_an_ensemble_a_search_or_a_transformer_are_found() -> None:
    voting = VotingClassifier(
        [("near", make_pipeline(StandardScaler(), KNeighborsClassifier())), ("line", LinearSVC())]
    )
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=2)
    imputing = make_pipeline(KNNImputer(), LogisticRegression(max_iter=1000))
    bagging = BaggingClassifier(SVC(), n_estimators=2)
    for whole, keeper in ((voting, "KNeighbors"), (search, "KNeighbors"), (imputing, "KNNImputer"), (bagging, "SVC")):
        assert keeper in (training_rows_kept(whole.fit(X, Y)) or "")


@pytest.mark.parametrize("estimator", [RandomForestClassifier(3), LogisticRegression(max_iter=1000), LinearSVC()])
def test_estimators_that_keep_no_rows_are_not_accused(estimator: Any) -> None:
    assert training_rows_kept(make_pipeline(StandardScaler(), estimator).fit(X, Y)) is None
