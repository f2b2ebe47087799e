"""``status`` as a person reads it: on a narrow terminal no word is broken, and a pipe gets one line a version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from evidence_builder import FAILING_AUCS, attestation, passing_evidence, write_policy
from mlflow import MlflowClient
from mlflow_home import MlflowHome
from registry_seed import seed_version

from mlflow_privacy_gate.evidence.signing import generate_key
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

WORDS = ("Production", "champion", "fail", "not checked", "0.55", "PG001", "PG201")


@pytest.fixture
def model(
    mlflow_home: MlflowHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """Two versions of a model with a long name: one failed and in production twice over, one never checked."""
    signer = generate_key(tmp_path / "privacy-gate.key")
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(write_policy(tmp_path / "privacy-gate.yaml", signer)))
    client, name = MlflowClient(), f"credit-scoring-of-the-whole-of-europe-{request.node.name}"
    failed = seed_version(client, name, experiment=mlflow_home.experiment_id)
    evidence = attestation(passing_evidence(failed.digest, aucs=FAILING_AUCS), signer)
    client.set_model_version_tag(name, failed.version, ATTESTATION_TAG, evidence)
    client.set_registered_model_alias(name, "champion", failed.version)
    with pytest.warns(FutureWarning):
        client.transition_model_version_stage(name, failed.version, "Production")
    seed_version(client, name, experiment=mlflow_home.experiment_id)
    return name


def test_at_80_columns_no_line_is_longer_and_no_word_broken(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("status", model)
    assert ran.exit_code == 1, ran
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert [word for word in WORDS if word not in ran.stdout] == []


def test_in_a_pipe_each_version_is_one_line(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = [line for line in run("status", model).stdout.splitlines() if line.startswith(f"{model}  ")]
    assert len(rows) == 2
    assert "stage Production, alias champion" in rows[1]


def test_a_model_that_is_not_there_is_named_with_the_store_that_was_asked(model: str) -> None:
    ran = run("status", f"{model}-typo")
    assert ran.exit_code == 2
    assert f"no registered model '{model}-typo'" in ran.stderr
    assert "mlflow.db" in ran.stderr


def test_the_json_of_status_and_verify_keeps_its_keys(model: str) -> None:
    decision = {
        "allowed",
        "mode",
        "model",
        "version",
        "route",
        "value",
        "model_digest",
        "verdict",
        "attack",
        "attack_auc",
    }
    decision |= {"margin", "expires_at", "envelope_sha256", "waivers", "sign_offs", "exemptions", "findings", "text"}
    standing = {
        "model",
        "version",
        "stage",
        "aliases",
        "promoted_as",
        "verdict",
        "expires_soon",
        "rehashed",
        "decision",
    }
    rows = json.loads(run("status", model, "--output", "json").stdout)
    assert [set(row) for row in rows] == [standing, standing]
    verified = json.loads(run("verify", f"models:/{model}/1", "--output", "json").stdout)
    assert set(verified) == set(rows[0]["decision"]) == decision
    assert {key for finding in verified["findings"] for key in finding} >= {"code", "message"}
