"""Evidence that is forged, copied, replayed, unsigned or for other bytes, against a real server."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from evidence_builder import attestation, fresh_signer, passing_evidence, write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from registry_seed import SeededVersion, seed_version

from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG

pytestmark = pytest.mark.server

SIGNER = fresh_signer()
REFUSALS: list[str] = []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    policy = write_policy(folder / "privacy-gate.yaml", SIGNER)
    # By itself MLflow 3.17 refuses artifact locations on other hosts; earlier versions, and servers told to, do not.
    lenient = {"MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES": "mlflow-artifacts"}
    with live_server(folder, policy=policy, environment=lenient) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: LiveServer) -> MlflowClient:
    return MlflowClient(tracking_uri=server.url, registry_uri=server.url)


@pytest.fixture(autouse=True)
def no_refusal_tells_where_the_server_keeps_its_files(server: LiveServer) -> Iterator[None]:
    REFUSALS.clear()
    yield
    assert not [text for text in REFUSALS if str(server.folder) in text or "Traceback" in text]


def refused_with(code: str, client: MlflowClient, seeded: SeededVersion) -> None:
    with pytest.raises(MlflowException) as caught:
        client.set_registered_model_alias(seeded.name, "champion", seeded.version)
    assert caught.value.error_code == "PERMISSION_DENIED"
    assert code in caught.value.message
    REFUSALS.append(caught.value.message)
    assert "champion" not in client.get_registered_model(seeded.name).aliases


def checked(client: MlflowClient, name: str, content: bytes = b"weights") -> SeededVersion:
    seeded = seed_version(client, name, content)
    set_attestation(client, seeded, attestation(passing_evidence(seeded.digest), SIGNER))
    return seeded


def set_attestation(client: MlflowClient, seeded: SeededVersion, value: str) -> None:
    client.set_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG, value)


def stored_folder(server: LiveServer, seeded: SeededVersion) -> Path:
    return server.artifacts / seeded.source.removeprefix("mlflow-artifacts:/")


def append_a_byte(folder: Path) -> None:
    with (folder / "weights.bin").open("ab") as stream:
        stream.write(b"\0")


def add_a_file(folder: Path) -> None:
    (folder / "extra.py").write_bytes(b"")


def rename_a_file(folder: Path) -> None:
    (folder / "weights.bin").rename(folder / "weights2.bin")


def link_a_file(folder: Path) -> None:
    (folder / "weights.bin").rename(folder.parent / "elsewhere.bin")
    (folder / "weights.bin").symlink_to(folder.parent / "elsewhere.bin")


@pytest.mark.parametrize("change", [append_a_byte, add_a_file, rename_a_file, link_a_file])
def test_a_model_changed_after_a_pass_is_refused(
    server: LiveServer, client: MlflowClient, change: Callable[[Path], None]
) -> None:
    seeded = checked(client, f"changed-{change.__name__}")
    client.set_registered_model_alias(seeded.name, "candidate", seeded.version)
    change(stored_folder(server, seeded))
    refused_with("PG004", client, seeded)


def test_a_change_through_the_artifact_api_is_refused(client: MlflowClient, tmp_path: Path) -> None:
    seeded = checked(client, "overwritten")
    (tmp_path / "weights.bin").write_bytes(b"other weights")
    client.log_artifact(seeded.run_id, str(tmp_path / "weights.bin"), "model")
    refused_with("PG004", client, seeded)


def test_the_file_mlflow_itself_writes_on_download_changes_nothing(server: LiveServer, client: MlflowClient) -> None:
    seeded = checked(client, "downloaded")
    (stored_folder(server, seeded) / "registered_model_meta").write_text("model_name: x\nmodel_version: '1'\n")
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)


def test_a_model_whose_bytes_are_gone_is_refused_as_could_not_look(server: LiveServer, client: MlflowClient) -> None:
    seeded = checked(client, "gone")
    folder = stored_folder(server, seeded)
    folder.rename(folder.parent / "moved")
    refused_with("PG007", client, seeded)


def test_tags_copied_from_a_passing_version_of_other_bytes_are_refused(client: MlflowClient) -> None:
    good, other = checked(client, "copied-from", b"good"), seed_version(client, "copied-to", b"bad")
    tags = client.get_model_version(good.name, good.version).tags
    for key, value in {**tags, VERDICT_TAG: "pass"}.items():
        client.set_model_version_tag(other.name, other.version, key, value)
    refused_with("PG004", client, other)


def test_tags_forged_at_creation_are_refused(client: MlflowClient) -> None:
    forged = {VERDICT_TAG: "pass", ATTESTATION_TAG: base64.b64encode(b"{}").decode(), "privacy_gate.attack_auc": "0.5"}
    refused_with("PG002", client, seed_version(client, "forged", tags=forged))


def test_unsigned_evidence_is_refused(client: MlflowClient) -> None:
    seeded = seed_version(client, "unsigned")
    set_attestation(client, seeded, attestation(passing_evidence(seeded.digest), None))
    refused_with("PG002", client, seeded)


def test_evidence_under_a_foreign_key_is_refused(client: MlflowClient) -> None:
    seeded = seed_version(client, "foreign")
    set_attestation(client, seeded, attestation(passing_evidence(seeded.digest), fresh_signer()))
    refused_with("PG003", client, seeded)


def test_a_foreign_signature_under_a_trusted_keys_name_is_refused(client: MlflowClient) -> None:
    seeded = seed_version(client, "renamed-key")
    foreign = json.loads(base64.b64decode(attestation(passing_evidence(seeded.digest), fresh_signer())))
    foreign["signatures"][0]["keyid"] = SIGNER.key_id
    set_attestation(client, seeded, base64.b64encode(json.dumps(foreign).encode()).decode())
    refused_with("PG002", client, seeded)


def test_an_edited_payload_is_refused(client: MlflowClient) -> None:
    seeded = seed_version(client, "edited")
    envelope = json.loads(base64.b64decode(attestation(passing_evidence(seeded.digest), SIGNER)))
    payload = base64.b64decode(envelope["payload"]).replace(b"0.512", b"0.511")
    envelope["payload"] = base64.b64encode(payload).decode()
    set_attestation(client, seeded, base64.b64encode(json.dumps(envelope).encode()).decode())
    refused_with("PG002", client, seeded)


@pytest.mark.parametrize(("name", "days"), [("expired", -400), ("future", 2)])
def test_evidence_out_of_its_time_is_refused(client: MlflowClient, name: str, days: int) -> None:
    seeded = seed_version(client, name)
    tested_at = datetime.now(timezone.utc) + timedelta(days=days)
    evidence = replace(passing_evidence(seeded.digest), tested_at=tested_at, expires_at=tested_at + timedelta(days=90))
    set_attestation(client, seeded, attestation(evidence, SIGNER))
    refused_with("PG005", client, seeded)


def test_taking_the_evidence_away_refuses(client: MlflowClient) -> None:
    seeded = checked(client, "taken-away")
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)
    client.delete_registered_model_alias(seeded.name, "champion")
    client.delete_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG)
    refused_with("PG001", client, seeded)


def test_a_junk_tag_of_the_largest_size_is_refused_quickly(client: MlflowClient) -> None:
    seeded = seed_version(client, "junk")
    set_attestation(client, seeded, "A" * 99_000)
    refused_with("PG002", client, seeded)


def test_a_location_on_a_foreign_host_is_refused_whatever_lies_at_that_path_here(
    server: LiveServer, client: MlflowClient
) -> None:
    seeded = checked(client, "foreign-host")
    experiment = client.create_experiment("foreign", artifact_location="mlflow-artifacts://127.0.0.1:9/foreign")
    run = client.create_run(experiment)
    here = server.artifacts / run.info.artifact_uri.removeprefix("mlflow-artifacts://127.0.0.1:9/")
    shutil.copytree(stored_folder(server, seeded), here)
    created = client.create_model_version(seeded.name, run.info.artifact_uri, run_id=run.info.run_id)
    other = replace(seeded, version=str(created.version))
    set_attestation(client, other, attestation(passing_evidence(seeded.digest), SIGNER))
    refused_with("PG007", client, other)


def test_a_path_on_a_disk_is_refused_whatever_lies_at_that_path_on_the_server(
    server: LiveServer, client: MlflowClient, tmp_path: Path
) -> None:
    experiment = client.create_experiment("on-a-disk", artifact_location=tmp_path.as_uri())
    seeded = seed_version(client, "on-a-disk", experiment=experiment)
    assert seeded.source.startswith("file:")
    set_attestation(client, seeded, attestation(passing_evidence(seeded.digest), SIGNER))
    refused_with("PG007", client, seeded)
    assert "--default-artifact-root" in REFUSALS[-1]


def test_whatever_is_wrong_with_the_stored_model_is_told_without_its_path(
    server: LiveServer, client: MlflowClient
) -> None:
    def replaced_by_a_link(folder: Path) -> None:
        (folder / "weights.bin").unlink()
        (folder / "weights.bin").symlink_to(folder / "MLmodel")

    def emptied(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.mkdir()

    def hiding(folder: Path) -> None:
        (folder / "registered_model_meta").write_bytes(b"weights")

    def of_a_strange_name(folder: Path) -> None:
        (folder / "a\\b").write_bytes(b"weights")

    for number, (spoil, code) in enumerate(
        [
            (replaced_by_a_link, "PG004"),
            (emptied, "PG004"),
            (hiding, "PG004"),
            (of_a_strange_name, "PG004"),
            (shutil.rmtree, "PG007"),
        ]
    ):
        seeded = checked(client, f"spoilt-{number}")
        spoil(stored_folder(server, seeded))  # type: ignore[operator]
        refused_with(code, client, seeded)


def test_a_policy_that_cannot_be_read_is_told_by_its_name(server: LiveServer, client: MlflowClient) -> None:
    assert server.policy is not None
    seeded = checked(client, "policy-gone")
    away = server.policy.with_suffix(".away")
    server.policy.rename(away)
    try:
        refused_with("PG901", client, seeded)
        assert server.policy.name in REFUSALS[-1]
        server.policy.mkdir()
        refused_with("PG901", client, seeded)
        server.policy.rmdir()
    finally:
        away.rename(server.policy)


def test_an_escaped_path_that_clients_read_differently_is_refused(server: LiveServer, client: MlflowClient) -> None:
    seeded = checked(client, "escaped")
    source = seeded.source.removesuffix("model") + "%6dodel"
    literal = server.artifacts / source.removeprefix("mlflow-artifacts:/")
    shutil.copytree(stored_folder(server, seeded), literal)
    append_a_byte(stored_folder(server, seeded))
    created = client.create_model_version(seeded.name, source, run_id=seeded.run_id)
    other = replace(seeded, version=str(created.version))
    set_attestation(client, other, attestation(passing_evidence(seeded.digest), SIGNER))
    refused_with("PG007", client, other)
