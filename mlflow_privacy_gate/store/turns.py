"""A turn: the time in which one guarded call alone reads, decides, records and writes.

On a registry in a database a turn is one transaction. The inner store opens its sessions through one attribute; it is replaced on the
instance, so that inside a turn they join the turn's own connection, and what the inner store commits or rolls back are savepoints.
On SQLite a process takes its turns one by one and begins with the write lock; elsewhere raising the ledger's counter makes others wait.
Locks are taken from the ledger's head downwards: registered model, versions, tags.

On any other registry a turn is the lock of the ledger's file: what was written cannot be rolled back there, only undone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import column, select, table
from sqlalchemy.exc import SQLAlchemyError

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.ledger import Entry, Head, KnownTests, Row, next_row
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.ledger._interface import LedgerTurn
from mlflow_privacy_gate.registry.ledger.file_ledger import TURN_SECONDS, FileLedger
from mlflow_privacy_gate.registry.ledger.location import ledger_file
from mlflow_privacy_gate.registry.ledger.sql_ledger import SqlLedger
from mlflow_privacy_gate.vocabulary import ReasonCode

if TYPE_CHECKING:
    from mlflow.store.model_registry.abstract_store import AbstractStore
    from sqlalchemy import Connection, Engine

    from mlflow_privacy_gate.policy.model import Policy

_logger = logging.getLogger(__name__)
_MODELS, _VERSIONS, _TAGS = (
    table(name, column("name"), column("version"))
    for name in ("registered_models", "model_versions", "model_version_tags")
)


class Turn(Protocol):
    """One turn; ``transactional``: whether what is written in it can be rolled back."""

    @property
    def ledger(self) -> LedgerTurn:
        """The ledger, for as long as the turn lasts."""

    @property
    def transactional(self) -> bool:
        """Whether a savepoint takes back what was written after it."""

    def lock(self, name: str, version: str | None) -> None:
        """Let nobody else change a registered model, one of its versions (None: any) and their tags until the turn ends."""

    def savepoint(self) -> AbstractContextManager[object]:
        """Take back what was written inside it when it is left by an error."""


class Turns(Protocol):
    """Where turns are taken."""

    def turn(self, policy: Policy | None) -> AbstractContextManager[Turn]:
        """Take a turn, with the ledger that the policy names (None: no policy can be read); an error leaves nothing written."""

    def inside(self) -> bool:
        """Whether the call at hand is made from inside a turn, which answers for it."""

    def primary(self) -> AbstractContextManager[object]:
        """Read from where is written, not from a replica that lags behind."""


@dataclass(frozen=True)
class _Here:
    owner: object
    connection: Connection | None = None


_here: ContextVar[_Here | None] = ContextVar("privacy_gate_turn", default=None)


class SqlTurns:
    """Turns at a registry store in a database: each one transaction."""

    def __init__(self, store: AbstractStore) -> None:
        inner: Any = store
        self._engine: Engine = inner.engine
        self._db_type: str = inner.db_type
        self._plain_sessions: Callable[..., Any] = inner.ManagedSessionMaker
        self._has_replica = getattr(inner, "read_engine", None) is not None
        self.ledger = SqlLedger(self._engine, str(self._engine.url.render_as_string(hide_password=True)))
        self._files = _Files()
        # SQLite has one write lock for all: threads of one process wait for it here, in order, instead of polling for it.
        self._one_by_one = threading.Lock() if self._db_type == "sqlite" else None
        inner.ManagedSessionMaker = self._sessions

    def inside(self) -> bool:
        """Whether the call is made from inside a turn of this store."""
        here = _here.get()
        return here is not None and here.owner is self and here.connection is not None

    @contextmanager
    def primary(self) -> Iterator[None]:
        """Read from the primary database."""
        if not self._has_replica:
            yield
            return
        with _set(_Here(self)):
            yield

    @contextmanager
    def turn(self, policy: Policy | None) -> Iterator[Turn]:
        """Take a turn: a transaction that is committed at the end and rolled back on any error."""
        path = ledger_file(policy) if policy is not None else None
        if path is None:
            self.ledger.prepare()
        with self._files.ledger(path).turn() if path else nullcontext() as in_file, self._connected() as connection:
            taken = in_file if in_file is not None else self.ledger.take_turn(connection)
            with _set(_Here(self, connection)):
                yield _SqlTurn(taken, connection)
            connection.commit()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Give a connection in a transaction of its own that may write."""
        if self._one_by_one is not None and not self._one_by_one.acquire(timeout=TURN_SECONDS):
            raise CouldNotLook("the registry's database is busy", code=ReasonCode.PG902)
        try:
            with self._engine.connect() as connection:  # closing it rolls back what was not committed
                if self._db_type == "sqlite":
                    # Before the transaction: inside one, the first of these does nothing.
                    for setting in ("foreign_keys = ON", "busy_timeout = 20000", "case_sensitive_like = true"):
                        connection.exec_driver_sql(f"PRAGMA {setting}")
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection
        finally:
            if self._one_by_one is not None:
                self._one_by_one.release()

    def _sessions(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
        here = _here.get()
        if here is None or here.owner is not self:
            return self._plain_sessions(*args, **kwargs)  # type: ignore[no-any-return]
        if here.connection is None:
            return self._plain_sessions(*args, **{**kwargs, "read_only": False})  # type: ignore[no-any-return]
        return mlflow_private.managed_sessions(here.connection, self._db_type)(*args, **kwargs)


class _SqlTurn:
    transactional = True

    def __init__(self, ledger: LedgerTurn, connection: Connection) -> None:
        self.ledger = ledger
        self._connection = connection

    def lock(self, name: str, version: str | None) -> None:
        if self._connection.dialect.name == "sqlite":
            return  # BEGIN IMMEDIATE locked everything
        self._connection.execute(select(_MODELS.c.name).where(_MODELS.c.name == name).with_for_update())
        for held in (_VERSIONS, _TAGS):
            rows = select(held.c.version).where(held.c.name == name).order_by(held.c.version).with_for_update()
            known = version is not None and version.isascii() and version.isdigit() and len(version) < len("2147483647")
            self._connection.execute(rows.where(held.c.version == int(version or 0)) if known else rows)

    def savepoint(self) -> AbstractContextManager[object]:
        return self._connection.begin_nested()


class PlainTurns:
    """Turns at any other registry: the ledger's file is locked, and nothing can be rolled back."""

    def __init__(self) -> None:
        self._files = _Files()

    def inside(self) -> bool:
        """Whether the call is made from inside a turn of this store."""
        here = _here.get()
        return here is not None and here.owner is self

    def primary(self) -> AbstractContextManager[object]:
        """Nothing to do: there is one place to read from."""
        return nullcontext()

    @contextmanager
    def turn(self, policy: Policy | None) -> Iterator[Turn]:
        """Take a turn at the ledger's file."""
        path = ledger_file(policy, beside=True) if policy is not None else None
        with self._files.ledger(path).turn() if path else nullcontext(_Unkept()) as ledger, _set(_Here(self)):
            yield _PlainTurn(ledger)


class _PlainTurn:
    transactional = False

    def __init__(self, ledger: LedgerTurn) -> None:
        self.ledger = ledger

    def lock(self, name: str, version: str | None) -> None:
        pass  # the registry has no locks to take

    def savepoint(self) -> AbstractContextManager[object]:
        return nullcontext()


class _Unkept:
    """No ledger: under the built-in policy, which trusts no key, and without any, nothing is ever allowed."""

    def known_tests(self, model_digest: str) -> KnownTests:  # noqa: ARG002
        return KnownTests()

    def holds(self, envelope_sha256: str) -> bool:  # noqa: ARG002
        return False

    def append(self, entry: Entry, envelope: str | None = None) -> Row:
        return next_row(Head(), entry, envelope)


class _Files:
    """The ledgers in files, one object each, since it remembers what it has read."""

    def __init__(self) -> None:
        self._opened: dict[Path, FileLedger] = {}
        self._lock = threading.Lock()

    def ledger(self, path: Path) -> FileLedger:
        with self._lock:
            return self._opened.setdefault(path, FileLedger(path))


@contextmanager
def _set(here: _Here) -> Iterator[None]:
    token = _here.set(here)
    try:
        yield
    finally:
        _here.reset(token)


def turns_at(store: AbstractStore) -> Turns:
    """Give the turns of a registry store; a database without the ledger's tables gets them now, or at the first promotion."""
    if not mlflow_private.keeps_sql(store):
        return PlainTurns()
    turns = SqlTurns(store)
    try:
        turns.ledger.prepare()
    except (CouldNotLook, SQLAlchemyError):
        _logger.exception("privacy gate: the ledger cannot be kept yet; promotions are refused (PG902) until it can")
    return turns
