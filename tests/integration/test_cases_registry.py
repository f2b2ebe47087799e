"""The registry: versions without lineage, wrong and busy stores, changed artifacts, through the command line."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import mlflow
import pytest
from check_home import MLFLOW_WARNINGS, policy
from command_line import Ran, run
from logged_models import MEMBERS, NON_MEMBERS, Registered, held_back, log_checked_model, log_model, nothing_was_written
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow_home import MlflowHome, mlflow_home, mlflow_store

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.store import open_gated_store
from mlflow_privacy_gate.vocabulary import VERDICT_TAG

__all__ = ["mlflow_home", "mlflow_store", "policy"]

pytestmark = [pytest.mark.usefixtures("mlflow_home", "policy"), *MLFLOW_WARNINGS]


def check(model: Registered, *options: str) -> Ran:
    return run("check", model.uri, "--in-process", *options)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    paths = tmp_path / "train.parquet", tmp_path / "held_out.parquet"
    for frame, path in zip((MEMBERS, NON_MEMBERS), paths, strict=True):
        frame.to_parquet(path, index=False)
    return "--members", str(paths[0]), "--non-members", str(paths[1])


# --- no lineage


def test_a_version_whose_run_was_deleted_is_checked_with_splits_handed_in_and_has_no_lineage_without(
    files: tuple[str, ...],
) -> None:
    logged = log_checked_model(held_back())
    mlflow.delete_run(logged.run_id)
    ran = check(logged)
    assert ran.exit_code == 3, ran
    for words in ("no lineage", "was deleted", "--members"):
        assert words in ran.stderr
    with_splits = check(logged, *files)
    assert with_splits.exit_code == 0, with_splits
    assert logged.tags[VERDICT_TAG] == "pass"


def test_a_version_without_run_signature_or_datasets_gets_a_card_that_says_unknown(
    mlflow_home: MlflowHome, files: tuple[str, ...], tmp_path: Path
) -> None:
    estimator = held_back().fit(MEMBERS.drop(columns="label"), MEMBERS["label"])
    folder = mlflow_home.artifacts / "by-hand"
    mlflow.sklearn.save_model(
        estimator, str(folder), pip_requirements=["scikit-learn"], serialization_format="cloudpickle"
    )
    client = MlflowClient()
    client.create_registered_model("by-hand")
    client.create_model_version("by-hand", folder.as_uri())
    ran = run("check", "models:/by-hand/1", "--in-process")
    assert ran.exit_code == 3, ran
    assert "no lineage" in ran.stderr
    result = privacy_gate.check("models:/by-hand/1", members=files[1], non_members=files[3], target="label")
    assert result.verdict == "pass"
    described = client.get_model_version("by-hand", "1").description
    assert described is not None
    assert "unknown" in result.card
    for text in (result.card, described):
        assert "1970" not in text
        assert "| nan |" not in text.lower()
    assert client.get_model_version("by-hand", "1").tags["privacy_gate.report_uri"] == "unknown"
    client.delete_registered_model("by-hand")


# --- stores that are wrong, old or busy


def test_an_empty_store_is_could_not_look_and_is_named(tmp_path: Path) -> None:
    elsewhere = f"sqlite:///{tmp_path / 'empty.db'}"
    ran = run("check", "models:/bc@champion", "--tracking-uri", elsewhere, "--registry-uri", elsewhere)
    assert ran.exit_code == 4, ran
    assert "empty.db" in ran.stderr
    assert "it holds no registered model at all" in ran.stderr


def test_with_no_store_named_at_all_the_one_that_was_asked_is_named(tmp_path: Path) -> None:
    """As in a fresh shell, in a fresh folder, where nobody set a tracking URI."""
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "mlflow_privacy_gate", "check", "models:/bc@champion"],
        cwd=fresh,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 4, ran
    assert "no registered model 'bc'" in ran.stderr
    assert "it holds no registered model at all" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_server_that_is_not_there_is_could_not_look() -> None:
    started = time.monotonic()
    ran = run("check", "models:/bc/1", "--tracking-uri", "http://127.0.0.1:9", "--registry-uri", "http://127.0.0.1:9")
    assert ran.exit_code == 4, ran
    assert "127.0.0.1:9" in ran.stderr
    assert time.monotonic() - started < 60


def test_a_file_store_that_mlflow_refuses_is_a_usage_error_in_mlflows_own_words(tmp_path: Path) -> None:
    store = (tmp_path / "mlruns").as_uri()
    ran = run("check", "models:/bc/1", "--tracking-uri", store, "--registry-uri", store)
    assert ran.exit_code == 2, ran
    with pytest.raises(MlflowException) as caught:
        MlflowClient(store, store).search_registered_models()
    assert caught.value.message.split("\n")[0][:60] in ran.stderr


def test_a_database_that_is_locked_for_a_moment_is_waited_for(
    mlflow_home: MlflowHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = log_checked_model(held_back())
    lock = sqlite3.connect(mlflow_home.uri.removeprefix("sqlite:///"), check_same_thread=False, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    release = threading.Timer(2, lambda: lock.execute("ROLLBACK"))
    release.start()
    ran = check(logged)
    release.join()
    lock.close()
    assert ran.exit_code == 0, ran
    assert logged.tags[VERDICT_TAG] == "pass"


def test_first_use_of_a_database_by_several_processes_never_ends_in_a_pass_by_accident(tmp_path: Path) -> None:
    """Four checks at once on a database that none has made yet: each looks, or says that it could not."""
    fresh = f"sqlite:///{tmp_path / 'raced.db'}"
    command = [sys.executable, "-m", "mlflow_privacy_gate", "check", "models:/bc/1"]
    racing = [
        subprocess.Popen(
            [*command, "--tracking-uri", fresh, "--registry-uri", fresh], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    ends = [process.communicate(timeout=120) for process in racing]
    assert [process.returncode for process in racing] == [4] * 4, ends
    assert all(b"PG007" in stderr and not stdout for stdout, stderr in ends)
    assert all(b"Traceback" not in stderr for _, stderr in ends), ends


# --- bytes that change


@pytest.mark.parametrize("how", ["a byte appended", "a file added", "a file gone"])
def test_an_artifact_changed_after_its_check_is_refused_and_found(
    mlflow_home: MlflowHome, policy: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(policy))
    logged = log_checked_model(held_back())
    assert check(logged).exit_code == 0
    assert run("verify", logged.uri).exit_code == 0
    (weights,) = mlflow_home.artifacts.rglob("model.pkl")
    if how == "a byte appended":
        weights.write_bytes(weights.read_bytes() + b"\0")
    elif how == "a file added":
        (weights.parent / "extra.bin").write_bytes(b"more")
    else:
        weights.unlink()
    verified = run("verify", logged.uri)
    assert verified.exit_code == 1, verified
    assert "PG004" in verified.stdout
    gated = open_gated_store(f"privacy-gate:{mlflow_home.uri}", mlflow_home.uri)
    with pytest.raises(MlflowException, match="PG004") as caught:
        gated.set_registered_model_alias(logged.name, "champion", logged.version)  # type: ignore[no-untyped-call]
    assert caught.value.error_code == "PERMISSION_DENIED"


def test_a_model_that_is_gone_from_the_artifact_store_cannot_be_looked_at(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run():
        logged = log_model(held_back())
    for path in sorted(mlflow_home.artifacts.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    ran = check(logged)
    assert ran.exit_code == 4, ran
    assert nothing_was_written(logged)
