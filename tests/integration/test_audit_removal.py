"""An erasure request through the command line, on a real MLflow with SQLite: retrain, audit, read the report from the run."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow_home import MlflowHome, mlflow_home, mlflow_store
from removal_cases import TARGET, erasure_case
from sklearn.ensemble import RandomForestClassifier

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.removal_statement import read_removal_statement

__all__ = ["mlflow_home", "mlflow_store"]


@dataclass(frozen=True)
class Request:
    """The rows of an erasure request on disk, and two versions of one model: 1 trained with the query, 2 without."""

    folder: Path
    uri: str
    name: str

    def audit(self, version: int, *more: str) -> subprocess.CompletedProcess[str]:
        sources = [
            argument
            for option in ("query", "calibration-train", "calibration-test")
            for argument in (f"--{option}", str(self.folder / f"{option}.parquet"))
        ]
        command = [sys.executable, "-m", "mlflow_privacy_gate", "audit-removal", f"models:/{self.name}/{version}"]
        return subprocess.run(
            [*command, *sources, "--tracking-uri", self.uri, "--references", "8", *more],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def verify(self, version: int, statement: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mlflow_privacy_gate", "verify-removal", f"models:/{self.name}/{version}"]
        return subprocess.run(
            [*command, statement, "--tracking-uri", self.uri, *more],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def request_(mlflow_home: MlflowHome, tmp_path: Path) -> Request:
    case = erasure_case("digits")
    folder = tmp_path / "request"
    folder.mkdir()
    tables = {
        "query": case.query,
        "calibration-train": case.calibration_train,
        "calibration-test": case.calibration_test,
        "before": case.before,
        "after": case.kept,
    }
    for name, frame in tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    name = f"digits-{mlflow_home.experiment_id}"
    for members in ("before", "after"):
        log(name, tables[members], case.calibration_test, folder, members)
    subprocess.run([sys.executable, "-m", "mlflow_privacy_gate", "init"], cwd=folder, check=True, capture_output=True)
    return Request(folder, mlflow_home.uri, name)


def log(name: str, members: pd.DataFrame, held_out: pd.DataFrame, folder: Path, source: str) -> None:
    model = RandomForestClassifier(50, random_state=0).fit(members.drop(columns=TARGET), members[TARGET])
    with warnings.catch_warnings(), mlflow.start_run():
        warnings.simplefilter("ignore")
        mlflow.sklearn.log_model(
            model,
            name="model",
            registered_model_name=name,
            input_example=members.drop(columns=TARGET).head(2),
            skops_trusted_types=["sklearn.tree._tree.Tree"],
        )
        privacy_gate.log_splits(
            members,
            held_out,
            target=TARGET,
            members_source=str(folder / f"{source}.parquet"),
            non_members_source=str(folder / "calibration-test.parquet"),
        )


@pytest.mark.slow
def test_an_erasure_request_is_audited_from_the_command_line(request_: Request) -> None:
    before = request_.audit(1, "--output", "json", "--dry-run")
    assert before.returncode == 1, before.stderr
    fields = json.loads(before.stdout)
    assert fields["answer"] == "memorisation not ruled out"
    assert fields["query_among_members"] == 100
    assert not fields["recorded"]

    after = request_.audit(2, "--save", "report")
    assert after.returncode == 0, after.stdout + after.stderr
    assert "NOT MEMORISED" in after.stdout
    assert "unsigned" not in after.stdout

    client = MlflowClient(request_.uri)
    version = client.get_model_version(request_.name, "2")
    assert version.tags["privacy_gate.removal_audit"].startswith("not memorised: 100 rows, ")
    assert "privacy_gate.removal_audit" not in client.get_model_version(request_.name, "1").tags
    assert version.run_id is not None
    (folder,) = client.list_artifacts(version.run_id, "privacy_gate/removal")
    copy = Path(client.download_artifacts(version.run_id, folder.path, str(request_.folder)))
    assert sorted(file.name for file in copy.iterdir()) == [
        "removal.dsse.json",
        "report.html",
        "report.json",
        "report.md",
    ]
    for file in copy.iterdir():
        assert (request_.folder / "report" / file.name).read_bytes() == file.read_bytes()
    envelope = open_envelope(base64.b64encode((copy / "removal.dsse.json").read_bytes()).decode())
    assert len(envelope.signatures) == 1
    evidence = read_removal_statement(envelope.payload)
    assert evidence.tool.isolation == "child-process"
    assert evidence.model_uri == f"models:/{request_.name}/2"

    held = request_.verify(2, "report/removal.dsse.json", "--query", "query.parquet")
    assert (held.returncode, held.stdout.splitlines()[0].split(",")[0]) == (0, "Believed: signed by tester"), (
        held.stderr
    )
    assert "the rows handed in" in held.stdout
    for number, more, why in (
        (1, (), "PG004: the audit is of the bytes"),
        (2, ("--query", "after.parquet"), "PG004: the audit is of the rows"),
    ):
        other = request_.verify(number, "report/removal.dsse.json", *more)
        assert (other.returncode, other.stdout) == (1, "")
        assert why in other.stderr
    forged = request_.folder / "forged.json"
    content = json.loads((copy / "removal.dsse.json").read_bytes())
    payload = base64.b64decode(content["payload"]).replace(b"not memorised", b"inconclusive!")
    forged.write_text(json.dumps({**content, "payload": base64.b64encode(payload).decode()}), encoding="utf-8")
    refused = request_.verify(2, "forged.json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "PG002" in refused.stderr


def test_a_question_without_calibration_rows_is_a_usage_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mlflow_privacy_gate", "audit-removal", "models:/x/1", "--query", "q.csv"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "--calibration-train" in found.stderr
