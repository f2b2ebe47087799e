"""The port to a logged model: asked about labelled rows, it answers with observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations


@dataclass(frozen=True)
class ModelNotes:
    """What a reader of the card should know of the model as it was loaded.

    ``flavour``: which MLflow flavour was opened. ``holds_training_rows``: why the artifact itself contains records, or None.
    ``library_versions``: recorded at training and found here. ``warnings``: sentences for the card (version drift, margin-based scores, …).
    ``parameters``: count of learned parameters where countable.
    """

    flavour: str
    holds_training_rows: str | None = None
    library_versions: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()
    parameters: int | None = None


class LoadedModel(Protocol):
    """A model that can be asked about rows."""

    notes: ModelNotes

    @property
    def input_columns(self) -> tuple[str, ...] | None:
        """The columns that the model takes, in order, or None where only their number is known; they tell the label apart."""

    def observe(self, features: pd.DataFrame, labels: pd.Series) -> Observations:
        """Ask the model about n labelled rows; ``features`` (n, d) without the label, ``labels`` (n,). ModelUnusable where it fails."""

    def recipe(self) -> object | None:
        """Give an unfitted estimator with the model's own parameters for reference models, or None when it cannot be refitted."""


class ModelLoader(Protocol):
    """One flavour's way of opening a model folder."""

    flavour: str

    def load(self, folder: Path) -> LoadedModel:
        """Open the model in ``folder``; ModelUnusable with the way out where that fails."""
