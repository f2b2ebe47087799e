"""The ledger as a file of JSON lines: for registries that are no database of ours, or where the policy names a file.

One line is one row. The end of the chain stands in a second file beside it, ``<file>.head``, which is also what processes lock to take
turns. A row is on the disk (fsync) before anything it allows is written; one that does not fit on the disk is taken back whole. A line
that was being written when a machine stopped is no row, and is cut off by the next turn.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.ledger import (
    Entry,
    EntryKind,
    Head,
    KnownTests,
    Row,
    UnreadableRow,
    fault_of,
    from_line,
    next_row,
    to_line,
)
from mlflow_privacy_gate.registry.ledger._interface import Snapshot
from mlflow_privacy_gate.vocabulary import ReasonCode

TURN_SECONDS = 30.0
_POLL_SECONDS = 0.005
_HEAD_BYTES = 128


class FileLedger:
    """The ledger in a file; safe to share between threads, and with other processes on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._read = _Read()

    def describe(self) -> str:
        """Name the file."""
        return str(self.path)

    @contextmanager
    def turn(self) -> Iterator[FileTurn]:
        """Wait for the turn and give it; CouldNotLook (PG902) where it does not come or the file cannot be used."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise _failed(self.path, "is busy")
        try:
            with _locked(self.path.with_name(f"{self.path.name}.head")) as head_file:
                self._catch_up(_stored_head(head_file, self.path))
                yield FileTurn(self.path, head_file, self._read)
        finally:
            self._lock.release()

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Give all rows and the head, between two turns."""
        head_path = self.path.with_name(f"{self.path.name}.head")
        if not head_path.exists():
            raise _failed(self.path, "does not exist yet: no promotion was decided with it")
        with _locked(head_path) as head_file:
            head = _stored_head(head_file, self.path)
            lines = self._lines(0)
        yield Snapshot(_rows(lines), _end(lines, head))

    def tests_of(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded so far."""
        with self.turn() as turn:
            return turn.known_tests(model_digest)

    def _catch_up(self, head: Head) -> None:
        """Read what was added since the last turn of this process, and hold it to the chain."""
        for line in self._lines(self._read.size):
            row = _parsed(line, self.path)
            fault = fault_of(row, self._read.head, self._read.envelopes)
            if fault is not None:
                raise _failed(
                    self.path, f"is broken at row {row.sequence} ({fault}); see `mlflow-privacy-gate ledger verify`"
                )
            self._read.add(row, len(line))
        if self._read.head.sequence < head.sequence:
            raise _failed(self.path, f"ends with row {self._read.head.sequence}, where {head.sequence} were written")

    def _lines(self, start: int) -> list[bytes]:
        try:
            with self.path.open("rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise _failed(self.path, "is no regular file")
                stream.seek(start)
                content = stream.read()
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise _failed(self.path, f"cannot be read: {exc.strerror}") from exc
        return [line + b"\n" for line in content.split(b"\n")[:-1]]  # what follows the last line break is no row


class FileTurn:
    """A turn at the ledger in a file."""

    def __init__(self, path: Path, head_file: int, read: _Read) -> None:
        self._path = path
        self._head_file = head_file
        self._read = read

    def known_tests(self, model_digest: str) -> KnownTests:
        """Return every test of these bytes that was recorded."""
        return KnownTests(tuple(self._read.tests.get(model_digest, ())))

    def holds(self, envelope_sha256: str) -> bool:
        """Whether this envelope was recorded for itself."""
        return envelope_sha256 in self._read.recorded

    def append(self, entry: Entry, envelope: str | None = None) -> Row:
        """Add a row and wait until it is on the disk; CouldNotLook (PG902) leaves the file as it was."""
        stored = envelope is None or entry.envelope_sha256 in self._read.envelopes
        row = next_row(self._read.head, entry, None if stored else envelope)
        line = to_line(row)
        _append(self._path, self._read.size, line)
        self._read.add(row, len(line))
        _store_head(self._head_file, row.head, self._path)
        return row


class _Read:
    """What this process has read of the file so far."""

    def __init__(self) -> None:
        self.size = 0
        self.head = Head()
        self.envelopes: set[str] = set()
        self.recorded: set[str] = set()
        self.tests: dict[str, list[bytes]] = {}

    def add(self, row: Row, size: int) -> None:
        self.size += size
        self.head = row.head
        entry, sha256 = row.entry, row.entry.envelope_sha256
        if row.envelope is not None and sha256 is not None:
            self.envelopes.add(sha256)
        if entry.kind is not EntryKind.DECISION and sha256 is not None:
            self.recorded.add(sha256)
        if entry.kind is EntryKind.ATTESTATION and entry.model_digest is not None and row.envelope is not None:
            self.tests.setdefault(entry.model_digest, []).append(row.envelope.encode("utf-8"))


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open and lock a file for as long as the block runs; the lock goes with the process that holds it."""
    try:
        import fcntl
    except ImportError as exc:  # Windows
        raise _failed(path, "cannot be locked on this system; keep the ledger in the registry's database") from exc
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as exc:
        raise _failed(path, f"cannot be opened: {exc.strerror}") from exc
    try:
        deadline = time.monotonic() + TURN_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as exc:
                if time.monotonic() > deadline:
                    raise _failed(path, "is busy") from exc
                time.sleep(_POLL_SECONDS)
        yield file
    finally:
        os.close(file)


def _append(path: Path, size: int, line: bytes) -> None:
    """Write a line at the end that was read; whatever does not reach the disk whole is cut off again."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as exc:
        raise _failed(path, f"cannot be opened: {exc.strerror}") from exc
    try:
        os.ftruncate(file, size)  # the rest of a line that a stopped machine left
        written = 0
        while written < len(line):
            written += os.pwrite(file, line[written:], size + written)
        os.fsync(file)
    except OSError as exc:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise _failed(path, f"cannot be written: {exc.strerror}") from exc
    finally:
        os.close(file)


def _stored_head(head_file: int, path: Path) -> Head:
    content = os.pread(head_file, _HEAD_BYTES, 0)
    if not content:
        return Head()
    try:
        fields = json.loads(content)
        return Head(int(fields["sequence"]), str(fields["sha256"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise _failed(path, "is broken: its .head file cannot be read") from exc


def _store_head(head_file: int, head: Head, path: Path) -> None:
    # One length for ever, so that it is overwritten in place: a full disk cannot stop what the row on the disk already says.
    content = json.dumps({"sequence": head.sequence, "sha256": head.sha256}).ljust(_HEAD_BYTES - 1) + "\n"
    try:
        os.pwrite(head_file, content.encode("ascii"), 0)
        os.fsync(head_file)
    except OSError as exc:
        raise _failed(path, f"cannot be written: {exc.strerror}") from exc


def _rows(lines: list[bytes]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        try:
            yield from_line(line)
        except ValueError as exc:
            raise UnreadableRow(number, str(exc)) from exc


def _end(lines: list[bytes], head: Head) -> Head:
    """Return the head, moved on by a row that reached the disk just before the machine stopped; nothing was done on it."""
    if len(lines) == head.sequence + 1:
        with suppress(ValueError):
            last = from_line(lines[-1])
            return last.head if last.previous_sha256 == head.sha256 else head
    return head


def _parsed(line: bytes, path: Path) -> Row:
    try:
        return from_line(line)
    except ValueError as exc:
        raise _failed(path, f"holds a line that is no row: {exc}") from exc


def _failed(path: Path, what: str) -> CouldNotLook:
    # By name: clients of a server get to read this, and where it keeps its files is not theirs to know.
    return CouldNotLook(f"the ledger {path.name} {what}", code=ReasonCode.PG902)
