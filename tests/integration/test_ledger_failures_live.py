"""A database that dies in the middle of promotions, a ledger's disk that is full, and who asked under basic-auth."""

from __future__ import annotations

import base64
import json
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from evidence_builder import attestation, passing_evidence, write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from postgres import postgres
from registry_seed import SeededVersion, seed_version
from signed_servers import GUARD, SIGNER

from mlflow_privacy_gate.evidence.ledger import EntryKind, Result, Row, verify_chain
from mlflow_privacy_gate.policy import load_policy
from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger
from mlflow_privacy_gate.registry.ledger.location import reachable_ledger
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = pytest.mark.server

JSON = {"Content-Type": "application/json"}
ADMIN_PASSWORD = "of-the-admin-in-this-test"


def client_of(server: LiveServer) -> MlflowClient:
    return MlflowClient(tracking_uri=server.url, registry_uri=server.url)


def checked(client: MlflowClient, name: str, experiment: str = "0") -> SeededVersion:
    seeded = seed_version(client, name, name.encode(), experiment=experiment)
    tag = attestation(passing_evidence(seeded.digest), SIGNER)
    client.set_model_version_tag(name, seeded.version, ATTESTATION_TAG, tag)
    return seeded


def healthy(server: LiveServer) -> bool:
    with urllib.request.urlopen(f"{server.url}/health", timeout=20) as answer:
        return bool(answer.status == 200)


def asked_without_a_client(server: LiveServer, seeded: SeededVersion) -> tuple[int, str]:
    """Promote by a bare request (MLflow's client would read the model first, and give up there)."""
    body = json.dumps({"name": seeded.name, "alias": "champion", "version": seeded.version}).encode()
    address = f"{server.url}/api/2.0/mlflow/registered-models/alias"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body, JSON), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_database_that_dies_during_promotions_refuses_them_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    policy = write_policy(tmp_path / "privacy-gate.yaml", SIGNER, GUARD)
    with (
        postgres() as cluster,
        live_server(tmp_path / "server", policy=policy, workers=2, database=cluster.new_database("dies")) as server,
    ):
        client, done = client_of(server), list[str]()
        seeded = checked(client, "credit")
        stop, said = threading.Event(), list[str]()

        def promote_on_and_on(alias: str) -> None:
            while not stop.is_set():
                try:
                    client.set_registered_model_alias("credit", alias, seeded.version)
                    done.append(alias)
                except MlflowException as exc:
                    said.append(exc.message)

        threads = [threading.Thread(target=promote_on_and_on, args=(alias,)) for alias in ("prod", "champion") * 3]
        for thread in threads:
            thread.start()
        while len(done) < 10:
            threading.Event().wait(0.05)
        cluster.kill()
        before = len(said)
        while len(said) < before + 12:
            threading.Event().wait(0.05)
        stop.set()
        for thread in threads:
            thread.join(60)
        assert healthy(server)
        status, words = asked_without_a_client(server, seeded)
        assert status == 403
        assert "PG902" in words
        cluster.start_again()
        client.set_registered_model_alias("credit", "production", seeded.version)
        ledger = reachable_ledger(server.registry_database, load_policy(policy))
        assert ledger is not None
        with ledger.snapshot() as snapshot:
            rows = list(snapshot.rows)
            assert verify_chain(rows, snapshot.head).broken is None
        allowed = [row for row in rows if row.entry.result is Result.ALLOWED]
        # Whoever was told "done" stands in the ledger; one whose answer was lost on the way may stand there too.
        assert len(done) + 1 <= len(allowed) <= len(done) + 1 + len(threads)


