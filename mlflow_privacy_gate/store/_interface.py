"""What the gate asks of the registry store it guards: the little of MLflow's store that it reads and undoes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel


class RegistryStore(Protocol):
    """An MLflow registry store, as far as the gate looks at it; errors are MLflow's own."""

    def get_registered_model(self, name: str) -> RegisteredModel:
        """Return a registered model."""

    def get_model_version(self, name: str, version: str) -> ModelVersion:
        """Return a version with its tags and immutable source."""

    def get_model_version_download_uri(self, name: str, version: str) -> str:
        """Return where clients load a version's bytes from."""

    def get_latest_versions(self, name: str) -> Sequence[ModelVersion]:
        """Return the newest version in each stage."""

    def delete_model_version(self, name: str, version: str) -> None:
        """Delete a version."""
