"""A database file that is new, opened by several processes at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

STATUS = (sys.executable, "-m", "mlflow_privacy_gate", "status")


@pytest.mark.parametrize("scheme", ["", "privacy-gate:"], ids=["plain", "gated"])
def test_commands_that_open_a_new_database_at_once_all_get_their_answer(tmp_path: Path, scheme: str) -> None:
    tracking, registry = (f"sqlite:///{tmp_path / name}" for name in ("tracking.db", "registry.db"))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PRIVACY_GATE"))
    }
    started = [
        subprocess.Popen(
            [*STATUS, "--tracking-uri", tracking, "--registry-uri", f"{scheme}{registry}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        for _ in range(3)
    ]
    ended = [(process.communicate(timeout=240)[0], process.returncode) for process in started]
    assert [code for _, code in ended] == [0, 0, 0], "\n".join(said for said, _ in ended)
    for name in ("tracking.db", "registry.db"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)
    assert {path.name for path in tmp_path.iterdir()} <= {"tracking.db", "registry.db"}
