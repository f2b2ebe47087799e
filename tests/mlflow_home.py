"""A real MLflow for a test: tracking and registry on SQLite, artifacts on disk, everything put back afterwards.

Making an SQLite store takes seconds, so one is made for the whole test run; each test gets an experiment of its own in it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest


@dataclass(frozen=True)
class MlflowHome:
    """``uri``: of the tracking store and registry alike. ``artifacts``: where this test's experiment keeps its artifacts."""

    uri: str
    experiment_id: str
    artifacts: Path


@pytest.fixture(scope="session")
def mlflow_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


@pytest.fixture
def mlflow_home(mlflow_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowHome]:
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    mlflow.set_tracking_uri(mlflow_store)
    mlflow.set_registry_uri(mlflow_store)
    artifacts = tmp_path / "artifacts"
    experiment_id = mlflow.create_experiment(uuid.uuid4().hex, artifact_location=artifacts.as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment_id)  # what set_experiment sets cannot be unset
    try:
        yield MlflowHome(mlflow_store, experiment_id, artifacts)
    finally:
        while mlflow.active_run() is not None:
            mlflow.end_run()
        mlflow.set_tracking_uri(before[0])
        mlflow.set_registry_uri(before[1])
