"""Opening a database file that may be new, one process at a time.

Whoever opens an empty SQLite file first lets MLflow create its tables there, in dozens of steps that are not one transaction. Two that do
so together leave each other with half of them. The folder of the file is what is locked, so that no file is left behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.registry.stores import SCHEME

OPENING_SECONDS = 120.0  # all of MLflow's migrations take a few seconds on an idle machine
_POLL_SECONDS = 0.02

_held: ContextVar[frozenset[Path]] = ContextVar("privacy_gate_opening", default=frozenset())


@contextmanager
def opening(*uris: str) -> Iterator[None]:
    """Let no other process of ours open these stores while the block runs; only SQLite files are waited for.

    CouldNotLook where another one does not come to an end. A block inside a block on the same folder does not wait for itself.
    """
    folders = {folder for uri in uris if (folder := _folder(uri)) is not None}
    with ExitStack() as locks:
        for folder in sorted(folders - _held.get()):
            locks.enter_context(_alone_in(folder))
        yield


def _folder(uri: str) -> Path | None:
    """Return the folder of an SQLite file, None for every other store and where the folder is not there."""
    inner = uri.removeprefix(f"{SCHEME}:")
    if not inner.startswith("sqlite"):
        return None
    try:
        database = make_url(inner).database
    except ArgumentError:
        return None
    folder = Path(database).resolve().parent if database and database != ":memory:" else None
    return folder if folder is not None and os.path.isdir(folder) else None  # noqa: PTH112 - Path.is_dir raises where it may not look


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: MLflow's own retries must do
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a folder that may not be listed, though the file in it can be opened
        handle = None
    if handle is None:
        yield
        return
    token = _held.set(_held.get() | {folder})
    try:
        deadline = time.monotonic() + OPENING_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if time.monotonic() > deadline:
                    raise CouldNotLook(
                        f"another process has been opening a database in {folder.name} for {OPENING_SECONDS:.0f} s; try again"
                    ) from exc
                time.sleep(_POLL_SECONDS)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        _held.reset(token)
        os.close(handle)
