"""The port to a logged model: asked about labelled rows, it answers with observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlflow_privacy_gate.attacks.recipe_changes import NO_CHANGES, Changes

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.attacks.recipe_changes import Parameter
    from mlflow_privacy_gate.attacks.references import References


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

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The numeric parameters of the model's recipe as ``step__parameter``; empty where it cannot be trained again."""

    def observe(self, features: pd.DataFrame, labels: pd.Series) -> Observations:
        """Ask the model about n labelled rows; ``features`` (n, d) without the label, ``labels`` (n,). ModelUnusable where it fails."""

    def references(
        self,
        features: pd.DataFrame,
        labels: pd.Series,
        *,
        count: int,
        seed: int,
        keep_posteriors: bool = False,
        changes: Changes = NO_CHANGES,
        progress: Callable[[int, int], None] | None = None,
    ) -> References | None:
        """Train ``count`` models by this model's own recipe, each on a random half of the n rows; None when it cannot be trained again.

        ``features`` (n, d) and ``labels`` (n,): members and non-members together, all labels known to the model. ``changes``: other values
        for some of ``parameters``. ModelUnusable names the first reference model that failed.
        """

    def refit(
        self, features: pd.DataFrame, labels: pd.Series, *, train_rows: int, seed: int, changes: Changes = NO_CHANGES
    ) -> Observations | None:
        """Train the recipe anew on the first ``train_rows`` rows and ask that model about all n; None when it cannot be trained again.

        ``features`` (n, d) and ``labels`` (n,), all known to this model; a row whose label the new model did not meet is left out of the
        answer. ``changes``: other values for some of ``parameters``. ModelUnusable where the training or the answer fails.
        """

    def reproduced(self, features: pd.DataFrame, labels: pd.Series, *, train_rows: int) -> bool:
        """Whether training again on the first ``train_rows`` rows, in order and with the logged seeds, gives this model's own answers.

        All n rows are asked about: an overfitted model says the same of its own rows whatever it was trained on besides.
        """


class ModelLoader(Protocol):
    """One flavour's way of opening a model folder."""

    flavour: str

    def load(self, folder: Path) -> LoadedModel:
        """Open the model in ``folder``; ModelUnusable with the way out where that fails."""
