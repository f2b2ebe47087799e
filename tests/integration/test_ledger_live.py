"""What the ledger remembers, through a real server with two workers on either database; and what happens when a part of it fails."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from click.testing import CliRunner
from evidence_builder import FAILING_AUCS, attestation, passing_evidence
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from registry_seed import SeededVersion, log_folder, seed_version, versions
from signed_servers import SIGNER

from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.evidence.facts import DataFacts
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = pytest.mark.server

START = datetime.now(timezone.utc) - timedelta(hours=1)
OTHER_ROWS = tuple(
    DataFacts(role=role, rows=2000, rows_used=2000, digest=f"rowset-sha256/v1:{digit * 64}")
    for role, digit in (("members", "a"), ("non_members", "e"))
)


@pytest.fixture
def server(signed_server: LiveServer) -> LiveServer:
    return signed_server


@pytest.fixture
def client(server: LiveServer) -> MlflowClient:
    return client_of(server)


def client_of(server: LiveServer) -> MlflowClient:
    return MlflowClient(tracking_uri=server.url, registry_uri=server.url)


def evidence(seeded: SeededVersion | str, minute: int, **changes: Any) -> str:
    """A signed test of a version's bytes, made at that minute of the hour."""
    digest = seeded if isinstance(seeded, str) else seeded.digest
    return attestation(passing_evidence(digest, tested_at=START + timedelta(minutes=minute), **changes), SIGNER)


def tag(client: MlflowClient, seeded: SeededVersion, value: str) -> None:
    client.set_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG, value)


def promote(client: MlflowClient, seeded: SeededVersion) -> None:
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)


def promote_often(client: MlflowClient, seeded: SeededVersion) -> None:
    for _ in range(8):
        promote(client, seeded)


def refused_with(code: str, action: Callable[[], object]) -> str:
    started = time.monotonic()
    with pytest.raises(MlflowException) as caught:
        action()
    assert caught.value.error_code == "PERMISSION_DENIED"
    assert code in caught.value.message
    assert time.monotonic() - started < 30
    return str(caught.value.message)


def ledger(server: LiveServer, command: str, *options: str) -> tuple[int, Any]:
    """Run ``ledger show`` or ``ledger verify`` as the server's operator."""
    assert server.policy is not None
    place = ["--registry-uri", server.registry_database, "--policy", str(server.policy), "--output", "json"]
    done = CliRunner().invoke(program, ["ledger", command, *place, *options], catch_exceptions=False)
    return done.exit_code, json.loads(done.stdout)


def test_an_older_pass_set_again_after_a_fail_is_refused(client: MlflowClient) -> None:
    seeded = seed_version(client, "replayed", b"replayed")
    old = evidence(seeded, 1)
    tag(client, seeded, old)
    promote(client, seeded)
    tag(client, seeded, evidence(seeded, 2, aucs=FAILING_AUCS))
    refused_with("PG201", partial(promote, client, seeded))
    client.delete_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG)
    refused_with("PG001", partial(promote, client, seeded))
    tag(client, seeded, old)
    assert "fail" in refused_with("PG008", partial(promote, client, seeded))
    tag(client, seeded, evidence(seeded, 3))
    promote(client, seeded)


@pytest.mark.parametrize("whole", [False, True], ids=["version", "model"])
def test_deleting_and_recreating_what_failed_forgets_nothing(client: MlflowClient, whole: bool) -> None:
    name = f"recreated-{whole}"
    seeded = seed_version(client, name, name.encode())
    old = evidence(seeded, 1)
    tag(client, seeded, evidence(seeded, 2, aucs=FAILING_AUCS))
    if whole:
        client.delete_registered_model(name)
        client.create_registered_model(name)
    else:
        client.delete_model_version(name, seeded.version)
    again = client.create_model_version(name, seeded.source, run_id=seeded.run_id, tags={ATTESTATION_TAG: old})
    refused_with("PG008", lambda: client.set_registered_model_alias(name, "champion", again.version))


