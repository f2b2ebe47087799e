"""Training reference models: each on an independent random half of the pool, with the logged model's own recipe.

Reference i depends on the seed and on i alone, so more references extend fewer. Fits go through joblib, whose ``parallel_config`` decides
where they run; one process or many, threads or a cluster, the answers are the same to the bit. Nothing is written to disk.
(A model that has no seed and draws from the global random state repeats itself in one process or in many, not among threads.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
from mlflow_privacy_gate.attacks.labels import UNKNOWN, columns_of, label_values
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.recipe import (
    Recipe,
    Seeds,
    as_recipe,
    one_thread,
    own_randomness,
    refuse_other_versions,
    seed_global,
)
from mlflow_privacy_gate.attacks.references import CLIPPING_NOTE, FEWEST_MODELS, Posteriors, References, clipped_loss
from mlflow_privacy_gate.errors import ModelUnusable, ObservationError, PrivacyGateError, UsageError

Progress = Callable[[int, int], None]
# The largest difference of a probability that still counts as the same model: one tree of a thousand moves more.
SAME_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Reproduction:
    """Whether training again on the members gave the logged model, and the ``largest_difference`` of any probability."""

    reproduced: bool
    largest_difference: float


@dataclass(frozen=True)
class _Pool:
    """The rows under test: ``features`` (n, d), ``labels`` (n,) in the model's own words, and its ``classes`` (C,)."""

    features: Any
    labels: npt.NDArray[Any]
    classes: npt.NDArray[Any]


@dataclass(frozen=True)
class _Answer:
    scores: FloatArray
    in_mask: BoolArray
    posteriors: Posteriors | None
    versions: Mapping[str, str]


class _Gathered:
    """The answers of K references, put where they belong as they come in."""

    def __init__(self, count: int, n: int, keep_posteriors: bool) -> None:
        self._scores = np.empty((count, n))
        self._in_mask = np.empty((count, n), dtype=np.bool_)
        self._posteriors = Posteriors.empty((count, n)) if keep_posteriors else None

    def put(self, index: int, answer: _Answer) -> None:
        self._scores[index], self._in_mask[index] = answer.scores, answer.in_mask
        if self._posteriors is not None and answer.posteriors is not None:
            self._posteriors.top[index] = answer.posteriors.top
            self._posteriors.correct[index] = answer.posteriors.correct

    def references(self, origin: str, seed: int) -> References:
        return References(self._scores, self._in_mask, origin, seed, self._posteriors, (CLIPPING_NOTE,))


def fit_references(
    recipe: object,
    features: Any,
    labels: object,
    classes: object,
    *,
    count: int,
    seed: int,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    keep_posteriors: bool = False,
) -> References:
    """Train ``count`` reference models on random halves of the pool and keep what each says of every row's label.

    ``recipe``: an estimator, pipeline, or function of (features, labels, seed) that gives a fitted model. ``features`` (n, d),
    ``labels`` (n,): members and non-members together, all labels among ``classes`` (C,), the logged model's own. Each row is in each
    half with probability one half, independently. ``n_jobs``: None leaves it to an outer ``joblib.parallel_config``.
    ``progress`` is called with (done, count), at the end where a cluster hands back all answers at once. ``keep_posteriors`` keeps three
    probabilities a row and model for the shadow attack.

    ModelUnusable names the first reference that could not be trained or asked, and why: none is ever dropped. ObservationError for labels
    the model does not know. The caller's arrays and global random state are left as they were.
    """
    if count < FEWEST_MODELS:
        raise UsageError(f"reference models: expected a count of {FEWEST_MODELS} or more, got {count}")
    made, pool = as_recipe(recipe), _pool(features, labels, classes)
    tasks = (
        joblib.delayed(_train_and_ask)(f"reference {index + 1} of {count}", made, pool, seeds, keep_posteriors)
        for index, seeds in enumerate(np.random.SeedSequence(seed).spawn(count))
    )
    options: dict[str, Any] = {} if n_jobs is None else {"n_jobs": n_jobs}
    gathered = _Gathered(count, len(pool.labels), keep_posteriors)
    with own_randomness(), threadpool_limits(limits=1):
        for done, answer in enumerate(_workers(options)(tasks), 1):
            refuse_other_versions(f"reference {done} of {count}", made.versions(), answer.versions)
            gathered.put(done - 1, answer)
            if progress is not None:
                progress(done, count)
    return gathered.references(made.origin, seed)


def reproduce(
    recipe: object,
    member_features: Any,
    member_labels: object,
    features: Any,
    logged_probabilities: npt.ArrayLike,
    classes: object,
    *,
    seed: int | None = None,
) -> Reproduction:
    """Train once more on the members with the logged seed and say whether the logged model's predictions come out.

    ``recipe`` as it was logged, its own ``random_state`` included. ``member_features`` and ``member_labels``: the rows it was
    trained on, in that order. ``features`` (n, d): rows to compare on, ``logged_probabilities`` (n, C) what the logged model says of
    them, columns in the order of ``classes``. ``seed``: what a training function was called with. ModelUnusable where the refit fails.
    A model that does not know the label of a row was not trained on it.
    """
    if (columns_of(member_labels, classes) == UNKNOWN).any():
        return Reproduction(reproduced=False, largest_difference=1.0)
    logged = np.asarray(logged_probabilities, dtype=np.float64)
    made, pool = as_recipe(recipe), _pool(member_features, member_labels, classes)
    with own_randomness(), one_thread(), _named("the refit on the members"):
        model = made.fit_as_logged(_rows(pool.features, np.arange(len(pool.labels))), pool.labels.copy(), seed)
        basis, answers = _ask(model, _rows(features, np.arange(logged.shape[0])), pool.classes)
    if basis != "probabilities" or answers.shape != logged.shape:
        raise ModelUnusable(f"the refit on the members gives {basis} of shape {answers.shape}, expected {logged.shape}")
    difference = float(np.abs(answers - logged).max())
    return Reproduction(difference <= SAME_PROBABILITY, difference)


