"""The gated store inside a client, as ``mlflow.set_registry_uri("privacy-gate:sqlite:///…")`` opens it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence, write_policy
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from registry_seed import SeededVersion, seed_version, versions

from mlflow_privacy_gate.store import open_gated_store
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = pytest.mark.filterwarnings("ignore:.*transition_model_version_stage.*:FutureWarning")

SIGNER = fresh_signer()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVACY_GATE_POLICY", raising=False)
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.fixture
def client(database: str) -> MlflowClient:
    return MlflowClient(tracking_uri=database, registry_uri=f"privacy-gate:{database}")


@pytest.fixture
def globally_gated(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLFLOW_REGISTRY_URI", "")  # so that what MLflow sets here is taken back
    tracking, registry = mlflow.get_tracking_uri(), mlflow.tracking._model_registry.utils._registry_uri
    mlflow.set_tracking_uri(database)
    mlflow.set_registry_uri(f"privacy-gate:{database}")
    yield
    mlflow.set_tracking_uri(tracking)
    mlflow.set_registry_uri(registry or "")


def use_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str = "") -> Path:
    path = write_policy(tmp_path / "policy.yaml", SIGNER, text)
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(path))
    return path


def checked(client: MlflowClient, name: str = "credit", **changes: Any) -> SeededVersion:
    seeded = seed_version(client, name)
    tag = attestation(passing_evidence(seeded.digest, **changes), SIGNER)
    client.set_model_version_tag(name, seeded.version, ATTESTATION_TAG, tag)
    return seeded


def refusal(client: MlflowClient, seeded: SeededVersion, alias: str = "champion") -> str:
    with pytest.raises(MlflowException) as caught:
        client.set_registered_model_alias(seeded.name, alias, seeded.version)
    assert caught.value.error_code == "PERMISSION_DENIED"
    return str(caught.value.message)


@pytest.mark.usefixtures("globally_gated")
def test_set_registry_uri_is_enough_to_guard_a_client() -> None:
    seeded = seed_version(MlflowClient(), "credit")
    assert "PG001" in refusal(MlflowClient(), seeded)


def test_the_built_in_policy_refuses_and_names_init(client: MlflowClient) -> None:
    text = refusal(client, checked(client))
    assert "PG003" in text
    assert "mlflow-privacy-gate init" in text


def test_the_working_folders_policy_is_never_read(client: MlflowClient, tmp_path: Path) -> None:
    write_policy(tmp_path / "privacy-gate.yaml", SIGNER, "mode: off")
    assert "PG003" in refusal(client, checked(client))


def test_a_passing_version_is_promoted_under_a_policy_that_trusts_its_tester(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_policy(monkeypatch, tmp_path)
    seeded = checked(client)
    client.set_registered_model_alias("credit", "champion", seeded.version)
    client.transition_model_version_stage("credit", seeded.version, "Production")
    assert str(client.get_model_version_by_alias("credit", "champion").version) == seeded.version


def test_mode_warn_says_what_would_have_been_refused_and_allows(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_policy(monkeypatch, tmp_path, "mode: warn")
    with caplog.at_level(logging.WARNING, "mlflow_privacy_gate"):
        seeded = checked(client, aucs=FAILING_AUCS)
        client.set_registered_model_alias("credit", "champion", seeded.version)
    assert "would have refused" in caplog.text
    assert "PG201" in caplog.text
    assert "NOT refused" in caplog.text  # said at start


def test_mode_off_is_said_at_start_and_at_every_promotion(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_policy(monkeypatch, tmp_path, "mode: off")
    with caplog.at_level(logging.WARNING, "mlflow_privacy_gate"):
        seeded = seed_version(client, "credit")
        client.set_registered_model_alias("credit", "champion", seeded.version)
        client.set_registered_model_alias("credit", "champion", seeded.version)
    assert "NOT guarded" in caplog.text
    assert caplog.text.count("Privacy gate is off") == 2


def test_a_policy_file_that_is_missing_refuses_every_promotion(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(tmp_path / "nowhere.yaml"))
    client.create_registered_model("credit")
    assert "PG901" in caplog.text
    with pytest.raises(MlflowException, match="PG901"):  # which names are guarded cannot be known
        seed_version(client, "credit")
    assert versions(client, "credit") == []


def test_a_policy_is_read_anew_when_its_file_changes(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = use_policy(monkeypatch, tmp_path)
    seeded = checked(client, aucs=dict.fromkeys(FAILING_AUCS, 0.53))
    client.set_registered_model_alias("credit", "champion", seeded.version)
    write_policy(path, SIGNER, "margin: {default: 0.52}")
    assert "PG201" in refusal(client, seeded)


def test_a_copy_into_a_guarded_name_makes_no_model_when_it_is_refused(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_policy(monkeypatch, tmp_path, "guard: {registered_models: ['live-*']}")
    seed_version(client, "credit")
    with pytest.raises(MlflowException) as caught:
        client.copy_model_version("models:/credit/1", "live-credit")
    assert caught.value.error_code == "PERMISSION_DENIED"
    assert versions(client, "live-credit") == []
    with pytest.raises(MlflowException, match="not found"):
        client.get_registered_model("live-credit")


def test_a_database_that_fails_refuses_with_its_own_code_and_at_once(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_policy(monkeypatch, tmp_path)
    seeded = checked(client)
    database = tmp_path / "mlflow.db"
    store = open_gated_store(f"privacy-gate:sqlite:///{database}", f"sqlite:///{database}")
    content = database.read_bytes()
    database.write_bytes(b"this is no database, " * 4096)
    started = time.monotonic()
    with pytest.raises(MlflowException) as caught:
        store.set_registered_model_alias("credit", "champion", seeded.version)  # type: ignore[no-untyped-call]
    assert caught.value.error_code == "PERMISSION_DENIED"
    assert "PG902" in caught.value.message
    assert time.monotonic() - started < 2.0
    database.write_bytes(content)
    assert client.get_registered_model("credit").aliases == {}
