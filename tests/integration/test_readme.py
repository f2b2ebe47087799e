"""Everything the README says is run: its tutorial for real, its other commands as far as the program must understand them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from mlflow_privacy_gate.cli.program import COMMANDS, program
from mlflow_privacy_gate.policy import Policy
from mlflow_privacy_gate.vocabulary import REASONS, RULE_URL

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- tutorial: (\w+) -->\n)?```bash\n(.*?)```", README, flags=re.DOTALL)
TUTORIAL = [(kind, text) for kind, text in BLOCKS if kind]


def _commands() -> list[str]:
    joined = [line for _, text in BLOCKS for line in text.replace("\\\n", " ").splitlines()]
    return [line.strip() for line in joined if line.strip().startswith("mlflow-privacy-gate ")]


@pytest.mark.parametrize("line", _commands())
def test_every_command_in_the_readme_is_one_the_program_understands(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = program.get_command(click.Context(program), name)
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), arguments.pop(0))
    assert command is not None, f"no command {name!r}"
    with command.make_context(name, arguments):
        pass


def test_every_command_stands_in_the_readme() -> None:
    assert [name for name in COMMANDS if f"| `{name}` |" not in README] == []


def test_every_reason_code_stands_in_the_readme_with_its_meaning() -> None:
    assert [code for code, reason in REASONS.items() if f"| {code} | {reason.title} |" not in README] == []


def test_every_policy_key_stands_in_the_readme() -> None:
    keys = [
        name for name in Policy.model_fields if name not in ("version", "sha256", "source_name", "folder", "loosened")
    ]
    assert [key for key in keys if not re.search(rf"\| `{key}[.`]", README)] == []


def test_the_rule_is_credited_with_its_link() -> None:
    assert README.count(RULE_URL) >= 2


def test_ci_runs_the_readmes_own_test_command() -> None:
    (command,) = [text.strip() for kind, text in BLOCKS if not kind and ".venv/bin/pytest" in text]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.server
@pytest.mark.slow
def test_the_tutorial_ends_with_a_refusal_and_a_promotion(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "tutorial").mkdir()
    port = _free_port()
    session = "set -e\n"
    server = next(text for kind, text in TUTORIAL if kind == "server").replace("5000", str(port))
    outputs: list[str] = []
    (first_kind, first), *rest = [(kind, text) for kind, text in TUTORIAL if kind != "server"]
    assert first_kind == "shell"
    _shell(first, tmp_path)
    with _running(server, tmp_path / "tutorial", port):
        for kind, text in rest:
            text = text.replace("5000", str(port))
            session += "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))
            answer = _shell(session + text, tmp_path / "tutorial", must_fail=kind == "refused")
            outputs.append(answer)
    forest, refusal, regularised = outputs
    assert "version 1: fail" in forest
    assert "Privacy gate refused alias champion for tumours version 1: attack AUC over the margin (PG201)." in refusal
    assert "version 2: pass" in regularised
    assert re.search(r"tumours +2 +alias champion +pass", regularised)


def _shell(script: str, folder: Path, *, must_fail: bool = False) -> str:
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=_environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode != 0) is must_fail, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def _running(script: str, folder: Path, port: int) -> Iterator[None]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=_environment(), stdout=output, stderr=output, start_new_session=True
        )
        try:
            _wait(port, process, log)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(log.read_text(errors="replace")[-3000:])


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PRIVACY_GATE"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "COLUMNS": "140",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