def test_a_copy_made_before_the_fail_is_refused_after_it(client: MlflowClient) -> None:
    seeded = seed_version(client, "original", b"original")
    tag(client, seeded, evidence(seeded, 1))
    copy = client.copy_model_version("models:/original/1", "candidate-copy")
    client.set_registered_model_alias("candidate-copy", "champion", copy.version)
    tag(client, seeded, evidence(seeded, 2, aucs=FAILING_AUCS))
    refused_with("PG008", lambda: client.set_registered_model_alias("candidate-copy", "champion", copy.version))
    client.create_registered_model("live-copy")
    tags = {ATTESTATION_TAG: evidence(seeded, 1)}
    refused_with("PG008", lambda: client.create_model_version("live-copy", "models:/candidate-copy/1", tags=tags))
    assert versions(client, "live-copy") == []


def test_a_pass_on_other_splits_does_not_supersede_a_fail(client: MlflowClient) -> None:
    seeded = seed_version(client, "other-splits", b"other splits")
    tag(client, seeded, evidence(seeded, 1, aucs=FAILING_AUCS))
    tag(client, seeded, evidence(seeded, 2, data=OTHER_ROWS))
    refused_with("PG108", partial(promote, client, seeded))
    tag(client, seeded, evidence(seeded, 3))  # the very splits that failed
    promote(client, seeded)
    tag(client, seeded, evidence(seeded, 4, data=OTHER_ROWS))
    promote(client, seeded)


def test_creating_and_copying_into_a_guarded_name_finds_the_newest_test_of_these_bytes(client: MlflowClient) -> None:
    seeded = seed_version(client, "found", b"found")
    tag(client, seeded, evidence(seeded, 1))
    client.create_registered_model("live-found")
    created = client.create_model_version("live-found", seeded.source, run_id=seeded.run_id)
    client.delete_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG)
    client.copy_model_version("models:/found/1", "live-found")
    assert versions(client, "live-found") == [created.version, "2"]
    tag(client, seeded, evidence(seeded, 2, aucs=FAILING_AUCS))
    refused_with("PG201", lambda: client.create_model_version("live-found", seeded.source, run_id=seeded.run_id))
    assert versions(client, "live-found") == [created.version, "2"]


def test_a_refused_version_leaves_no_trace_in_the_database(server: LiveServer, client: MlflowClient) -> None:
    run_id, source, _ = log_folder(client, b"no trace")
    client.create_registered_model("live-traceless")
    refused_with("PG001", lambda: client.create_model_version("live-traceless", source, run_id=run_id))
    engine = sqlalchemy.create_engine(server.registry_database)
    with engine.connect() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM model_versions WHERE name = 'live-traceless'").scalar()
    engine.dispose()
    assert left == 0


