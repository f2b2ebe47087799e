"""A recipe trains anew: nothing learned is carried over, seeds are set where there are seeds, and one thread is used."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from mlflow_privacy_gate.attacks.recipe import (
    CloneRecipe,
    FunctionRecipe,
    as_recipe,
    one_thread,
    own_randomness,
    refuse_other_versions,
)
from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, UsageError

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def fitted(recipe: object, seed: int) -> Any:
    return as_recipe(recipe).fit(X, Y, np.random.SeedSequence(seed))


def test_what_an_estimator_learned_is_left_behind() -> None:
    learned = RandomForestClassifier(5, warm_start=True).fit(X, Y)
    recipe = as_recipe(learned)
    assert isinstance(recipe, CloneRecipe)
    assert not hasattr(recipe.estimator, "estimators_")
    other = recipe.fit(X[:10], Y[:10], np.random.SeedSequence(1))
    assert other is not learned
    assert len(other.estimators_) == 5


@pytest.mark.parametrize(
    "frozen",
    [
        FrozenEstimator(LogisticRegression().fit(X, Y)),
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), LogisticRegression()),
    ],
)
def test_a_frozen_part_is_refused_by_name(frozen: object) -> None:
    with pytest.raises(ModelUnusable, match="keeps what it learned"):
        as_recipe(frozen)


def test_seeds_are_set_at_every_depth_and_nowhere_else() -> None:
    voting = VotingClassifier([("bag", BaggingClassifier(DecisionTreeClassifier(), 3)), ("nb", GaussianNB())])
    pipeline = Pipeline([("scale", StandardScaler()), ("vote", voting)])
    model = fitted(pipeline, 1)
    parameters = model.get_params(deep=True)
    seeds = {name: value for name, value in parameters.items() if name.endswith("random_state")}
    assert set(seeds) == {"vote__bag__random_state", "vote__bag__estimator__random_state"}
    assert len(set(seeds.values())) == 2
    assert all(isinstance(value, int) for value in seeds.values())
    again, other = fitted(pipeline, 1).get_params(deep=True), fitted(pipeline, 2).get_params(deep=True)
    assert all(again[name] == value and other[name] != value for name, value in seeds.items())
    assert pipeline.get_params()["vote__bag__random_state"] is None


class OtherLibrary(BaseEstimator):  # type: ignore[misc]
    """Stands for boosting libraries, whose ``n_jobs=None`` means every core."""

    def __init__(self, n_jobs: int | None = None, random_seed: int | None = None) -> None:
        self.n_jobs, self.random_seed = n_jobs, random_seed

    def fit(self, _features: object, _labels: object) -> OtherLibrary:
        return self


def test_every_part_is_told_to_use_one_worker() -> None:
    model = fitted(make_pipeline(StandardScaler(), RandomForestClassifier(3, n_jobs=-1)), 0)
    assert (
        model.get_params()["randomforestclassifier__n_jobs"] is None
    )  # scikit-learn then follows joblib, which says one
    other = fitted(OtherLibrary(), 0)
    assert other.n_jobs == 1
    assert isinstance(other.random_seed, int)


def test_a_function_is_called_with_a_seed_of_its_own() -> None:
    seeds: list[int] = []
    recipe = as_recipe(lambda features, labels, seed: seeds.append(seed))
    assert isinstance(recipe, FunctionRecipe)
    for seed in (1, 1, 2):
        recipe.fit(X, Y, np.random.SeedSequence(seed))
    assert seeds[0] == seeds[1] != seeds[2]
    recipe.fit_as_logged(X, Y, 77)
    assert seeds[-1] == 77
    with pytest.raises(UsageError, match="seed it was run with"):
        recipe.fit_as_logged(X, Y, None)


def test_anything_else_is_no_recipe() -> None:
    with pytest.raises(UsageError, match="got str"):
        as_recipe("package.module:function")


def test_a_worker_with_other_versions_is_refused_by_name() -> None:
    here = as_recipe(make_pipeline(StandardScaler(), OtherLibrary())).versions()
    assert {"python", "numpy", "sklearn"} <= set(here)
    refuse_other_versions("reference 3 of 4", here, dict(here))
    with pytest.raises(CouldNotJudge, match=r"reference 3 of 4 was trained by a worker with sklearn 0.1 \(here \d"):
        refuse_other_versions("reference 3 of 4", here, {**here, "sklearn": "0.1"})


def test_the_thread_limit_holds_inside_and_ends_outside() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    with one_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} <= {1}
        assert joblib.Parallel(n_jobs=4)._effective_n_jobs() == 1
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_the_callers_random_state_comes_back() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    with own_randomness():
        np.random.random(100)  # noqa: NPY002
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002
