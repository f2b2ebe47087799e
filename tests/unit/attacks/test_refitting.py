"""Training reference models: same answers everywhere, nothing dropped, nothing of the caller's touched."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.parallel import ThreadingBackend
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mlflow_privacy_gate.attacks.references import LOSS_LIMIT, References
from mlflow_privacy_gate.attacks.refitting import fit_references, reproduce
from mlflow_privacy_gate.errors import ModelUnusable, ObservationError, UsageError

FEATURES, LABELS = (part[:200] for part in load_breast_cancer(return_X_y=True))
CLASSES = [0, 1]
FOREST = RandomForestClassifier(10, min_samples_leaf=3, n_jobs=-1)


def references_of(recipe: object, **options: Any) -> References:
    given = {"features": FEATURES, "labels": LABELS, "classes": CLASSES, "count": 4, "seed": 7} | options
    features, labels, classes = (given.pop(name) for name in ("features", "labels", "classes"))
    return fit_references(recipe, features, labels, classes, **given)


def same(left: References, right: References) -> None:
    np.testing.assert_array_equal(left.in_mask, right.in_mask)
    np.testing.assert_array_equal(left.scores, right.scores)


@pytest.mark.parametrize("backend", ["sequential", "loky", "threading"])
def test_the_answer_is_the_same_to_the_bit_on_every_backend(backend: str) -> None:
    plain = references_of(FOREST)
    with joblib.parallel_config(backend, n_jobs=1 if backend == "sequential" else 2):
        same(references_of(FOREST), plain)


class WholeAnswersBackend(ThreadingBackend):  # type: ignore[misc]
    """A backend that hands back all answers at once, as Spark's, Ray's and multiprocessing's do."""

    supports_return_generator = False


def test_a_cluster_that_hands_back_all_answers_at_once_serves_too() -> None:
    plain, told = references_of(FOREST), []
    joblib.register_parallel_backend("whole-answers", WholeAnswersBackend)
    with joblib.parallel_config("whole-answers", n_jobs=2):
        same(references_of(FOREST, progress=lambda done, count: told.append((done, count))), plain)
    assert told == [(done, 4) for done in range(1, 5)]


def test_the_number_of_workers_asked_for_changes_nothing() -> None:
    same(references_of(FOREST, n_jobs=2), references_of(FOREST, n_jobs=1))


def test_more_references_extend_fewer() -> None:
    few, many = references_of(FOREST, count=3), references_of(FOREST, count=6)
    np.testing.assert_array_equal(many.scores[:3], few.scores)
    np.testing.assert_array_equal(many.in_mask[:3], few.in_mask)
    assert len({row.tobytes() for row in many.in_mask}) == 6


def test_another_seed_is_another_draw() -> None:
    assert (references_of(FOREST, seed=8).in_mask != references_of(FOREST).in_mask).any()


def test_each_row_is_in_each_half_with_probability_one_half_independently() -> None:
    features = np.random.default_rng(0).normal(size=(2000, 1))
    labels = np.arange(2000) % 2
    in_mask = references_of(GaussianNB(), features=features, labels=labels, count=40).in_mask
    # 80,000 draws: five standard errors of a share are 0.009; 40 and 2,000 draws a row and a model give these spreads.
    assert in_mask.mean() == pytest.approx(0.5, abs=0.009)
    assert in_mask.sum(axis=0).std() == pytest.approx(np.sqrt(10), rel=0.1)
    assert in_mask.sum(axis=1).std() == pytest.approx(np.sqrt(500), rel=0.4)


