"""The whole way once, short: also run on the oldest MLflow that is declared, so it asks for nothing newer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from evidence_builder import write_policy
from live_server import live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.evidence.signing import generate_key

pytestmark = [
    pytest.mark.server,
    pytest.mark.filterwarnings("ignore"),  # an old MLflow on new libraries warns of much, none of it ours
]

ROWS = 200


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    return write_policy(folder / "privacy-gate.yaml", generate_key(folder / "privacy-gate.key"))


@pytest.fixture
def environment(policy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(policy))
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    yield
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(before[0])
    mlflow.set_registry_uri(before[1])


def checked(estimator: object, name: str, experiment: str) -> CheckResult:
    """Train on noisy rows, log the model with its splits, and check it: what a training script does."""
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(2 * ROWS, 6)), columns=list("abcdef"))
    frame = features.assign(label=(features["a"] + rng.normal(size=2 * ROWS) * 2 > 0).astype("int64"))
    members, non_members = frame.iloc[:ROWS], frame.iloc[ROWS:]
    with mlflow.start_run(experiment_id=experiment):
        estimator.fit(members.drop(columns="label"), members["label"])  # type: ignore[attr-defined]
        mlflow.sklearn.log_model(
            estimator, name="model", registered_model_name=name, serialization_format="cloudpickle"
        )
        privacy_gate.log_splits(members, non_members, target="label", store_rows=True)
    return privacy_gate.check(f"models:/{name}/1")


def hold_the_gate(client: MlflowClient, experiment: str) -> None:
    """One overfitted model is refused with its number, one held back goes to production, both through alias and stage."""
    leaky = checked(RandomForestClassifier(bootstrap=False, random_state=0), "leaky", experiment)
    assert (str(leaky.verdict), leaky.exit_code) == ("fail", 1)
    assert leaky.attack_auc is not None
    assert leaky.attack_auc > 0.55
    for promote in (
        lambda: client.set_registered_model_alias("leaky", "champion", "1"),
        lambda: client.transition_model_version_stage("leaky", "1", "Production"),
    ):
        with pytest.raises(MlflowException, match="PG201") as caught:
            promote()
        assert caught.value.error_code == "PERMISSION_DENIED"
        assert caught.value.get_http_status_code() == 403  # type: ignore[no-untyped-call]  # MLflow has no types here
    assert client.get_registered_model("leaky").aliases == {}

    quiet = checked(LogisticRegression(C=0.001), "quiet", experiment)
    assert (str(quiet.verdict), quiet.exit_code) == ("pass", 0)
    client.set_registered_model_alias("quiet", "champion", "1")
    client.transition_model_version_stage("quiet", "1", "Production")
    promoted = client.get_model_version_by_alias("quiet", "champion")
    assert promoted.current_stage == "Production"
    assert promoted.tags["privacy_gate.verdict"] == "pass"


@pytest.mark.usefixtures("environment")
def test_a_client_with_a_gated_sqlite_registry_refuses_a_leaky_model_and_promotes_a_quiet_one(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.set_tracking_uri(database)
    mlflow.set_registry_uri(f"privacy-gate:{database}")
    experiment = mlflow.create_experiment("smoke", artifact_location=(tmp_path / "artifacts").as_uri())
    hold_the_gate(MlflowClient(), experiment)


@pytest.mark.usefixtures("environment")
def test_a_server_with_a_gated_registry_refuses_a_leaky_model_and_promotes_a_quiet_one(
    policy: Path, tmp_path: Path
) -> None:
    with live_server(tmp_path / "server", policy=policy) as server:
        mlflow.set_tracking_uri(server.url)
        mlflow.set_registry_uri(server.url)
        hold_the_gate(MlflowClient(), mlflow.create_experiment("smoke"))
