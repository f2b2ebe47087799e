"""Both places for a ledger keep one chain, whoever writes at once, and keep nothing half."""

from __future__ import annotations

import hashlib
import multiprocessing
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
import sqlalchemy

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.ledger import Chain, Entry, EntryKind, Result, verify_chain
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.registry.ledger._interface import Ledger, LedgerTurn
from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger
from mlflow_privacy_gate.registry.ledger.location import ledger_file, reachable_ledger
from mlflow_privacy_gate.registry.ledger.sql_ledger import SqlLedger
from mlflow_privacy_gate.vocabulary import ReasonCode

ENVELOPES = ['{"a":"1"}', '{"a":"2"}']


class InDatabase:
    """A ledger in SQLite, each turn a transaction."""

    def __init__(self, folder: Path) -> None:
        self.uri = f"sqlite:///{folder / 'mlflow.db'}"
        self.engine = sqlalchemy.create_engine(self.uri, connect_args={"timeout": 20})
        self.ledger = SqlLedger(self.engine, self.uri)
        self.ledger.prepare()

    @contextmanager
    def turn(self) -> Iterator[LedgerTurn]:
        with self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield self.ledger.take_turn(connection)
            connection.commit()


class InFile:
    """A ledger in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.ledger = FileLedger(self.path)

    def turn(self) -> AbstractContextManager[LedgerTurn]:
        return self.ledger.turn()


Place = InDatabase | InFile


@pytest.fixture(params=[InDatabase, InFile])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made: Place = request.param(tmp_path)
    yield made
    if isinstance(made, InDatabase):
        made.engine.dispose()


def attested(envelope: str, digest: str = "a" * 64) -> Entry:
    return Entry(
        at=datetime(2026, 3, 1, tzinfo=timezone.utc),
        kind=EntryKind.ATTESTATION,
        actor="unauthenticated",
        workspace="default",
        name="credit",
        result=Result.RECORDED,
        model_digest=digest,
        envelope_sha256=hashlib.sha256(envelope.encode()).hexdigest(),
    )


def decided(number: int = 0) -> Entry:
    return replace(attested(ENVELOPES[0]), kind=EntryKind.DECISION, result=Result.REFUSED, version=str(number))


def walked(ledger: Ledger) -> Chain:
    with ledger.snapshot() as snapshot:
        return verify_chain(snapshot.rows, snapshot.head)


def test_what_is_appended_is_known_in_order_and_an_envelope_is_kept_once(place: Place) -> None:
    with place.turn() as turn:
        assert turn.known_tests("a" * 64).count == 0
        for envelope in ENVELOPES:
            turn.append(attested(envelope), envelope)
        turn.append(decided(), ENVELOPES[0])
    with place.turn() as turn:
        assert turn.known_tests("a" * 64).envelopes == tuple(envelope.encode() for envelope in ENVELOPES)
        assert turn.known_tests("b" * 64).count == 0
        assert turn.holds(hashlib.sha256(ENVELOPES[1].encode()).hexdigest())
        assert not turn.holds("0" * 64)
    with place.ledger.snapshot() as snapshot:
        assert [row.envelope for row in snapshot.rows] == [*ENVELOPES, None]
    assert walked(place.ledger).broken is None
    assert place.ledger.tests_of("a" * 64).count == 2


def test_an_envelope_that_was_only_decided_on_was_not_recorded_for_itself(place: Place) -> None:
    with place.turn() as turn:
        turn.append(decided(), ENVELOPES[0])
        assert not turn.holds(hashlib.sha256(ENVELOPES[0].encode()).hexdigest())


def test_many_threads_write_one_chain(place: Place) -> None:
    def write(number: int) -> None:
        for _ in range(5):
            with place.turn() as turn:
                turn.append(decided(number), ENVELOPES[0])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain = walked(place.ledger)
    assert (chain.rows, chain.broken) == (40, None)


def _write_from_another_process(folder: str) -> None:
    ledger = FileLedger(Path(folder) / "ledger.jsonl")
    for number in range(20):
        with ledger.turn() as turn:
            turn.append(decided(number), ENVELOPES[0])


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_from_another_process, args=(str(tmp_path),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    chain = walked(FileLedger(tmp_path / "ledger.jsonl"))
    assert (chain.rows, chain.broken) == (60, None)


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE privacy_gate_ledger SET result = 'allowed' WHERE sequence = 2", 2),
        ("UPDATE privacy_gate_ledger SET kind = 'nonsense' WHERE sequence = 2", 2),
        ("DELETE FROM privacy_gate_ledger WHERE sequence = 3", 3),
        ("DELETE FROM privacy_gate_ledger WHERE sequence = 2", 2),
        ("UPDATE privacy_gate_ledger SET sequence = 9 WHERE sequence = 1", 1),
        ("UPDATE privacy_gate_ledger SET envelope = NULL", 1),
    ],
)
def test_tampering_in_the_database_is_named(tmp_path: Path, statement: str, row: int) -> None:
    place = InDatabase(tmp_path)
    for number in range(3):
        with place.turn() as turn:
            turn.append(decided(number), ENVELOPES[0])
    with place.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    broken = walked(place.ledger).broken
    place.engine.dispose()
    assert broken is not None
    assert broken.sequence == row


@pytest.mark.parametrize(
    "change",
    [
        "envelope = '{}'",
        "envelope = NULL",
        "codes = 'PG201'",
        "version = '9'",
        "result = 'rubbish'",
        "split_digests = ''",
        "sha256 = 'f'",
    ],
)
def test_a_test_whose_row_was_changed_in_the_database_decides_nothing(tmp_path: Path, change: str) -> None:
    place = InDatabase(tmp_path)
    with place.turn() as turn:
        turn.append(replace(attested(ENVELOPES[0]), split_digests=("x",)), ENVELOPES[0])
    with place.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE privacy_gate_ledger SET {change} WHERE sequence = 1")
    with pytest.raises(CouldNotLook, match="row 1") as caught, place.turn() as turn:
        turn.known_tests("a" * 64)
    assert caught.value.code is ReasonCode.PG902
    place.engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM privacy_gate_ledger WHERE sequence = 3",
        "DELETE FROM privacy_gate_ledger",
        "UPDATE privacy_gate_ledger_head SET sequence = 2",
        "UPDATE privacy_gate_ledger_head SET sha256 = 'f'",
        "DELETE FROM privacy_gate_ledger_head",
    ],
)
def test_a_database_whose_ledger_was_cut_off_gives_no_further_turn(tmp_path: Path, statement: str) -> None:
    place = InDatabase(tmp_path)
    for number in range(3):
        with place.turn() as turn:
            turn.append(decided(number))
    with place.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(CouldNotLook, match="ledger is broken") as caught, place.turn():
        pass
    assert caught.value.code is ReasonCode.PG902
    place.engine.dispose()


def test_a_file_that_was_tampered_with_takes_no_further_row(tmp_path: Path) -> None:
    place = InFile(tmp_path)
    for number in range(3):
        with place.turn() as turn:
            turn.append(decided(number), ENVELOPES[0])
    lines = place.path.read_bytes().splitlines(keepends=True)
    for tampered, row in (
        (lines[:-1], 3),
        ([lines[0], lines[2]], 2),
        ([lines[0], lines[1].replace(b"refused", b"allowed"), lines[2]], 2),
        ([lines[0], b"junk\n", lines[2]], 2),
    ):
        place.path.write_bytes(b"".join(tampered))
        broken = walked(place.ledger).broken
        assert broken is not None
        assert broken.sequence == row
        with pytest.raises(CouldNotLook) as caught, FileLedger(place.path).turn():
            pass
        assert caught.value.code is ReasonCode.PG902


def test_a_line_that_a_stopped_machine_left_half_is_no_row_and_makes_way(tmp_path: Path) -> None:
    place = InFile(tmp_path)
    with place.turn() as turn:
        turn.append(decided(), ENVELOPES[0])
    with place.path.open("ab") as stream:
        stream.write(b'{"actor":"unauth')
    with FileLedger(place.path).turn() as turn:
        turn.append(decided(1))
    assert (walked(place.ledger).rows, walked(place.ledger).broken) == (2, None)


def _fill(folder: str) -> None:
    ledger = FileLedger(Path(folder) / "ledger.jsonl")
    with ledger.turn() as turn:
        turn.append(decided(), ENVELOPES[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with pytest.raises(CouldNotLook) as caught, ledger.turn() as turn:
        turn.append(decided(1), "x" * 5000)
    assert caught.value.code is ReasonCode.PG902


def test_a_row_that_does_not_fit_on_the_disk_is_taken_back_whole(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(str(tmp_path),))
    process.start()
    process.join()
    assert process.exitcode == 0
    ledger = FileLedger(tmp_path / "ledger.jsonl")
    assert (walked(ledger).rows, walked(ledger).broken) == (1, None)
    with ledger.turn() as turn:
        turn.append(decided(2))
    assert walked(ledger).rows == 2


def test_the_policy_names_the_file_from_its_own_folder(tmp_path: Path) -> None:
    named = parse_policy(b"version: 1\nledger: kept/ledger.jsonl\n", "policy.yaml", folder=tmp_path)
    assert ledger_file(named) == tmp_path / "kept" / "ledger.jsonl"
    silent = parse_policy(b"version: 1\n", "policy.yaml", folder=tmp_path)
    assert ledger_file(silent) is None
    assert ledger_file(silent, beside=True) == tmp_path / "privacy-gate-ledger.jsonl"
    assert reachable_ledger("http://127.0.0.1:9", silent) is None


def test_reading_a_database_without_a_ledger_creates_none(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'plain.db'}"
    silent = parse_policy(b"version: 1\n", "policy.yaml", folder=tmp_path)
    ledger = reachable_ledger(f"privacy-gate:{uri}", silent)
    assert ledger is not None
    with pytest.raises(CouldNotLook, match="there is no ledger"):
        ledger.tests_of("a" * 64)
    engine = sqlalchemy.create_engine(uri)
    assert sqlalchemy.inspect(engine).get_table_names() == []
    engine.dispose()
