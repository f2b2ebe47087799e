"""What is read from MLflow and written to it, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Dataset, InputTag
from mlflow.entities import DatasetInput as MlflowDatasetInput
from mlflow.exceptions import MlflowException
from mlflow_home import MlflowHome
from registry_seed import seed_version

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.registry import MlflowRegistry, Publication
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG

PUBLICATION = Publication(
    artifacts={"privacy_gate/attestation.dsse.json": b"{}", "privacy_gate/report.html": b"<p>"},
    metrics={"privacy_gate/attack_auc": 0.5123456789},
    description="words",
    tags={"privacy_gate.attack_auc": "0.5123", ATTESTATION_TAG: "e30="},
    verdict="pass",
)


class StoppedWrite(BaseException):
    """Stands for a process that dies."""


@pytest.fixture
def client(mlflow_home: MlflowHome) -> MlflowClient:
    return MlflowClient(mlflow_home.uri, mlflow_home.uri)


@pytest.fixture
def registry(mlflow_home: MlflowHome) -> MlflowRegistry:
    return MlflowRegistry(mlflow_home.uri, mlflow_home.uri)


def test_publishing_writes_artifacts_metrics_description_and_tags(
    client: MlflowClient, registry: MlflowRegistry
) -> None:
    seeded = seed_version(client, "published")
    model = registry.resolve("models:/published/1")
    registry.publish(model, PUBLICATION)
    stored = client.get_model_version("published", "1")
    assert stored.description == "words"
    assert stored.tags == {**PUBLICATION.tags, VERDICT_TAG: "pass"}
    assert client.get_run(seeded.run_id).data.metrics == PUBLICATION.metrics
    for path, content in PUBLICATION.artifacts.items():
        assert registry.read_artifact(model, path) == content
    with registry.open_model(model) as folder:
        assert model_digest(folder) == seeded.digest


class DyingClient:
    """MLflow's client that dies before its ``after``-th write; reads pass."""

    def __init__(self, client: MlflowClient, after: int) -> None:
        self._client = client
        self.left = after

    def __getattr__(self, name: str) -> object:
        if name.startswith(("log_", "set_", "update_", "delete_")):
            if self.left == 0:
                raise StoppedWrite(name)
            self.left -= 1
        return getattr(self._client, name)


@pytest.mark.parametrize("writes", range(10))
def test_a_check_that_dies_at_any_write_leaves_no_pass(
    client: MlflowClient,
    mlflow_home: MlflowHome,
    writes: int,
) -> None:
    name = f"dying-{writes}"
    seed_version(client, name, tags={VERDICT_TAG: "pass", ATTESTATION_TAG: "old"})
    registry = MlflowRegistry(mlflow_home.uri, mlflow_home.uri)
    model = registry.resolve(f"models:/{name}/1")
    dying = DyingClient(client, writes)
    registry._opened = dying  # type: ignore[assignment]
    failed = False
    try:
        registry.withdraw(model)
        registry.publish(model, PUBLICATION)
    except StoppedWrite:
        failed = True
    tags = client.get_model_version(name, "1").tags
    # Two are taken back; two artifacts, metrics, description, two tags and the verdict are written.
    assert failed == (writes < 9)
    if failed and writes > 0:
        assert VERDICT_TAG not in tags
    if failed and writes > 1:
        assert tags.get(ATTESTATION_TAG) in {None, PUBLICATION.tags[ATTESTATION_TAG]}


def test_a_model_that_is_not_registered_is_published_to_its_run_only(
    client: MlflowClient, registry: MlflowRegistry
) -> None:
    seeded = seed_version(client, "untouched-by-run")
    model = registry.resolve(f"runs:/{seeded.run_id}/model")
    registry.withdraw(model)
    registry.publish(model, PUBLICATION)
    assert client.get_run(seeded.run_id).data.metrics == PUBLICATION.metrics
    assert client.get_model_version("untouched-by-run", "1").tags == {}


def test_dataset_inputs_are_listed_as_mlflow_recorded_them(client: MlflowClient, registry: MlflowRegistry) -> None:
    seeded = seed_version(client, "with-inputs")
    dataset = Dataset("rows", "0a1b2c3d", "local", '{"uri": "/rows.csv"}', schema="{}", profile='{"num_rows": 7}')
    tags = [InputTag("mlflow.data.context", "training"), InputTag("privacy_gate.model_id", "m-1")]
    client.log_inputs(seeded.run_id, [MlflowDatasetInput(dataset, tags)])
    assert registry.dataset_inputs(registry.resolve("models:/with-inputs/1")) == (
        DatasetInput("rows", "0a1b2c3d", "training", "local", '{"uri": "/rows.csv"}', "{}", 7, "m-1"),
    )


def test_a_model_without_a_run_has_no_inputs_and_no_artifacts(registry: MlflowRegistry, tmp_path: Path) -> None:
    model = ResolvedModel(uri="models:/x/1", artifact_uri=str(tmp_path))
    assert registry.dataset_inputs(model) == ()
    assert registry.read_artifact(model, "privacy_gate/splits.json") is None


def test_an_artifact_that_is_not_there_is_none(client: MlflowClient, registry: MlflowRegistry) -> None:
    seed_version(client, "no-manifest")
    assert registry.read_artifact(registry.resolve("models:/no-manifest/1"), "privacy_gate/splits.json") is None


def test_a_local_model_is_opened_in_place_and_gains_no_file(client: MlflowClient, registry: MlflowRegistry) -> None:
    seed_version(client, "in-place")
    model = registry.resolve("models:/in-place/1")
    with registry.open_model(model) as folder:
        assert sorted(file.name for file in folder.iterdir()) == ["MLmodel", "weights.bin"]
    assert folder.is_dir()


def test_a_folder_that_is_not_on_this_machine_could_not_be_looked_at(registry: MlflowRegistry, tmp_path: Path) -> None:
    model = ResolvedModel(uri="models:/x/1", artifact_uri=str(tmp_path / "elsewhere"))
    with pytest.raises(CouldNotLook, match="not on this machine"), registry.open_model(model):
        pass


def test_a_download_is_deleted_afterwards(client: MlflowClient, registry: MlflowRegistry) -> None:
    seeded = seed_version(client, "temporary")
    with registry.download_artifacts(f"runs:/{seeded.run_id}/model") as copy:
        assert (copy / "weights.bin").read_bytes() == b"weights"
    assert not copy.exists()


def test_a_file_store_is_refused_in_mlflows_own_words(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="file") as caught:
        MlflowRegistry(str(tmp_path / "mlruns")).resolve("models:/x/1")
    assert not isinstance(caught.value, MlflowException)
    assert getattr(caught.value, "exit_code", None) == 2


def test_a_store_is_named_without_its_credentials() -> None:
    registry = MlflowRegistry(
        "http://127.0.0.1:5000", "privacy-gate:postgresql+psycopg2://user:secret@db:5432/ml?sslkey=x"
    )
    said = registry.describe()
    assert said == "MLflow at http://127.0.0.1:5000 (registry privacy-gate:postgresql+psycopg2://db:5432/ml)"
