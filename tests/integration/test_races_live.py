"""Fifty threads promote through two workers while others write tags, copy, rename, recreate and swap bytes: the database itself looks on.

For tags, names and statements the promise is: no promotion without valid evidence at that moment. For bytes it is: up to the last look.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy
from evidence_builder import attestation, passing_evidence
from live_server import LiveServer
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from promotion_audit import install_audit, noted
from registry_seed import SeededVersion, log_folder, seed_version
from signed_servers import SIGNER

from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.ledger import EntryKind, Result, Row, verify_chain
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.registry.ledger.sql_ledger import SqlLedger
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = [
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*transition_model_version_stage.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

SECONDS = 6.0
ENOUGH = 25
PROMOTERS = 50
TAGGED = 4


class Crowd:
    """The threads of one race, what each kind of request was answered, and the evidence that was ever valid."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.client = MlflowClient(tracking_uri=server.url, registry_uri=server.url)
        self.answers: Counter[tuple[str, str]] = Counter()
        self.valid: dict[str, str] = {}  # envelope -> digest, for every passing and signed one
        self.errors: list[str] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._clock = datetime.now(timezone.utc) - timedelta(minutes=30)

    def passing(self, digest: str) -> str:
        with self._lock:  # each newer than the last, as tests are
            self._clock += timedelta(milliseconds=1)
            made = attestation(passing_evidence(digest, tested_at=self._clock), SIGNER)
            self.valid[made] = digest
        return made

    def ask(self, kind: str, action: Callable[[], object]) -> bool:
        try:
            action()
        except MlflowException as exc:
            code = re.search(r"PG\d\d\d", str(exc))
            with self._lock:
                self.answers[kind, code.group() if code else str(exc.error_code)] += 1
                if exc.error_code in {"INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE"} and not code:
                    self.errors.append(f"{kind}: {exc}")
            return False
        with self._lock:
            self.answers[kind, "done"] += 1
        return True

    def add(self, count: int, work: Callable[[random.Random], None]) -> None:
        for number in range(count):
            self._threads.append(threading.Thread(target=self._run, args=(work, random.Random(number))))

    def _run(self, work: Callable[[random.Random], None], rng: random.Random) -> None:
        while not self._stop.is_set():
            try:
                work(rng)
            except Exception as exc:
                self.errors.append(f"{work}: {exc!r}")
                return

    def race(self) -> None:
        """Run for some seconds, and on a busy machine for longer, until enough was promoted and refused to speak of a race."""
        for thread in self._threads:
            thread.start()
        started = time.monotonic()
        while not self._enough() or time.monotonic() < started + SECONDS:
            assert time.monotonic() < started + 90, dict(self.answers)
            time.sleep(0.2)
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _enough(self) -> bool:
        with self._lock:
            promoted = sum(
                n for (kind, code), n in self.answers.items() if kind in {"alias", "stage"} and code == "done"
            )
            refused = sum(n for (_, code), n in self.answers.items() if code.startswith("PG"))
        return promoted >= ENOUGH and refused >= ENOUGH