def test_of_two_promotions_at_once_the_one_without_evidence_is_refused_in_every_order(client: MlflowClient) -> None:
    second = seed_version(client, "at-once", b"two")
    third = seed_version(client, "at-once", b"three")
    tag(client, second, evidence(second, 1))
    answers: list[tuple[str, bool]] = []

    def ask(seeded: SeededVersion) -> None:
        try:
            promote(client, seeded)
            answers.append((seeded.version, True))
        except MlflowException:
            answers.append((seeded.version, False))

    for order in ((second, third), (third, second)) * 3:
        threads = [threading.Thread(target=ask, args=(seeded,)) for seeded in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.get_model_version_by_alias("at-once", "champion").version == second.version
    assert set(answers) == {(second.version, True), (third.version, False)}


def test_every_decision_is_shown_with_its_evidence_policy_and_asker(server: LiveServer, client: MlflowClient) -> None:
    seeded = seed_version(client, "shown", b"shown")
    refused_with("PG001", partial(promote, client, seeded))
    tag(client, seeded, evidence(seeded, 1))
    promote(client, seeded)
    code, rows = ledger(server, "show", "shown")
    assert code == 0
    assert [(row["kind"], row["result"]) for row in rows] == [
        ("decision", "refused"),
        ("attestation", "recorded"),
        ("decision", "allowed"),
    ]
    refused, recorded, allowed = rows
    assert refused["codes"] == ["PG001"]
    assert allowed["target"] == "alias champion"
    assert allowed["actor"] == "unauthenticated"
    assert allowed["workspace"] == "default"
    assert allowed["modelDigest"] == recorded["modelDigest"] == seeded.digest
    assert allowed["envelopeSha256"] == recorded["envelopeSha256"]
    assert len(allowed["splitDigests"]) == 2
    assert len(allowed["policySha256"]) == 64
    assert allowed["verificationSummary"]["verificationResult"] == "PASSED"


def test_two_servers_on_one_database_write_one_chain(server: LiveServer, client: MlflowClient, tmp_path: Path) -> None:
    seeded = seed_version(client, "two-servers", b"two servers")
    tag(client, seeded, evidence(seeded, 1))
    with live_server(
        tmp_path / "second",
        policy=server.policy,
        database=server.registry_database,
        options=["--artifacts-destination", str(server.artifacts)],
    ) as second:
        threads = [
            threading.Thread(target=partial(promote_often, client_of(at), seeded)) for at in (server, second) * 2
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    code, rows = ledger(server, "show", "two-servers")
    assert [row["result"] for row in rows].count("allowed") == 32
    code, chain = ledger(server, "verify")
    assert (code, chain["intact"]) == (0, True)


def test_mlflows_own_upgrade_is_undisturbed(server: LiveServer) -> None:
    command = [sys.executable, "-m", "mlflow", "db", "upgrade", server.registry_database]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert ledger(server, "verify")[1]["intact"] is True


def test_a_changed_row_is_named(server: LiveServer, client: MlflowClient) -> None:
    seeded = seed_version(client, "tampered", b"tampered")
    refused_with("PG001", partial(promote, client, seeded))
    code, rows = ledger(server, "show", "tampered")
    change = f"UPDATE privacy_gate_ledger SET result = '{{}}' WHERE sequence = {rows[0]['sequence']}"
    engine = sqlalchemy.create_engine(server.registry_database)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(change.format("allowed"))
        code, chain = ledger(server, "verify")
        assert (code, chain["broken_at"]) == (1, rows[0]["sequence"])
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(change.format("refused"))
        engine.dispose()
    assert ledger(server, "verify")[0] == 0


def test_a_test_whose_row_was_changed_is_named_and_promotes_nothing(server: LiveServer, client: MlflowClient) -> None:
    seeded = seed_version(client, "tampered-test", b"tampered test")
    tag(client, seeded, evidence(seeded, 1))
    _, rows = ledger(server, "show", "tampered-test")
    number = rows[0]["sequence"]
    change = f"UPDATE privacy_gate_ledger SET actor = '{{}}' WHERE sequence = {number}"
    engine = sqlalchemy.create_engine(server.registry_database)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(change.format("somebody"))
        assert f"row {number}" in refused_with("PG902", partial(promote, client, seeded))
        code, chain = ledger(server, "verify")
        assert (code, chain["broken_at"]) == (1, number)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(change.format(rows[0]["actor"]))
        engine.dispose()
    promote(client, seeded)


def test_a_ledger_that_cannot_be_written_refuses_and_nothing_is_lost(server: LiveServer, client: MlflowClient) -> None:
    seeded = seed_version(client, "unwritable", b"unwritable")
    tag(client, seeded, evidence(seeded, 1))
    engine = sqlalchemy.create_engine(server.registry_database)
    rename = "ALTER TABLE {} RENAME TO {}"
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(rename.format("privacy_gate_ledger", "elsewhere"))
        refused_with("PG902", partial(promote, client, seeded))
        refused_with("PG902", lambda: tag(client, seeded, evidence(seeded, 2)))
        client.set_registered_model_alias(seeded.name, "candidate", seeded.version)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(rename.format("elsewhere", "privacy_gate_ledger"))
        engine.dispose()
    assert "champion" not in client.get_registered_model(seeded.name).aliases
    promote(client, seeded)
    assert ledger(server, "verify")[0] == 0


def test_while_the_policy_is_broken_refusals_are_recorded_and_no_evidence_is_taken(
    server: LiveServer, client: MlflowClient
) -> None:
    seeded = seed_version(client, "broken-policy", b"broken policy")
    assert server.policy is not None
    text = server.policy.read_text(encoding="utf-8")
    try:
        server.policy.write_text(f"{text}\nno_such_key: 1\n", encoding="utf-8")
        refused_with("PG901", partial(promote, client, seeded))
        refused_with("PG901", lambda: tag(client, seeded, evidence(seeded, 1)))
        client.set_model_version_tag(seeded.name, seeded.version, "privacy_gate.remark", "words")
    finally:
        server.policy.write_text(text, encoding="utf-8")
    tag(client, seeded, evidence(seeded, 1))
    promote(client, seeded)
    _, rows = ledger(server, "show", "broken-policy")
    assert [(row["result"], row.get("codes")) for row in rows] == [
        ("refused", ["PG901"]),
        ("recorded", []),
        ("allowed", []),
    ]
