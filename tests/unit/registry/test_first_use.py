from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlflow_privacy_gate.registry.first_use import opening

if os.name != "posix":
    pytest.skip("folders are locked on POSIX only", allow_module_level=True)

HOLDER = """
import sys, time
from mlflow_privacy_gate.registry.first_use import opening
with opening(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def as_nobody() -> Iterator[None]:
    """Let root be somebody whom permissions hold for; everybody else is that already."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_process_that_was_killed_while_it_was_opening_holds_nobody_up(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with subprocess.Popen([sys.executable, "-c", HOLDER, uri], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
    started = time.monotonic()
    with opening(uri):
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("mode", [0o555, 0o333, 0o311, 0o000])
@pytest.mark.parametrize("inner", ["mlflow.db", "deeper/mlflow.db"])
def test_a_folder_that_may_not_be_read_or_written_is_left_to_the_database_to_complain_of(mode: int, inner: str) -> None:
    opened = False
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "deeper").mkdir()
        Path(folder).chmod(mode)
        with as_nobody(), opening(f"privacy-gate:sqlite:///{folder}/{inner}"):
            opened = True
        Path(folder).chmod(0o700)
    assert opened


@pytest.mark.parametrize("uri", ["sqlite:////nowhere/at/all.db", "sqlite:///:memory:", "sqlite://", "http://server"])
def test_what_has_no_folder_is_not_waited_for(uri: str) -> None:
    with opening(uri), opening(uri):
        pass