def test_an_sqlite_file_that_fails_inside_a_promotion_refuses_it_and_loses_nothing(tmp_path: Path) -> None:
    policy = write_policy(tmp_path / "privacy-gate.yaml", SIGNER, GUARD)
    with live_server(tmp_path / "server", policy=policy) as server:
        client = client_of(server)
        seeded = checked(client, "credit")
        database = server.folder / "mlflow.db"
        with closing(
            sqlite3.connect(database)
        ) as connection:  # fails in the middle: decided, and the alias half written
            connection.executescript(
                "CREATE TRIGGER fails AFTER INSERT ON registered_model_aliases BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
            )
        assert_refused_by_a_server_that_lives_on(server, seeded)
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript("DROP TRIGGER fails")
        assert client.get_registered_model("credit").aliases == {}
        content = database.read_bytes()
        database.write_bytes(b"this is no database, " * (len(content) // 16))
        assert_refused_by_a_server_that_lives_on(server, seeded)
        database.write_bytes(content)
        client.set_registered_model_alias("credit", "champion", seeded.version)
        ledger = reachable_ledger(server.registry_database, load_policy(policy))
        assert ledger is not None
        with ledger.snapshot() as snapshot:
            rows = list(snapshot.rows)
            assert verify_chain(rows, snapshot.head).broken is None
        assert [row.entry.result for row in rows] == [Result.RECORDED, Result.ALLOWED]


def assert_refused_by_a_server_that_lives_on(server: LiveServer, seeded: SeededVersion) -> None:
    status, words = asked_without_a_client(server, seeded)
    assert status == 403
    assert "PG902" in words
    assert str(server.folder) not in words
    assert healthy(server)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(
            "NO SMALL DISK HERE: mounting one needs more rights; a full disk was tried on the ledger's own file only"
        )
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_under_a_ledgers_file_refuses_and_loses_nothing(tmp_path: Path, small_disk: Path) -> None:
    path = small_disk / "ledger.jsonl"
    policy = write_policy(tmp_path / "privacy-gate.yaml", SIGNER, f"ledger: {path}")
    with live_server(tmp_path / "server", policy=policy, workers=2) as server:
        client = client_of(server)
        seeded = checked(client, "credit")
        client.set_registered_model_alias("credit", "champion", seeded.version)
        filler = small_disk / "filler"
        fill(filler)
        answers = [answer_to(client, seeded) for _ in range(30)]  # what is left of the last block takes some rows
        assert answers[-1] == ("PERMISSION_DENIED", True)
        with pytest.raises(MlflowException, match="PG902"):
            checked(client, "another")
        assert healthy(server)
        filler.unlink()
        client.set_registered_model_alias("credit", "production", seeded.version)
        rows = rows_of(path)
        assert rows[-1].entry.target == "alias production"
        assert rows[0].entry.kind is EntryKind.ATTESTATION


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with suppress(OSError), path.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(1024))


def answer_to(client: MlflowClient, seeded: SeededVersion) -> tuple[str, bool]:
    """Promote; return the error's name, and whether it speaks of the ledger."""
    try:
        client.set_registered_model_alias(seeded.name, "prod", seeded.version)
    except MlflowException as exc:
        return exc.error_code, "PG902" in exc.message
    return "", False


def rows_of(path: Path) -> list[Row]:
    with FileLedger(path).snapshot() as snapshot:
        rows = list(snapshot.rows)
        assert verify_chain(rows, snapshot.head).broken is None
    return rows


def test_under_basic_auth_the_ledger_names_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    policy = write_policy(tmp_path / "privacy-gate.yaml", SIGNER, f"ledger: {path}")
    secret = {"MLFLOW_FLASK_SERVER_SECRET_KEY": "for this test", "MLFLOW_AUTH_ADMIN_PASSWORD": ADMIN_PASSWORD}
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", ADMIN_PASSWORD)
    with live_server(
        tmp_path / "server", policy=policy, workers=2, options=["--app-name", "basic-auth"], environment=secret
    ) as server:
        client = client_of(server)
        body = json.dumps({"username": "alice", "password": "alices-password"}).encode()
        request = urllib.request.Request(
            f"{server.url}/api/2.0/mlflow/users/create",
            body,
            {**JSON, "Authorization": f"Basic {base64.b64encode(f'admin:{ADMIN_PASSWORD}'.encode()).decode()}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 200
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "alice")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "alices-password")
        experiment = client.create_experiment("alices")
        unchecked = seed_version(client, "alices", experiment=experiment)
        with pytest.raises(MlflowException, match="PG001"):
            client.set_registered_model_alias("alices", "champion", unchecked.version)
        seeded = checked(client, "alices", experiment)
        client.set_registered_model_alias("alices", "champion", seeded.version)
    assert [(row.entry.actor, row.entry.result) for row in rows_of(path)] == [
        ("alice", Result.REFUSED),
        ("alice", Result.RECORDED),
        ("alice", Result.ALLOWED),
    ]