def refit(recipe: object, features: Any, labels: object, classes: object | None, *, seed: int) -> Any:
    """Train one model by ``recipe`` on all n rows (n, d) with labels (n,) among ``classes``, with seeds of its own.

    ``classes`` None: the labels are a regression's numbers, or nothing that the recipe looks at. The caller's arrays and global random
    state are left as they were. ModelUnusable where the training fails.
    """
    made, rows = as_recipe(recipe), _length(features)
    values = np.asarray(labels) if classes is None else _pool(features, labels, classes).labels
    fitting, drawing = np.random.SeedSequence(seed).spawn(2)
    with own_randomness(), one_thread(), _named(f"the refit on {rows} rows"):
        seed_global(drawing)
        return made.fit(_rows(features, np.arange(rows)), values.copy(), fitting)


def _workers(options: Mapping[str, Any]) -> Any:
    """Give joblib's workers on the backend in force: answers one by one where it can, which Spark's and Ray's cannot, else all at once."""
    # max_nbytes: joblib would otherwise spill large arrays, which are personal data, to a temporary folder.
    try:
        return joblib.Parallel(return_as="generator", max_nbytes=None, **options)
    except ValueError:
        return joblib.Parallel(max_nbytes=None, **options)


def _pool(features: Any, labels: object, classes: object) -> _Pool:
    columns = columns_of(labels, classes)
    unknown = np.flatnonzero(columns == UNKNOWN)
    if unknown.size:
        raise ObservationError(
            f"reference models: {unknown.size} of {columns.size} labels are not among the model's classes "
            f"(first at row {unknown[0]}); leave these rows out first (`Observations.kept`)"
        )
    if _length(features) != columns.size:
        raise ObservationError(f"reference models: {_length(features)} rows of features, {columns.size} labels")
    known = label_values(classes).to_numpy()
    return _Pool(features, known[columns], known)


def _train_and_ask(name: str, recipe: Recipe, pool: _Pool, seeds: Seeds, keep_posteriors: bool) -> _Answer:
    halving, fitting, drawing = seeds.spawn(3)
    n = len(pool.labels)
    in_mask = np.random.default_rng(halving).integers(0, 2, size=n, dtype=np.bool_)
    half = np.flatnonzero(in_mask)
    with one_thread(), _named(f"{name}, on {half.size} of {n} rows,"):
        seed_global(drawing)
        model = recipe.fit(_rows(pool.features, half), pool.labels[half], fitting)
        basis, answers = _ask(model, _rows(pool.features, np.arange(n)), pool.classes)
        read = Observations.from_probabilities if basis == "probabilities" else Observations.from_decision_margins
        observations = read(answers, pool.labels, pool.classes)
    posteriors = Posteriors.of(observations) if keep_posteriors else None
    return _Answer(clipped_loss(observations), in_mask, posteriors, recipe.versions())


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Translate whatever a foreign model raises into ModelUnusable that names which model it was."""
    try:
        yield
    except PrivacyGateError as exc:
        raise ModelUnusable(f"{what} cannot be used: {exc.message}") from exc
    except (Exception, SystemExit) as exc:
        raise ModelUnusable(f"{what} cannot be trained or asked: {type(exc).__name__}: {exc}") from exc


def _ask(model: Any, features: Any, classes: npt.NDArray[Any]) -> tuple[str, FloatArray]:
    """Ask for probabilities, else decision margins, (n, C) in the order of ``classes``.

    A class that was absent from the half has probability 0, or a margin of -inf.
    """
    if hasattr(model, "predict_proba"):
        basis, absent, answers = "probabilities", 0.0, np.asarray(model.predict_proba(features), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        basis, absent, answers = "decision margins", -np.inf, np.asarray(model.decision_function(features), np.float64)
        if answers.ndim == 1:
            answers = np.stack((np.zeros_like(answers), answers), axis=1)
    else:
        raise ModelUnusable(f"{type(model).__name__} gives neither predict_proba nor decision_function")
    columns = columns_of(model.classes_, classes, what="the model's classes")
    if answers.ndim != 2 or answers.shape[1] != columns.size or (columns == UNKNOWN).any():
        raise ModelUnusable(
            f"expected a column for each of the classes {list(model.classes_)}, all among {list(classes)}; got shape {answers.shape}"
        )
    aligned = np.full((answers.shape[0], classes.size), absent)
    aligned[:, columns] = answers
    return basis, aligned


def _length(features: Any) -> int:
    return int(features.shape[0]) if hasattr(features, "shape") else len(features)


def _rows(features: Any, indices: IntArray) -> Any:
    """Copy some rows of a frame, an array, a list or a sparse matrix."""
    if hasattr(features, "iloc"):
        return features.iloc[indices].copy()
    return features[indices] if hasattr(features, "shape") else np.asarray(features)[indices]