def test_members_of_a_half_are_what_the_model_was_trained_on() -> None:
    seen: list[int] = []

    def train(features: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> Any:
        seen.extend(features[:, 0].astype(int).tolist())
        return DecisionTreeClassifier(random_state=seed).fit(features, labels)

    features = np.column_stack((np.arange(50), np.arange(50) % 7))
    references = references_of(train, features=features, labels=np.arange(50) % 2, count=2)
    assert seen == [row for mask in references.in_mask for row in np.flatnonzero(mask)]
    assert references.origin == "training_function"
    assert (references.scores[references.in_mask] == LOSS_LIMIT).all()  # a full-grown tree knows its rows by heart


def test_one_row_of_a_class_leaves_it_out_of_some_halves_with_the_floor() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(list("abcd") * 25 + ["e"])
    features = rng.normal(size=(101, 4))
    references = references_of(
        RandomForestClassifier(5), features=features, labels=labels, classes=list("abcde"), count=20
    )
    without = ~references.in_mask[:, 100]
    assert 0 < without.sum() < 20
    assert (references.scores[without, 100] == -LOSS_LIMIT).all()
    assert np.isfinite(references.scores).all()


def test_columns_are_read_through_classes_whatever_the_order() -> None:
    signed = np.where(LABELS == 1, 1, -1)
    straight = references_of(FOREST)
    same(references_of(FOREST, labels=signed, classes=[-1, 1]), straight)
    same(references_of(FOREST, labels=pd.Series(signed, dtype="Int64"), classes=np.array([-1, 1])), straight)
    words = pd.Categorical(np.where(LABELS == 1, "well", "ill"))
    same(references_of(FOREST, labels=words, classes=np.array(["ill", "well"])), straight)
    same(references_of(FOREST, classes=[1, 0]), straight)


def mixed_frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame: pd.DataFrame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 200),
            "ward": pd.Categorical(rng.choice(["north", "south", "west"], 200)),
            "smoker": rng.choice(["yes", "no"], 200),
        }
    )
    return frame


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(
            ColumnTransformer(
                [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["ward", "smoker"])]
            ),
            RandomForestClassifier(5),
        ),
        make_pipeline(ColumnTransformer([("n", StandardScaler(), ["age"])]), KNeighborsClassifier(3)),
        make_pipeline(ColumnTransformer([("n", "passthrough", ["age"])]), GaussianNB()),
        make_pipeline(ColumnTransformer([("n", StandardScaler(), ["age"])]), LinearSVC()),
    ],
    ids=["forest", "kNN", "GaussianNB", "margins only"],
)
def test_pipelines_on_frames_with_categories_can_be_refitted(model: object) -> None:
    labels = np.random.default_rng(2).choice(["a", "b"], 200)
    references = references_of(model, features=mixed_frame(), labels=labels, classes=["a", "b"])
    assert references.origin == "clone"
    assert np.ptp(references.scores) > 0


def test_a_reference_that_cannot_be_trained_is_an_error_that_names_it() -> None:
    labels = np.zeros(200, dtype=int)
    labels[0] = 1
    with pytest.raises(ModelUnusable, match=r"reference \d of 4, on \d+ of 200 rows, cannot be trained.*ValueError"):
        references_of(LogisticRegression(), labels=labels)


class Leaving(LogisticRegression):  # type: ignore[misc]
    """Ends the program, as a script would, with the exit code of a success."""

    def fit(self, features: Any, labels: Any) -> Leaving:
        sys.exit(0)


def test_a_recipe_that_asks_for_the_program_to_end_is_an_error_that_names_it() -> None:
    with pytest.raises(ModelUnusable, match=r"reference 1 of 4.*SystemExit: 0"):
        references_of(Leaving())


