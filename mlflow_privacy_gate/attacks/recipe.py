"""A recipe: how the logged model was trained, in a form that trains again on other rows with another seed.

Either an unfitted scikit-learn estimator or pipeline (of XGBoost, LightGBM and CatBoost as well, by their scikit-learn classes), or a
training function called as ``function(features, labels, seed)``. Every model is trained and asked on one thread, so that the
number of workers cannot change a bit of what it says.
"""

from __future__ import annotations

import platform
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import joblib
import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate.attacks.renumbered import fitted
from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, UsageError
from mlflow_privacy_gate.vocabulary import ReferenceOrigin

Seeds = np.random.SeedSequence
# scikit-learn's, XGBoost's and LightGBM's name, then CatBoost's.
SEED_PARAMETERS = frozenset({"random_state", "random_seed"})
WORKER_PARAMETERS = frozenset({"n_jobs", "thread_count"})


class Recipe(Protocol):
    """A way of training, named in evidence by its origin."""

    @property
    def origin(self) -> str:
        """Where the recipe comes from, a word of :class:`.vocabulary.ReferenceOrigin`."""

    def fit(self, features: Any, labels: Any, seeds: Seeds) -> Any:
        """Train a new model on rows (m, d) with labels (m,); the same seeds give the same model."""

    def fit_as_logged(self, features: Any, labels: Any, seed: int | None) -> Any:
        """Train a new model with the seed that the logged model was trained with."""

    def versions(self) -> Mapping[str, str]:
        """Name the libraries it trains with, and their versions on this machine."""


@dataclass(frozen=True)
class CloneRecipe:
    """The logged estimator's own parameters; ``estimator`` is unfitted."""

    estimator: Any
    origin: str = ReferenceOrigin.CLONE

    def fit(self, features: Any, labels: Any, seeds: Seeds) -> Any:
        """Train a clone, with a seed of its own in every part that has one."""
        numbers = np.random.default_rng(seeds)
        names = sorted(self.estimator.get_params(deep=True))
        seeded = {name: int(numbers.integers(2**31)) for name in names if _last(name) in SEED_PARAMETERS}
        return fitted(self._clone(seeded), features, labels)

    def fit_as_logged(self, features: Any, labels: Any, seed: int | None) -> Any:  # noqa: ARG002 - it has its own
        """Train a clone with the seeds that stand in the estimator; ``seed`` is not asked."""
        return fitted(self._clone({}), features, labels)

    def versions(self) -> Mapping[str, str]:
        """Name numpy, scikit-learn and the libraries of every part."""
        parts = (self.estimator, *self.estimator.get_params(deep=True).values())
        return _versions(type(part).__module__ for part in parts)

    def _clone(self, parameters: dict[str, int]) -> Any:
        estimator = clone(self.estimator)
        return estimator.set_params(**_one_worker(estimator), **parameters)


@dataclass(frozen=True)
class FunctionRecipe:
    """A training function of the author's."""

    function: Callable[[Any, Any, int], Any]
    origin: str = ReferenceOrigin.TRAINING_FUNCTION

    def fit(self, features: Any, labels: Any, seeds: Seeds) -> Any:
        """Call the function with a seed drawn from ``seeds``."""
        return self.function(features, labels, int(np.random.default_rng(seeds).integers(2**31)))

    def fit_as_logged(self, features: Any, labels: Any, seed: int | None) -> Any:
        """Call the function with the logged seed; UsageError where it is not known."""
        if seed is None:
            raise UsageError("a training function can only be run again as it was with the seed it was run with")
        return self.function(features, labels, seed)

    def versions(self) -> Mapping[str, str]:
        """Name numpy, scikit-learn and the library the function comes from."""
        return _versions([str(getattr(self.function, "__module__", ""))])


def as_recipe(recipe: object) -> Recipe:
    """Read an estimator (fitted or not) or a training function as a recipe.

    What the estimator learned is left behind. ModelUnusable where some of it cannot be; UsageError for anything else.
    """
    if isinstance(recipe, (CloneRecipe, FunctionRecipe)):
        return recipe
    if hasattr(recipe, "get_params") and hasattr(recipe, "fit"):
        try:
            estimator: Any = clone(recipe)
        except (TypeError, RuntimeError) as exc:
            raise ModelUnusable(f"{type(recipe).__name__} cannot be cloned for reference models: {exc}") from exc
        _refuse_learned(estimator)
        return CloneRecipe(estimator)
    if callable(recipe):
        return FunctionRecipe(recipe)
    raise UsageError(
        f"reference models: expected an estimator or a function of (features, labels, seed), got {type(recipe).__name__}"
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep joblib, BLAS and OpenMP to one thread inside, for this task only."""
    with ExitStack() as stack:
        stack.enter_context(joblib.parallel_config("sequential", n_jobs=1))
        stack.enter_context(threadpool_limits(limits=1))
        yield


@contextmanager
def own_randomness() -> Iterator[None]:
    """Give the caller's global random state back as it was, whatever a model drew from it inside."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the state that is protected
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def seed_global(seeds: Seeds) -> None:
    """Seed the global generators, for models that draw from them because they have no seed of their own."""
    word = int(seeds.generate_state(1)[0])
    random.seed(word)
    np.random.seed(word)  # noqa: NPY002


def refuse_other_versions(name: str, here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Raise CouldNotJudge where a worker trained with other library versions than the process that asked for it."""
    differing = sorted(library for library in {*here, *there} if here.get(library) != there.get(library))
    if differing:
        found = ", ".join(f"{library} {there.get(library)} (here {here.get(library)})" for library in differing)
        raise CouldNotJudge(f"{name} was trained by a worker with {found}; use workers with the same versions")


def _versions(modules: Iterable[str]) -> Mapping[str, str]:
    libraries = {"numpy", "sklearn", *(module.partition(".")[0] for module in modules)}
    loaded = {library: getattr(sys.modules.get(library), "__version__", None) for library in libraries}
    return {"python": platform.python_version(), **{library: str(found) for library, found in loaded.items() if found}}


def _last(name: str) -> str:
    return name.rpartition("__")[2]


def _one_worker(estimator: Any) -> dict[str, int | None]:
    """Name each part's number of workers: none of its own in scikit-learn, which then follows joblib; one elsewhere."""
    parts = estimator.get_params(deep=True)
    owners = {
        name: parts.get(name.rpartition("__")[0], estimator) for name in parts if _last(name) in WORKER_PARAMETERS
    }
    return {name: None if type(part).__module__.startswith("sklearn.") else 1 for name, part in owners.items()}


def _refuse_learned(estimator: Any) -> None:
    """Refuse a clone that still knows training rows: a frozen part, or one with a way of cloning that keeps what it learned."""
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        if not hasattr(part, "get_params") or isinstance(part, type):
            continue
        if any(key.endswith("_") and not key.startswith("_") for key in vars(part)):
            where = f"its part `{name}`" if name else "it"
            raise ModelUnusable(
                f"{type(estimator).__name__} cannot be trained anew: {where} ({type(part).__name__}) keeps what it learned "
                "when cloned; name a training function in the split manifest instead"
            )
