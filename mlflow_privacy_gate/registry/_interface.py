"""The port to a model registry and its artifacts, as the use cases need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel

if TYPE_CHECKING:
    from mlflow_privacy_gate.policy.model import Policy


@dataclass(frozen=True)
class Publication:
    """Everything one check writes, in the order in which it is written; the verdict tag comes last."""

    artifacts: Mapping[str, bytes]
    metrics: Mapping[str, float]
    description: str | None
    tags: Mapping[str, str]
    verdict: str


class Registry(Protocol):
    """What the use cases ask of MLflow. Every method raises CouldNotLook when the server or store cannot be reached."""

    def resolve(self, model_uri: str) -> ResolvedModel:
        """Resolve any model URI to name, version, model id, run and artifact location; UsageError when it names nothing."""

    def open_model(self, model: ResolvedModel) -> AbstractContextManager[Path]:
        """Give the folder with the model's exact bytes, read-only; a download is deleted afterwards."""

    def dataset_inputs(self, model: ResolvedModel) -> tuple[DatasetInput, ...]:
        """List the dataset inputs of the model's run; empty where there is no run."""

    def logged_models(self, model: ResolvedModel) -> tuple[str, ...]:
        """List the ids of the models that the model's run logged, sorted; empty where there is no run."""

    def read_artifact(self, model: ResolvedModel, path: str) -> bytes | None:
        """Read one artifact of the model's run (or of the logged model), or None where there is none."""

    def download_artifacts(self, artifact_uri: str) -> AbstractContextManager[Path]:
        """Give a local copy of any MLflow artifact (``runs:/``, ``mlflow-artifacts:/``, a path); deleted afterwards."""

    def withdraw(self, model: ResolvedModel) -> None:
        """Take back the verdict of an earlier check, before anything of a new one is written."""

    def publish(self, model: ResolvedModel, publication: Publication) -> None:
        """Write a check's results; whenever it stops half-way, no pass is left behind."""

    def annotate(self, model: ResolvedModel, *, artifacts: Mapping[str, bytes], tags: Mapping[str, str]) -> None:
        """Add artifacts to the model's run, then tags to its version; nothing of a check is touched. What has no place is left out."""

    def write_card(self, model: ResolvedModel, *, path: str, card: bytes, description: str | None) -> None:
        """Write a card to ``path`` among the run's artifacts, then the version's description; what has no place is left out."""

    def versions(self, name: str | None = None) -> Iterator[ResolvedModel]:
        """Give every version of every registered model (or of one), newest first, with stages and aliases; prompts are left out."""

    def known_tests(self, model_digest: str, policy: Policy) -> KnownTests | None:
        """Give every test of these bytes that the registry's ledger holds; None where the ledger cannot be read from here."""

    def set_stage(self, model: ResolvedModel, stage: str) -> None:
        """Move a version to a stage; PromotionRefused with the registry's own words where it refuses."""

    def set_alias(self, model: ResolvedModel, alias: str) -> None:
        """Point an alias at a version; PromotionRefused with the registry's own words where it refuses."""

    def describe(self) -> str:
        """Say which tracking server and registry are asked, without credentials."""