def test_no_promotion_without_valid_evidence_at_that_moment(
    signed_server: LiveServer, record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = signed_server
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    crowd = Crowd(server)
    versions = seeded(crowd)
    install_audit(server.registry_database)
    start_crowd(crowd, versions)
    crowd.race()

    promotions, leaks = noted(server.registry_database), []
    digests = {(version.name, int(version.version)): version.digest for version in versions}
    for noticed in promotions:
        expected = digests.get((noticed.name, noticed.version))
        valid = crowd.valid.get(noticed.attestation or "")
        if valid is None or (expected is not None and valid != expected):
            leaks.append(noticed)
    rows = chain_of(server)
    counts = Counter(row.entry.result for row in rows if row.entry.kind is EntryKind.DECISION)
    for name, value in (("promotions", len(promotions)), ("decisions", dict(counts)), ("answers", dict(crowd.answers))):
        record_property(name, str(value))
        print(f"{name}: {value}")
    assert crowd.errors == []
    assert leaks == []
    assert len(promotions) > ENOUGH / 2
    assert counts[Result.REFUSED] >= ENOUGH
    assert counts[Result.NOT_WRITTEN] == 0
    every_allowance_names_the_newest_test(rows)
    nothing_unchecked_stands_under_a_guarded_name(crowd)


def seeded(crowd: Crowd) -> list[SeededVersion]:
    """Some versions whose evidence comes and goes, one without any, one whose bytes are swapped, one that will be renamed."""
    versions = [seed_version(crowd.client, f"tagged-{number}", b"%d" % number) for number in range(TAGGED)]
    versions += [seed_version(crowd.client, "unchecked", b"never"), seed_version(crowd.client, "swapped", b"right")]
    for version in (versions[0], versions[-1]):
        crowd.client.set_model_version_tag(version.name, "1", ATTESTATION_TAG, crowd.passing(version.digest))
    return versions


def start_crowd(crowd: Crowd, versions: list[SeededVersion]) -> None:
    client, swapped = crowd.client, versions[-1]

    def promote(rng: random.Random) -> None:
        version = rng.choice(versions)
        if rng.random() < 0.6:
            alias = rng.choice(["prod", "champion"])
            if crowd.ask("alias", lambda: client.set_registered_model_alias(version.name, alias, "1")):
                client.delete_registered_model_alias(version.name, alias)  # so that the next one is a change again
        elif crowd.ask("stage", lambda: client.transition_model_version_stage(version.name, "1", "Production")):
            client.transition_model_version_stage(version.name, "1", "Archived")

    def write_tags(rng: random.Random) -> None:
        version = rng.choice(versions[:TAGGED])
        other = rng.choice([found for found in versions if found is not version])
        junk = ["", "e30=", attestation(passing_evidence(version.digest), None), crowd.passing(other.digest)]
        if rng.random() < 0.2:
            crowd.ask("untag", lambda: client.delete_model_version_tag(version.name, "1", ATTESTATION_TAG))
        value = rng.choice(junk) if rng.random() < 0.5 else crowd.passing(version.digest)
        crowd.ask("tag", lambda: client.set_model_version_tag(version.name, "1", ATTESTATION_TAG, value))

    def copy(rng: random.Random) -> None:
        version = rng.choice(versions[:-1])
        crowd.ask("copy", lambda: client.copy_model_version(f"models:/{version.name}/1", "live-copies"))

    def rename(rng: random.Random) -> None:
        name = f"renamed-{rng.random()}"
        run_id, source, digest = log_folder(client, name.encode())
        client.create_registered_model(name)
        client.create_model_version(name, source, run_id=run_id)
        if rng.random() < 0.7:
            client.set_model_version_tag(name, "1", ATTESTATION_TAG, crowd.passing(digest))
        later = rng.random() * 0.3

        def untag_later() -> None:
            time.sleep(later)
            crowd.ask("untag", lambda: client.delete_model_version_tag(name, "1", ATTESTATION_TAG))

        untag = threading.Thread(target=untag_later)
        untag.start()
        crowd.ask("rename", lambda: client.rename_registered_model(name, f"live-{name}"))
        untag.join()

    def swap(_: random.Random) -> None:
        weights = crowd.server.artifacts / swapped.source.removeprefix("mlflow-artifacts:/") / "weights.bin"
        for content in (b"wrong", b"right"):
            weights.write_bytes(content)
            time.sleep(0.2)

    def recreate(rng: random.Random) -> None:
        """A model that is deleted and made anew under its name, with checked bytes and with unchecked ones."""
        checked = rng.random() < 0.5
        run_id, source, digest = log_folder(client, b"recreated" if checked else b"%f" % rng.random())
        crowd.ask("delete", lambda: client.delete_registered_model("recreated"))
        if crowd.ask("create", lambda: client.create_registered_model("recreated")):
            tags = {ATTESTATION_TAG: crowd.passing(digest)} if checked else {}
            crowd.ask("create", lambda: client.create_model_version("recreated", source, run_id=run_id, tags=tags))
        crowd.ask("alias", lambda: client.set_registered_model_alias("recreated", "champion", "1"))

    crowd.add(PROMOTERS, promote)
    for count, work in ((4, write_tags), (2, copy), (1, rename), (1, swap), (2, recreate)):
        crowd.add(count, work)


def chain_of(server: LiveServer) -> list[Row]:
    engine = sqlalchemy.create_engine(server.registry_database)
    with SqlLedger(engine, server.registry_database).snapshot() as snapshot:
        rows = list(snapshot.rows)
        chain = verify_chain(rows, snapshot.head)
    engine.dispose()
    assert chain.broken is None
    assert chain.rows == snapshot.head.sequence > 0
    return rows


def every_allowance_names_the_newest_test(rows: list[Row]) -> None:
    """By the chain alone: whatever was allowed was allowed on the newest test of its bytes that was known by then."""
    newest: dict[str, tuple[datetime, str]] = {}
    for row in rows:
        entry = row.entry
        if entry.kind is EntryKind.ATTESTATION:
            assert row.envelope is not None
            assert entry.model_digest is not None
            assert entry.envelope_sha256 is not None
            tested_at = read_statement(open_envelope(row.envelope.encode()).payload).tested_at
            known = newest.get(entry.model_digest)
            newest[entry.model_digest] = max(known or (tested_at, ""), (tested_at, entry.envelope_sha256))
        elif entry.result is Result.ALLOWED:
            assert entry.model_digest is not None
            assert newest[entry.model_digest][1] == entry.envelope_sha256


def nothing_unchecked_stands_under_a_guarded_name(crowd: Crowd) -> None:
    """Copies and renamed models hold bytes that a valid test was ever made of; none holds those of the unchecked version."""
    checked = set(crowd.valid.values())
    engine = sqlalchemy.create_engine(crowd.server.registry_database)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT name, version FROM model_versions WHERE current_stage <> 'Deleted_Internal'"
        ).fetchall()
    engine.dispose()
    for name, version in found:
        if name.startswith("live-"):
            location = crowd.client.get_model_version_download_uri(name, str(version))
            folder = crowd.server.artifacts / location.removeprefix("mlflow-artifacts:/")
            assert model_digest(folder) in checked
