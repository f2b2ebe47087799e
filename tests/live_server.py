"""A real ``mlflow server`` for tests: gated registry on SQLite, proxied artifacts, all under one folder, killed at the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class LiveServer:
    """A running server: its address, the folder it keeps everything in, its policy file and its log.

    ``registry_database`` is the plain, ungated URI of its database: what the server's operator could open.
    """

    url: str
    folder: Path
    policy: Path | None
    log: Path
    registry_database: str

    @property
    def artifacts(self) -> Path:
        """Where the server keeps the artifacts it serves."""
        return self.folder / "artifacts"


@contextmanager
def live_server(
    folder: Path,
    *,
    policy: Path | None = None,
    workers: int = 1,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    gated: bool = True,
    database: str | None = None,
) -> Iterator[LiveServer]:
    """Run ``mlflow server`` with ``privacy-gate:`` before its registry URI until the block ends; no process outlives it.

    Its database is SQLite in the folder unless another is named.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database = database or f"sqlite:///{folder / 'mlflow.db'}"
    port = free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", database, "--registry-store-uri", f"privacy-gate:{database}" if gated else database),
        *("--artifacts-destination", str(folder / "artifacts"), "--workers", str(workers), *options),
    ]
    log = folder / "server.log"
    server = LiveServer(f"http://127.0.0.1:{port}", folder, policy, log, database)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(policy, environment),
            cwd=folder,
            start_new_session=True,
        )
        try:
            _wait_until_healthy(server, process)
            yield server
        finally:
            _stop(process)


@contextmanager
def typed_server(
    script: str, folder: Path, environment: Mapping[str, str], *, port: str | None = None
) -> Iterator[str]:
    """Run the server that a shell command starts, as a person would type it, until the block ends; give its address.

    ``port`` is the port that the command names, to be exchanged for a free one; without it one is added to the command's end.
    """
    free = str(free_port())
    script = f"{script.rstrip()} --port {free}" if port is None else script.replace(port, free)
    server = LiveServer(f"http://127.0.0.1:{free}", folder, None, folder / "server.log", "")
    with server.log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", script], stdout=output, stderr=output, env=environment, cwd=folder, start_new_session=True
        )
        try:
            _wait_until_healthy(server, process)
            yield server.url
        finally:
            _stop(process)


def _environment(policy: Path | None, more: Mapping[str, str] | None) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "_MLFLOW", "PRIVACY_GATE"))
    }
    kept["MLFLOW_DISABLE_TELEMETRY"] = "true"
    kept["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    if policy is not None:
        kept["PRIVACY_GATE_POLICY"] = str(policy)
    return {**kept, **(more or {})}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: LiveServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(
        f"the server did not become healthy; its log:\n{server.log.read_text(errors='replace')[-4000:]}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server and every worker it started: they share one process group."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            break
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait(_STOP_SECONDS)
