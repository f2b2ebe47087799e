"""The real registry port: MLflow's tracking server and model registry, through MLflow's own client."""

from __future__ import annotations

import json
import posixpath
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import PERMISSION_DENIED, ErrorCode

from mlflow_privacy_gate.errors import CouldNotLook, PromotionRefused, UsageError
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.registry import mlflow_private, model_folder
from mlflow_privacy_gate.registry.first_use import opening
from mlflow_privacy_gate.registry.ledger.location import reachable_ledger
from mlflow_privacy_gate.registry.listing import every_version
from mlflow_privacy_gate.registry.resolution import resolve
from mlflow_privacy_gate.registry.stores import said_without_credentials
from mlflow_privacy_gate.registry.translation import asking
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, DATASET_MODEL_TAG, VERDICT_TAG

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput as MlflowDatasetInput

    from mlflow_privacy_gate.evidence.ledger import KnownTests
    from mlflow_privacy_gate.policy.model import Policy
    from mlflow_privacy_gate.registry._interface import Publication

_T = TypeVar("_T")
_CONTEXT_TAG = "mlflow.data.context"


class MlflowRegistry:
    """The :class:`~mlflow_privacy_gate.registry._interface.Registry` port on MLflow; URIs default to MLflow's own settings."""

    def __init__(self, tracking_uri: str | None = None, registry_uri: str | None = None) -> None:
        self._tracking_uri = tracking_uri or mlflow.get_tracking_uri()
        self._registry_uri = registry_uri or _default_registry_uri(self._tracking_uri)
        self._opened: MlflowClient | None = None

    @property
    def client(self) -> MlflowClient:
        """MLflow's client for these two stores (opened on first use; opening an unusable store is translated)."""
        if self._opened is None:
            self._opened = self._ask(self._open)
        return self._opened

    def _open(self) -> MlflowClient:
        """Open both stores, which makes the tables of a new database."""
        with opening(self._tracking_uri, self._registry_uri):
            client = MlflowClient(tracking_uri=self._tracking_uri, registry_uri=self._registry_uri)
            if not self._registry_uri.startswith(("http:", "https:")):
                mlflow_private.open_registry(client)
        return client

    def describe(self) -> str:
        """Say which tracking server and registry are asked, without credentials."""
        tracking = said_without_credentials(self._tracking_uri)
        registry = said_without_credentials(self._registry_uri)
        return f"MLflow at {tracking}" if tracking == registry else f"MLflow at {tracking} (registry {registry})"

    def resolve(self, model_uri: str) -> ResolvedModel:
        """Resolve any model URI once."""
        return resolve(model_uri, self.client, self.describe())

    def open_model(self, model: ResolvedModel) -> AbstractContextManager[Path]:
        """Give the folder with the model's exact bytes, in place or downloaded."""
        return model_folder.opened(model.artifact_uri, tracking_uri=self._tracking_uri, where=self.describe())

    def dataset_inputs(self, model: ResolvedModel) -> tuple[DatasetInput, ...]:
        """List the dataset inputs of the model's run; empty where there is no run."""
        run_id = model.run_id
        if run_id is None:
            return ()
        run = self._ask(lambda: self.client.get_run(run_id))
        return tuple(_dataset_input(given) for given in (run.inputs.dataset_inputs if run.inputs else ()))

    def logged_models(self, model: ResolvedModel) -> tuple[str, ...]:
        """List the ids of the models that the model's run logged, sorted; empty where there is no run."""
        run_id = model.run_id
        if run_id is None:
            return ()
        run = self._ask(lambda: self.client.get_run(run_id))
        return tuple(sorted({given.model_id for given in (run.outputs.model_outputs if run.outputs else ())}))

    def read_artifact(self, model: ResolvedModel, path: str) -> bytes | None:
        """Read one artifact of the model's run, else of the logged model; None where neither has it."""
        run_id, model_id = model.run_id, model.model_id
        folder = posixpath.dirname(path) or None
        if run_id is not None:
            listed = self._ask(lambda: self.client.list_artifacts(run_id, folder))
            if any(item.path == path and not item.is_dir for item in listed):
                return self._read(f"runs:/{run_id}/{path}")
        if model_id is not None:
            listed = self._ask(lambda: self.client.list_logged_model_artifacts(model_id, folder))
            if any(item.path == path and not item.is_dir for item in listed):
                # Not models:/…, for which MLflow asks the process-wide tracking server, whichever one was meant here.
                return self._read(
                    f"{self._ask(lambda: self.client.get_logged_model(model_id)).artifact_location}/{path}"
                )
        return None

    def download_artifacts(self, artifact_uri: str) -> AbstractContextManager[Path]:
        """Give a local copy of any MLflow artifact, deleted afterwards."""
        return model_folder.downloaded(artifact_uri, tracking_uri=self._tracking_uri, where=self.describe())

    def withdraw(self, model: ResolvedModel) -> None:
        """Take back an earlier check's verdict, then its attestation; nothing to do for a model that is not registered."""
        if model.name is None or model.version is None:
            return
        name, version = model.name, model.version
        present = self._ask(lambda: self.client.get_model_version(name, version)).tags
        for tag in (VERDICT_TAG, ATTESTATION_TAG):
            if tag in present:
                self._ask(partial(self.client.delete_model_version_tag, name, version, tag))

    def publish(self, model: ResolvedModel, publication: Publication) -> None:
        """Write artifacts, metrics, description, tags, and last of all the verdict; a model without a run gets no artifacts or metrics."""
        if model.run_id is not None:
            self._write_artifacts(model.run_id, publication.artifacts)
            self._write_metrics(model.run_id, model.model_id, publication)
        if model.name is None or model.version is None:
            return
        name, version, description = model.name, model.version, publication.description
        if description is not None:
            self._ask(lambda: self.client.update_model_version(name, version, description))
        for key, value in publication.tags.items():
            if key != VERDICT_TAG:
                self._ask(partial(self.client.set_model_version_tag, name, version, key, value))
        self._ask(lambda: self.client.set_model_version_tag(name, version, VERDICT_TAG, publication.verdict))

    def annotate(self, model: ResolvedModel, *, artifacts: Mapping[str, bytes], tags: Mapping[str, str]) -> None:
        """Add artifacts to the model's run, then tags to its version."""
        if model.run_id is not None:
            self._write_artifacts(model.run_id, artifacts)
        if model.name is None or model.version is None:
            return
        for key, value in tags.items():
            self._ask(partial(self.client.set_model_version_tag, model.name, model.version, key, value))

    def write_card(self, model: ResolvedModel, *, path: str, card: bytes, description: str | None) -> None:
        """Write a card to the run's artifacts, then the version's description."""
        if model.run_id is not None:
            self._write_artifacts(model.run_id, {path: card})
        if model.name is not None and model.version is not None and description is not None:
            self._ask(partial(self.client.update_model_version, model.name, model.version, description))

    def versions(self, name: str | None = None) -> Iterator[ResolvedModel]:
        """Give every version of every registered model (or of one), newest first; prompts are left out."""
        return every_version(self.client, self.describe(), name)

    def known_tests(self, model_digest: str, policy: Policy) -> KnownTests | None:
        """Give every test of these bytes that the ledger holds, where its database or file can be read from here."""
        try:
            ledger = reachable_ledger(self._registry_uri, policy)
            return None if ledger is None else ledger.tests_of(model_digest)
        except CouldNotLook:  # nothing is known then; the store, which decides, looks for itself
            return None

    def set_stage(self, model: ResolvedModel, stage: str) -> None:
        """Move a version to a stage."""
        name, version = _registered(model)
        self._promote(lambda: mlflow_private.transition_stage(self.client, name, version, stage))

    def set_alias(self, model: ResolvedModel, alias: str) -> None:
        """Point an alias at a version."""
        name, version = _registered(model)
        self._promote(lambda: self.client.set_registered_model_alias(name, alias, version))

    def _promote(self, write: Callable[[], object]) -> None:
        try:
            write()
        except MlflowException as exc:
            if exc.error_code == ErrorCode.Name(PERMISSION_DENIED):
                raise PromotionRefused(exc.message) from exc
            self._ask(partial(_raise, exc))  # translated as any other answer

    def _write_artifacts(self, run_id: str, artifacts: Mapping[str, bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="privacy-gate-") as temporary:
            for path, content in artifacts.items():
                folder, name = posixpath.split(path)
                local = Path(temporary) / name
                local.write_bytes(content)
                self._ask(partial(self.client.log_artifact, run_id, str(local), folder or None))

    def _write_metrics(self, run_id: str, model_id: str | None, publication: Publication) -> None:
        now = int(time.time() * 1000)
        metrics = [
            Metric(key, value, now, 0, model_id=model_id, run_id=run_id) for key, value in publication.metrics.items()
        ]
        if metrics:
            self._ask(lambda: self.client.log_batch(run_id, metrics=metrics))

    def _read(self, artifact_uri: str) -> bytes:
        with self.download_artifacts(artifact_uri) as path:
            return path.read_bytes()

    def _ask(self, question: Callable[[], _T]) -> _T:
        return asking(
            self.describe(), question, missing=lambda message: CouldNotLook(f"{self.describe()} says: {message}")
        )


def _default_registry_uri(tracking_uri: str) -> str:
    """Return the registry MLflow would use: the one that was set, else the tracking server's own."""
    set_or_derived = mlflow.get_registry_uri()
    return tracking_uri if set_or_derived == mlflow.get_tracking_uri() else set_or_derived


def _dataset_input(given: MlflowDatasetInput) -> DatasetInput:
    tags = {tag.key: tag.value for tag in given.tags}
    profile = json.loads(given.dataset.profile) if given.dataset.profile else {}
    rows = profile.get("num_rows") if isinstance(profile, dict) else None
    return DatasetInput(
        name=given.dataset.name,
        digest=given.dataset.digest,
        context=tags.get(_CONTEXT_TAG),
        source_type=given.dataset.source_type,
        source=given.dataset.source,
        schema=given.dataset.schema,
        num_rows=rows if isinstance(rows, int) else None,
        model_id=tags.get(DATASET_MODEL_TAG),
    )


def _registered(model: ResolvedModel) -> tuple[str, str]:
    if model.name is None or model.version is None:
        raise UsageError(f"{model.uri} is not registered, so it cannot be promoted; register it first")
    return model.name, model.version


def _raise(error: MlflowException) -> None:
    raise error
