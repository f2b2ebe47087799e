"""The ledger as two tables of the registry's own database, so that a row and the promotion it speaks of are one transaction.

The tables have a ``MetaData`` of their own: MLflow's migrations know nothing of them. They are created after MLflow's tables exist (before,
they would make ``mlflow db upgrade`` take the database for one in use), and again where another process was creating them
at the same moment. The head has one row, and raising its counter is how a turn is taken: every database makes the next one wait.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.exc import SQLAlchemyError

from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected
from mlflow_privacy_gate.evidence.ledger import (
    BEFORE_THE_FIRST,
    Entry,
    EntryKind,
    Head,
    KnownTests,
    Row,
    UnreadableRow,
    change_in,
    next_row,
)
from mlflow_privacy_gate.evidence.wire import decode, encode
from mlflow_privacy_gate.registry.ledger._interface import Snapshot
from mlflow_privacy_gate.registry.stores import said_without_credentials
from mlflow_privacy_gate.vocabulary import ReasonCode

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LONG = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_TABLES = MetaData()
_HEAD = Table(
    "privacy_gate_ledger_head",
    _TABLES,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("turns", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
)
_ROWS = Table(
    "privacy_gate_ledger",
    _TABLES,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("previous_sha256", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("at", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("actor", Text, nullable=False),
    Column("workspace", String(63), nullable=False),
    Column("name", String(256), nullable=False),
    Column("version", String(32)),
    Column("model_digest", String(64)),
    Column("split_digests", Text, nullable=False),
    Column("target", Text),
    Column("mode", String(16)),
    Column("policy_sha256", String(64)),
    Column("envelope_sha256", String(64)),
    Column("envelope", _LONG),
    Column("result", String(16), nullable=False),
    Column("codes", Text, nullable=False),
    Index("ix_privacy_gate_ledger_digest", "model_digest", "kind"),
    Index("ix_privacy_gate_ledger_envelope", "envelope_sha256"),
)
_CREATE_TRIES = 12
_ONE = 1


class SqlLedger:
    """The ledger in the database behind an engine; ``uri`` is how that database is named to people."""

    def __init__(self, engine: Engine, uri: str) -> None:
        self._engine = engine
        self._uri = uri
        self._ready = False

    def describe(self) -> str:
        """Say which database, without credentials."""
        return f"the table {_ROWS.name} in {said_without_credentials(self._uri)}"

    def prepare(self) -> None:
        """Create the tables unless they are there; CouldNotLook (PG902) where they cannot be."""
        if self._ready:
            return
        for attempt in range(_CREATE_TRIES):
            try:
                _TABLES.create_all(self._engine)
                _insert_head(self._engine)
            except SQLAlchemyError as exc:  # mostly: another process is creating them at this moment
                if attempt == _CREATE_TRIES - 1:
                    raise _failed("the ledger's tables cannot be created in the registry's database", exc) from exc
                time.sleep(random.uniform(0.05, 0.1) * (attempt + 1))  # noqa: S311 - spreads processes, guards nothing
            else:
                self._ready = True
                return

    def take_turn(self, connection: Connection) -> SqlTurn:
        """Wait for the turn, which ends with the connection's transaction; SQLAlchemy's own errors pass through.

        CouldNotLook (PG902) where the last row is not the one that the head names, for then rows were taken off the end.
        """
        counted = update(_HEAD).where(_HEAD.c.id == _ONE).values(turns=_HEAD.c.turns + 1)
        if connection.dialect.update_returning:
            head = _head(connection.execute(counted.returning(_HEAD.c.sequence, _HEAD.c.sha256)).first())
        else:
            connection.execute(counted)
            head = _stored_head(connection)
        last = connection.execute(select(_ROWS.c.sequence, _ROWS.c.sha256).order_by(_ROWS.c.sequence.desc()).limit(1))
        if (Head() if (found := last.first()) is None else _head(found)) != head:
            raise _broken(head.sequence, "the ledger does not end there")
        return SqlTurn(connection, head)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Give all rows and the head as of one moment."""
        try:
            with self._reading() as connection:
                head = _stored_head(connection)
                found = connection.execution_options(yield_per=500).execute(select(_ROWS).order_by(_ROWS.c.sequence))
                yield Snapshot((_row(fields._asdict()) for fields in found), head)
        except SQLAlchemyError as exc:
            raise _failed(f"{self.describe()} cannot be read", exc) from exc

    def tests_of(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded so far."""
        try:
            with self._reading() as connection:
                return _known_tests(connection, model_digest)
        except SQLAlchemyError as exc:
            raise _failed(f"{self.describe()} cannot be read", exc) from exc

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if not inspect(self._engine).has_table(_ROWS.name):
            raise CouldNotLook(
                f"there is no ledger in {said_without_credentials(self._uri)}: no gated store has been opened on it yet",
                code=ReasonCode.PG902,
            )
        with self._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")  # by itself the driver begins nothing before a SELECT
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection


class SqlTurn:
    """A turn at the ledger, inside one transaction."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head

    def known_tests(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded."""
        return _known_tests(self._connection, model_digest)

    def holds(self, envelope_sha256: str) -> bool:
        """Whether this envelope was recorded for itself."""
        found = select(_ROWS.c.sequence).where(
            _ROWS.c.envelope_sha256 == envelope_sha256, _ROWS.c.kind != str(EntryKind.DECISION)
        )
        return self._connection.execute(found.limit(1)).first() is not None

    def append(self, entry: Entry, envelope: str | None = None) -> Row:
        """Add a row and move the head to it."""
        if envelope is not None:
            stored = select(_ROWS.c.sequence).where(
                _ROWS.c.envelope_sha256 == entry.envelope_sha256, _ROWS.c.envelope.is_not(None)
            )
            if self._connection.execute(stored.limit(1)).first() is not None:
                envelope = None
        row = next_row(self._head, entry, envelope)
        self._connection.execute(insert(_ROWS).values(**_columns(row)))
        moved = update(_HEAD).where(_HEAD.c.id == _ONE).values(sequence=row.sequence, sha256=row.sha256)
        self._connection.execute(moved)
        self._head = row.head
        return row


def _insert_head(engine: Engine) -> None:
    with engine.begin() as connection:
        if connection.execute(select(_HEAD.c.id)).first() is None:
            connection.execute(insert(_HEAD).values(id=_ONE, turns=0, sequence=0, sha256=BEFORE_THE_FIRST))


def _stored_head(connection: Connection) -> Head:
    return _head(connection.execute(select(_HEAD.c.sequence, _HEAD.c.sha256).where(_HEAD.c.id == _ONE)).first())


def _head(found: Any) -> Head:
    if found is None:
        raise CouldNotLook(f"the ledger is broken: {_HEAD.name} holds no row", code=ReasonCode.PG902)
    return Head(int(found[0]), str(found[1]))


def _known_tests(connection: Connection, model_digest: str) -> KnownTests:
    found = connection.execute(
        select(_ROWS)
        .where(
            _ROWS.c.model_digest == model_digest,
            _ROWS.c.kind == str(EntryKind.ATTESTATION),
        )
        .order_by(_ROWS.c.sequence)
    )
    return KnownTests(tuple(_unchanged(fields._asdict()) for fields in found))


def _unchanged(columns: Mapping[str, Any]) -> bytes:
    """Give a test's envelope; CouldNotLook (PG902) where its row is not as it was written, since then nothing is known of this test."""
    try:
        row = _row(columns)
    except UnreadableRow as exc:
        raise CouldNotLook(f"{exc}; see `mlflow-privacy-gate ledger verify`", code=ReasonCode.PG902) from exc
    changed = change_in(row)
    if changed is not None or row.envelope is None:
        raise _broken(row.sequence, changed or "the envelope that it names is missing")
    return row.envelope.encode("utf-8")


def _broken(sequence: int, problem: str) -> CouldNotLook:
    return CouldNotLook(
        f"the ledger is broken at row {sequence} ({problem}); see `mlflow-privacy-gate ledger verify`",
        code=ReasonCode.PG902,
    )


def _columns(row: Row) -> dict[str, Any]:
    """Lay a row out in columns: the facts as they are written everywhere, lists as words."""
    entry = row.entry
    return {
        **{field: encode(value) for field, value in vars(entry).items() if value is not None},
        "split_digests": " ".join(entry.split_digests),
        "codes": " ".join(entry.codes),
        "sequence": row.sequence,
        "previous_sha256": row.previous_sha256,
        "sha256": row.sha256,
        "envelope": row.envelope,
    }


def _row(columns: Mapping[str, Any]) -> Row:
    written: dict[str, Any] = {
        "at": columns["at"],
        "kind": columns["kind"],
        "actor": columns["actor"],
        "workspace": columns["workspace"],
        "name": columns["name"],
        "version": columns["version"],
        "modelDigest": columns["model_digest"],
        "splitDigests": columns["split_digests"].split(),
        "target": columns["target"],
        "mode": columns["mode"],
        "policySha256": columns["policy_sha256"],
        "envelopeSha256": columns["envelope_sha256"],
        "result": columns["result"],
        "codes": columns["codes"].split(),
    }
    try:
        entry = decode(Entry, {key: value for key, value in written.items() if value is not None}, "row")
    except EvidenceRejected as exc:
        raise UnreadableRow(int(columns["sequence"]), exc.message) from exc
    return Row(int(columns["sequence"]), columns["previous_sha256"], entry, columns["sha256"], columns["envelope"])


def _failed(what: str, exc: Exception) -> CouldNotLook:
    return CouldNotLook(f"{what}: {type(exc).__name__}", code=ReasonCode.PG902)
