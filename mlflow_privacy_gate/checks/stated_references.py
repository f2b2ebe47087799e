"""Reference models on the author's word: trained by a function that the split manifest names, or logged before with their masks.

The function is the author's code and runs in this very process, with whatever this process may do; a policy that admits
``training_function`` admits that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlflow_privacy_gate.attacks.labels import label_values
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.recipe import FunctionRecipe
from mlflow_privacy_gate.attacks.references import References, clipped_loss
from mlflow_privacy_gate.attacks.refitting import fit_references, reproduce
from mlflow_privacy_gate.checks.observing import Pool, inputs
from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable
from mlflow_privacy_gate.vocabulary import ReferenceOrigin

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.splits._interface import ReferenceModels, Splits, TrainingFunction

OpenLogged: TypeAlias = "Callable[[str], AbstractContextManager[LoadedModel]]"

NOTES: Mapping[ReferenceOrigin, str] = {
    ReferenceOrigin.TRAINING_FUNCTION: (
        "The reference models were trained by the function {name}: that the logged model was trained by it is its author's word."
    ),
    ReferenceOrigin.LOGGED_MODELS: (
        "The reference models are {count} models that were logged before: how they were trained, and on which rows, is their author's word."
    ),
}


def from_function(
    function: TrainingFunction,
    model: LoadedModel,
    pool: Pool,
    splits: Splits,
    *,
    count: int,
    seed: int,
    keep_posteriors: bool,
    progress: Callable[[int, int], None],
) -> References:
    """Train ``count`` references by the author's function, each on a random half of the pool.

    ModelUnusable where the function cannot be imported here, or names the first reference that it could not train.
    """
    return fit_references(
        FunctionRecipe(_imported(function.name)),
        inputs(model, pool.features, splits),
        pool.labels,
        label_values(pool.labels).unique().sort_values(),
        count=count,
        seed=seed,
        keep_posteriors=keep_posteriors,
        progress=progress,
    )


def function_reproduces(function: TrainingFunction, model: LoadedModel, splits: Splits) -> bool:
    """Whether the function, run on all logged members in their order with the logged seed, gives the logged model's probabilities."""
    together, m = as_logged(splits), len(splits.members.frame)
    features, labels = inputs(model, together, splits), together[splits.target]
    said = model.observe(features, labels)
    if function.seed is None or said.probabilities is None or not said.kept[:m].all():
        return False
    columns, classes = _known_columns(said, labels.to_numpy()[said.kept])
    return reproduce(
        FunctionRecipe(_imported(function.name)),
        features.iloc[:m],
        labels.iloc[:m],
        features[said.kept],
        said.probabilities[:, columns],
        classes,
        seed=function.seed,
    ).reproduced


def as_logged(splits: Splits) -> pd.DataFrame:
    """Give both sides' rows in the order they were logged in, members first: a model hangs on the order of its training rows."""
    import pandas as pd

    together: pd.DataFrame = pd.concat([splits.members.frame, splits.non_members.frame], ignore_index=True)
    return together


def from_logged(
    logged: ReferenceModels,
    pool: Pool,
    splits: Splits,
    *,
    open_logged: OpenLogged,
    keep_posteriors: bool,
    progress: Callable[[int, int], None],
) -> References:
    """Ask models that were logged before about the pool, one after the other.

    ModelUnusable names the first that cannot be asked, or that is the model under test itself; SplitsUnavailable where the masks cannot
    be had.
    """
    in_mask = _in_mask(logged, pool, splits)
    return References.from_observations(
        _answers(logged, pool, splits, open_logged, progress),
        in_mask,
        origin=ReferenceOrigin.LOGGED_MODELS,
        keep_posteriors=keep_posteriors,
    )


def likelihoods_from_logged(
    logged: ReferenceModels,
    pool: Pool,
    splits: Splits,
    *,
    open_logged: OpenLogged,
    progress: Callable[[int, int], None],
) -> Observations:
    """Ask density models that were logged before about the pool, and put their log-likelihoods beside the tested model's own.

    Errors as for :func:`from_logged`.
    """
    in_mask = _in_mask(logged, pool, splits)
    said = [_compared(one, pool.observations.kind) for one in _answers(logged, pool, splits, open_logged, progress)]
    return Observations.from_log_likelihood(pool.observations.log_likelihood, np.stack(said), in_mask=in_mask)


def _in_mask(logged: ReferenceModels, pool: Pool, splits: Splits) -> BoolArray:
    """Give which logged model was trained on which row of the pool, (K, n)."""
    masks = logged.trained_on()
    columns = np.where(pool.is_member, pool.at.by_content, pool.at.by_content + len(splits.members.frame))
    return np.asarray(masks[:, columns], dtype=np.bool_)


def _answers(
    logged: ReferenceModels,
    pool: Pool,
    splits: Splits,
    open_logged: OpenLogged,
    progress: Callable[[int, int], None],
) -> Iterator[Observations]:
    target = pool.observations
    for done, uri in enumerate(logged.uris, 1):
        try:
            with open_logged(uri) as reference:
                said = reference.observe(inputs(reference, pool.features, splits), pool.labels)
            itself = not said.unknown_labels and np.array_equal(
                _compared(said, target.kind), _compared(target, target.kind)
            )
        except CouldNotJudge as exc:
            raise ModelUnusable(f"the reference model {uri} cannot be used: {exc.message}") from exc
        if itself:
            raise ModelUnusable(
                f"the reference model {uri} gives the very answers of the model under test, which is no reference for itself"
            )
        progress(done, len(logged.uris))
        yield said


def _compared(said: Observations, kind: str) -> FloatArray:
    if said.kind != kind:
        raise ModelUnusable(f"it is a {said.kind} model, the model under test a {kind} model")
    return said.log_likelihood if said.log_likelihood is not None else clipped_loss(said)


def _imported(name: str) -> Callable[[Any, Any, int], Any]:
    module, _, attribute = name.partition(":")
    try:
        function: Callable[[Any, Any, int], Any] = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as exc:  # importing a module runs it, and it may raise anything
        raise ModelUnusable(
            f"the training function {name} cannot be imported here ({type(exc).__name__}: {exc}); "
            "install the package that holds it where the check runs"
        ) from exc
    if not callable(function):
        raise ModelUnusable(f"the training function {name} is no function but {type(function).__name__}")
    return function


def _known_columns(said: Observations, labels: np.ndarray[Any, Any]) -> tuple[IntArray, np.ndarray[Any, Any]]:
    """Return the columns of the model's answer whose class some row has, and those classes."""
    assert said.true_column is not None  # probabilities come with it
    columns, first = np.unique(said.true_column, return_index=True)
    return columns, labels[first]