class Unsure(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers with NaN."""

    def fit(self, features: Any, labels: Any) -> Unsure:
        self.classes_ = np.unique(labels)
        return self

    def predict_proba(self, features: Any) -> NDArray[np.float64]:
        return np.full((len(features), 2), np.nan)


def test_a_reference_that_answers_nan_is_never_dropped() -> None:
    with pytest.raises(ModelUnusable, match=r"reference 1 of 4.*hold NaN"):
        references_of(Unsure())


def test_a_model_that_gives_labels_only_is_an_error() -> None:
    class LabelsOnly(Unsure):
        predict_proba = property()

    with pytest.raises(ModelUnusable, match="neither predict_proba nor decision_function"):
        references_of(LabelsOnly())


def test_labels_the_model_does_not_know_are_refused_with_their_count() -> None:
    with pytest.raises(ObservationError, match=r"2 of 200 labels are not among the model's classes \(first at row 3\)"):
        references_of(FOREST, labels=[5 if row in (3, 9) else label for row, label in enumerate(LABELS)])
    with pytest.raises(ObservationError, match="200 rows of features, 199 labels"):
        references_of(FOREST, labels=LABELS[:-1])
    with pytest.raises(UsageError, match="2 or more"):
        references_of(FOREST, count=1)


class Careless(Unsure):
    """Writes into what it is given and draws from the global random state, having no seed of its own."""

    def fit(self, features: Any, labels: Any) -> Careless:
        super().fit(features, labels)
        self.shift_ = np.random.random()  # noqa: NPY002
        features[:], labels[:] = 0, 0
        return self

    def predict_proba(self, features: Any) -> NDArray[np.float64]:
        features[:] = 0
        return np.full((len(features), 2), [self.shift_, 1 - self.shift_])


def random_state() -> NDArray[np.uint32]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    return np.array(state["state"]["key"])


def test_the_callers_arrays_and_random_state_are_left_alone() -> None:
    features, labels = FEATURES.copy(), LABELS.copy()
    frame = pd.DataFrame(FEATURES)
    np.random.seed(3)  # noqa: NPY002
    before = random_state()
    first = references_of(Careless(), features=features, labels=labels)
    second = references_of(Careless(), features=frame.to_numpy(), labels=labels)
    np.testing.assert_array_equal(random_state(), before)
    np.testing.assert_array_equal(features, FEATURES)
    np.testing.assert_array_equal(labels, LABELS)
    same(first, second)
    assert len(np.unique(first.scores[:, 0])) == 4


def test_every_fit_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    references_of(FOREST, progress=lambda done, count: seen.append((done, count)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_frames_lists_and_sparse_rows_give_the_same_answer() -> None:
    plain = references_of(FOREST)
    same(references_of(FOREST, features=pd.DataFrame(FEATURES)), plain)
    same(references_of(FOREST, features=FEATURES.tolist()), plain)
    tree = DecisionTreeClassifier()
    same(references_of(tree, features=csr_array(FEATURES)), references_of(tree))


def test_posteriors_are_kept_only_when_asked_for() -> None:
    assert references_of(FOREST).posteriors is None
    kept = references_of(FOREST, keep_posteriors=True).posteriors
    assert kept is not None
    assert kept.top.shape == (4, 200, 3)
    assert kept.correct.mean() > 0.8


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    wide = np.random.default_rng(0).normal(size=(200, 2000))  # over joblib's limit for spilling
    references_of(GaussianNB(), features=wide, n_jobs=2)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_same_training_gives_the_logged_model_again() -> None:
    forest = RandomForestClassifier(10, random_state=3).fit(FEATURES[:100], LABELS[:100])
    logged = forest.predict_proba(FEATURES)
    again = reproduce(forest, FEATURES[:100], LABELS[:100], FEATURES, logged, forest.classes_)
    assert again.reproduced
    assert again.largest_difference < 1e-9


def test_other_members_do_not_give_the_logged_model_again() -> None:
    forest = RandomForestClassifier(10, random_state=3).fit(FEATURES[:120], LABELS[:120])
    logged = forest.predict_proba(FEATURES)
    other = reproduce(forest, FEATURES[:100], LABELS[:100], FEATURES, logged, forest.classes_)
    assert not other.reproduced
    assert other.largest_difference > 0.01


def test_a_training_function_is_reproduced_with_its_seed() -> None:
    def train(features: Any, labels: Any, seed: int) -> Any:
        return RandomForestClassifier(5, random_state=seed).fit(features, labels)

    logged = train(FEATURES[:100], LABELS[:100], 11).predict_proba(FEATURES)
    asked = (train, FEATURES[:100], LABELS[:100], FEATURES, logged, CLASSES)
    assert reproduce(*asked, seed=11).reproduced
    assert not reproduce(*asked, seed=12).reproduced
