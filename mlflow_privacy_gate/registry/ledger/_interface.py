"""The port to a ledger: reading all of it, and taking a turn to add to it. Every failure is CouldNotLook with code PG902."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from mlflow_privacy_gate.evidence.ledger import Entry, Head, KnownTests, Row


@dataclass(frozen=True)
class Snapshot:
    """A ledger as it was at one moment: its rows in order (an iterator, to be read once) and its stored head."""

    rows: Iterator[Row]
    head: Head


class LedgerTurn(Protocol):
    """The ledger while nobody else can add to it: what is read stays true until the turn ends."""

    def known_tests(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded."""

    def holds(self, envelope_sha256: str) -> bool:
        """Whether a row about this very envelope was recorded as an attestation or an officer's statement."""

    def append(self, entry: Entry, envelope: str | None = None) -> Row:
        """Add a row; ``envelope`` is the text whose sha256 the entry names, stored unless it already is."""


class Ledger(Protocol):
    """A ledger for reading."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Give the whole ledger as it is at this moment."""

    def tests_of(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded so far."""

    def describe(self) -> str:
        """Say where the ledger is, without credentials."""
