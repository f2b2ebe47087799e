"""The gate under ``mlflow server --enable-workspaces``: every workspace is guarded, and none sees another's evidence or bytes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import mlflow
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from officer_builder import OFFICER, policy_text
from registry_seed import SeededVersion, seed_version

from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.evidence.facts import CardClaims
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = pytest.mark.server

SIGNER = fresh_signer()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    policy = folder / "privacy-gate.yaml"
    policy.write_text(policy_text(SIGNER), encoding="utf-8")
    with live_server(folder, policy=policy, options=["--enable-workspaces"]) as running:
        yield running


@pytest.fixture
def client(server: LiveServer) -> Iterator[MlflowClient]:
    tracking = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(server.url)
    if "team" not in {workspace.name for workspace in mlflow.list_workspaces()}:
        mlflow.create_workspace("team")
    yield MlflowClient(tracking_uri=server.url, registry_uri=server.url)
    mlflow.set_workspace(None)
    mlflow.set_tracking_uri(tracking)


@pytest.mark.parametrize("workspace", ["default", "team"])
def test_each_workspace_refuses_the_unchecked_and_promotes_the_checked(client: MlflowClient, workspace: str) -> None:
    mlflow.set_workspace(workspace)
    experiment = client.create_experiment(f"in-{workspace}")
    seeded = seed_version(client, "credit", workspace.encode(), experiment=experiment)
    with pytest.raises(MlflowException) as caught:
        client.set_registered_model_alias("credit", "champion", seeded.version)
    assert caught.value.error_code == "PERMISSION_DENIED"
    client.set_model_version_tag("credit", "1", ATTESTATION_TAG, attestation(passing_evidence(seeded.digest), SIGNER))
    client.set_registered_model_alias("credit", "champion", seeded.version)


def test_evidence_of_a_model_of_the_same_name_elsewhere_does_not_count(client: MlflowClient) -> None:
    tags = {}
    for workspace in ("default", "team"):
        mlflow.set_workspace(workspace)
        experiment = client.create_experiment(f"same-name-{workspace}")
        seeded = seed_version(client, "shared", workspace.encode(), experiment=experiment)
        tags[workspace] = attestation(passing_evidence(seeded.digest), SIGNER)
    client.set_model_version_tag("shared", "1", ATTESTATION_TAG, tags["default"])
    with pytest.raises(MlflowException, match="PG004"):
        client.set_registered_model_alias("shared", "champion", "1")


OFFICERS_OPTIONS = {
    "waive": (
        *("--finding", "PG201", "--reason", "rollback", "--reference", "CHG-1", "--controls", "rounded answers"),
        *("--requested-by", "Ann", "--approved-by", "Bea"),
    ),
    "sign-off": ("--signed-by", "Bea", "--no-personal-data", "machine sensors only"),
}


@pytest.mark.parametrize("command", OFFICERS_OPTIONS)
def test_a_statement_signed_in_one_workspace_opens_nothing_in_another(
    client: MlflowClient, server: LiveServer, tmp_path: Path, command: str
) -> None:
    changes: dict[str, Any] = (
        {"aucs": FAILING_AUCS} if command == "waive" else {"card": CardClaims(personal_data=False)}
    )
    name, tags = f"stated-{command}", dict[str, str]()
    seeded: dict[str, SeededVersion] = {}
    for workspace in ("default", "team"):  # the same bytes, name and test in both
        mlflow.set_workspace(workspace)
        experiment = client.create_experiment(f"{name}-{workspace}")
        seeded[workspace] = seed_version(client, name, name.encode(), experiment=experiment)
        tags.setdefault("test", attestation(passing_evidence(seeded[workspace].digest, **changes), SIGNER))
        client.set_model_version_tag(name, "1", ATTESTATION_TAG, tags["test"])
    mlflow.set_workspace("team")
    done = sign_at_the_command_line(server, tmp_path, command, f"models:/{name}/1")
    assert done.exit_code == 0, done.output
    client.set_registered_model_alias(name, "champion", "1")
    signed = client.get_model_version(name, "1").tags
    mlflow.set_workspace("default")
    for tag, value in signed.items():
        if tag.startswith("privacy_gate."):
            client.set_model_version_tag(name, "1", tag, value)
    with pytest.raises(MlflowException, match="workspace team") as caught:
        client.set_registered_model_alias(name, "champion", "1")
    assert caught.value.error_code == "PERMISSION_DENIED"
    done = sign_at_the_command_line(server, tmp_path, command, f"models:/{name}/1")
    assert done.exit_code == 0, done.output
    client.set_registered_model_alias(name, "champion", "1")


def sign_at_the_command_line(server: LiveServer, folder: Path, command: str, model_uri: str) -> Any:
    key = folder / "officer.key"
    key.write_bytes(OFFICER._private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    key.chmod(0o600)
    until = f"{datetime.now(timezone.utc) + timedelta(days=7):%Y-%m-%d}"
    more = ("--until", until) if command == "waive" else ()
    servers = ("--tracking-uri", server.url, "--registry-uri", server.url, "--policy", str(server.policy))
    arguments = [
        command,
        model_uri,
        "--alias",
        "champion",
        *OFFICERS_OPTIONS[command],
        *more,
        "--key",
        str(key),
        *servers,
    ]
    return CliRunner().invoke(program, arguments)
