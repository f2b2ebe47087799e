"""The port to members and non-members, and what is known of where they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.vocabulary import SplitOrigin

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pandas as pd

    from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel


@dataclass(frozen=True)
class Split:
    """One side: the labelled rows (features and target, whole), where they came from, and the logged digest if any.

    ``digest`` is this project's own row-set digest of ``frame``. ``mlflow_name`` and ``mlflow_digest`` are MLflow's record of the dataset.
    """

    frame: pd.DataFrame
    digest: str
    source: str | None = None
    mlflow_name: str | None = None
    mlflow_digest: str | None = None


@dataclass(frozen=True)
class TrainingFunction:
    """The author's training code: ``name`` is ``package.module:function``, called with (features, labels, seed).

    ``seed``: what it was called with for the logged model, None where that was not said.
    """

    name: str
    seed: int | None = None


@dataclass(frozen=True)
class ReferenceModels:
    """K models that were logged before, by ``uris``. ``trained_on()`` reads which rows each was trained on.

    It gives (K, m + n) bool, members first, each side in the order of its content; SplitsUnavailable where it cannot be had.
    """

    uris: tuple[str, ...]
    trained_on: Callable[[], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Splits:
    """Members and non-members with their target column, as found.

    ``as_logged``: True when both sides equal what was logged, False when either differs (``as_logged_note`` says how), None when
    nothing was logged to compare with. ``notes``: sentences for the card (how the target was found, which contexts were chosen).
    ``training_function`` and ``reference_models`` are the author's word on how to come by reference models, None where nothing was said.
    """

    members: Split
    non_members: Split
    target: str
    origin: SplitOrigin
    group: str | None = None
    manifest_sha256: str | None = None
    as_logged: bool | None = None
    as_logged_note: str | None = None
    used_for_tuning: bool | None = None
    notes: tuple[str, ...] = ()
    training_function: TrainingFunction | None = None
    reference_models: ReferenceModels | None = None


class LoggedArtifacts(Protocol):
    """The little that a split source needs of a tracking server; the real registry port gives it."""

    def dataset_inputs(self, model: ResolvedModel) -> tuple[DatasetInput, ...]:
        """List the dataset inputs of the model's run."""

    def logged_models(self, model: ResolvedModel) -> tuple[str, ...]:
        """List the ids of the models that the model's run logged."""

    def read_artifact(self, model: ResolvedModel, path: str) -> bytes | None:
        """Read one artifact of the model's run, or None where there is none."""

    def download_artifacts(self, artifact_uri: str) -> AbstractContextManager[Path]:
        """Give a local copy of any MLflow artifact; deleted afterwards."""


class SplitSource(Protocol):
    """One way of finding the splits of a model."""

    origin: SplitOrigin

    def find(self, model: ResolvedModel) -> Splits | None:
        """Give the splits, None when this source knows none, SplitsUnavailable when it knows them but cannot have them whole."""
