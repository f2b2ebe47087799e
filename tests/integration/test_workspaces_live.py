"""The gate under ``mlflow server --enable-workspaces``: every workspace is guarded, and none sees another's evidence or bytes."""

from __future__ import annotations

from collections.abc import Iterator

import mlflow
import pytest
from evidence_builder import attestation, fresh_signer, passing_evidence, write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from registry_seed import seed_version

from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = pytest.mark.server

SIGNER = fresh_signer()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    policy = write_policy(folder / "privacy-gate.yaml", SIGNER)
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
