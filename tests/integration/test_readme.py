"""Everything the README says is run: its tutorial for real, its other commands as far as the program must understand them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from live_server import typed_server

from mlflow_privacy_gate.cli.program import COMMANDS, program
from mlflow_privacy_gate.policy import Policy
from mlflow_privacy_gate.vocabulary import REASONS, RULE_URL

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- tutorial: (\w+) -->\n)?```bash\n(.*?)```", README, flags=re.DOTALL)
OUTPUTS = re.findall(r"<!-- output: ([\w ]+) -->\n```text\n(.*?)```", README, flags=re.DOTALL)
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


def test_what_the_readme_makes_in_the_clone_is_ignored_by_git() -> None:
    made = [".venv", "privacy-gate-demo", *re.findall(r"mkdir -p (\S+)", "".join(text for _, text in TUTORIAL))]
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert len(made) > 2
    assert [folder for folder in made if not {f"{folder}/", f"/{folder}/"} & set(ignored)] == []


def test_ci_runs_the_readmes_own_test_command() -> None:
    (command,) = [text.strip() for kind, text in BLOCKS if not kind and ".venv/bin/pytest" in text]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.server
@pytest.mark.slow
def test_the_tutorial_ends_with_a_refusal_and_a_promotion(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "tutorial").mkdir()
    session = "set -e\n"
    server = next(text for kind, text in TUTORIAL if kind == "server")
    outputs: list[str] = []
    (first_kind, first), *rest = [(kind, text) for kind, text in TUTORIAL if kind != "server"]
    assert first_kind == "shell"
    _shell(first, tmp_path)
    with typed_server(server, tmp_path / "tutorial", _environment(), port="5000") as url:
        for kind, text in rest:
            text = text.replace("http://127.0.0.1:5000", url)
            session += "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))
            answer = _shell(session + text, tmp_path / "tutorial", must_fail=kind == "refused")
            outputs.append(answer)
    forest, refusal, regularised = outputs
    assert "version 2: pass" in regularised
    printed = {"version 1": forest, "refusal": refusal, "status": regularised}
    assert [name for name, _ in OUTPUTS] == list(printed)
    for name, text in OUTPUTS:
        assert _form(text) in _form(printed[name]), printed[name]


def _form(text: str) -> str:
    """Give a text without what differs from run to run: digits, digests and how wide a table is drawn."""
    lines = [re.sub(r"\d", "0", re.sub(r"\b[0-9a-f]{16,}\b", "DIGEST", line)) for line in text.splitlines()]
    return "\n".join(re.sub("─+", "─", line).rstrip() for line in lines)


def _shell(script: str, folder: Path, *, must_fail: bool = False) -> str:
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=_environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode != 0) is must_fail, done.stdout + done.stderr
    return done.stdout + done.stderr


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PRIVACY_GATE"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "COLUMNS": "140",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
