"""Registered versions for tests: small model folders of known bytes, logged and registered through MLflow's own client."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.evidence.model_digest import model_digest


@dataclass(frozen=True)
class SeededVersion:
    """A registered version, the run it came from, where its bytes lie and their digest."""

    name: str
    version: str
    run_id: str
    source: str
    digest: str


def seed_version(
    client: MlflowClient,
    name: str,
    content: bytes = b"weights",
    tags: Mapping[str, str] | None = None,
    experiment: str = "0",
) -> SeededVersion:
    """Log a folder with an MLmodel file and ``content``, and register it as the next version of ``name``."""
    run_id, source, digest = log_folder(client, content, experiment)
    if not exists(client, name):
        client.create_registered_model(name)
    created = client.create_model_version(name, source, run_id=run_id, tags=dict(tags or {}))
    return SeededVersion(name, str(created.version), run_id, source, digest)


def log_folder(client: MlflowClient, content: bytes, experiment: str = "0") -> tuple[str, str, str]:
    """Log a model folder to a new run; return run id, location and digest."""
    run = client.create_run(experiment)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
        (folder / "weights.bin").write_bytes(content)
        digest = model_digest(folder)
        client.log_artifacts(run.info.run_id, str(folder), "model")
    return run.info.run_id, f"{run.info.artifact_uri}/model", digest


def exists(client: MlflowClient, name: str) -> bool:
    """Whether a registered model of that name is there."""
    try:
        client.get_registered_model(name)
    except MlflowException as exc:
        if exc.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return False
    return True


def versions(client: MlflowClient, name: str) -> list[str]:
    """List the numbers of a model's versions that are not deleted; empty where there is no such model."""
    if not exists(client, name):
        return []
    return sorted(str(found.version) for found in client.search_model_versions(f"name='{name}'"))
