from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import click
import pytest
from command_line import run

from mlflow_privacy_gate.cli.options import output_option
from mlflow_privacy_gate.cli.program import COMMANDS, main, program
from mlflow_privacy_gate.errors import (
    CouldNotJudge,
    CouldNotLook,
    EvidenceRejected,
    InternalError,
    PolicyError,
    PrivacyGateError,
    PromotionRefused,
    SplitsUnavailable,
    UsageError,
)


def every_command() -> list[tuple[str, ...]]:
    """Name every command and subcommand."""
    context = click.Context(program)
    found: list[tuple[str, ...]] = [()]
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, sub) for sub in command.list_commands(context)]
    return found


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    for option in ("--help", "-h"):
        ran = run(*command, option)
        assert ran.exit_code == 0
        assert ran.stdout.startswith("Usage: mlflow-privacy-gate")
        assert ran.stderr == ""


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_help_cuts_nothing_short_at_80_columns(command: tuple[str, ...]) -> None:
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        shown = run(*command, "--help").stdout
    assert [line for line in shown.splitlines()[1:] if "..." in line] == []
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_help_is_of_one_kind(command: tuple[str, ...]) -> None:
    found: click.Command = program
    for name in command:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name) or pytest.fail(name)
    options = [option for option in found.params if isinstance(option, click.Option)]
    named = [option.opts[0] for option in options]
    assert [option.opts for option in options if not (option.help or "").endswith((".", ")"))] == []
    assert [option.opts for option in options if isinstance(option.type, click.Path) and not option.metavar] == []
    shared = [name for name in ("--key", "--policy", "--tracking-uri", "--registry-uri", "--output") if name in named]
    assert named[len(named) - len(shared) :] == shared or command[:1] == ("ledger",)  # what is shared comes last
    if "--tracking-uri" in named:
        assert "Exit codes: 0" in " ".join((found.help or "").split())
        assert found.epilog


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_the_example_in_a_commands_help_is_one_it_understands(command: tuple[str, ...]) -> None:
    found: click.Command = program
    for name in command:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name) or pytest.fail(name)
    if found.epilog:
        words = shlex.split(found.epilog.removeprefix("Example: "))
        assert words[: 1 + len(command)] == ["mlflow-privacy-gate", *command]
        with found.make_context(" ".join(command), words[1 + len(command) :]):
            pass


def test_help_lists_every_command_with_a_line_of_its_own() -> None:
    shown = run("--help").stdout
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert all(line.endswith(".") for _, line in COMMANDS.values())


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_answers_within_half_a_second_of_processor_time() -> None:
    command = [str(Path(sys.executable).parent / "mlflow-privacy-gate"), "--help"]
    assert min(cpu_seconds(command) for _ in range(3)) < 0.5


@pytest.mark.parametrize("command", ["check", "status", "promote", "verify"])
def test_help_of_a_command_loads_none_of_the_heavy_libraries(command: str) -> None:
    asked = (
        "import sys\nsys.argv = ['mlflow-privacy-gate', sys.argv[1], '--help']\n"
        "from mlflow_privacy_gate.cli.program import main\n"
        "try:\n    main()\nfinally:\n"
        "    print('LOADED', sorted({'mlflow', 'pandas', 'sklearn', 'scipy', 'matplotlib', 'torch'} & set(sys.modules)))\n"
    )
    told = subprocess.run([sys.executable, "-c", asked, command], check=True, capture_output=True, text=True)
    assert "LOADED []" in told.stdout


def test_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert run("--version").stdout == f"mlflow-privacy-gate, version {version('mlflow-privacy-gate')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("check",),
        ("check", "models:/a/1", "--no-such-option"),
        ("check", "models:/a/1", "--output", "xml"),
        ("init", "--dir", "/no/such/folder"),
        ("verify", "models:/a/1", "--at"),
    ],
    ids=" ".join,
)
def test_a_call_that_cannot_be_meant_ends_with_2_and_says_why(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert "Error" in ran.stderr
    assert ran.stdout == ""


MISSING = "/no/such/file.csv"
ROWS = ("--calibration-train", "--calibration-test", "--control", "--query", "--members", "--non-members")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("audit-removal", option) for option in ROWS[:4]),
        *(("check", option) for option in (*ROWS[4:], "--card", "--policy", "--key")),
        *(
            (command, "--policy")
            for command in ("audit-removal", "verify", "status", "promote", "card write", "report")
        ),
        ("audit-removal", "--key"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_ends_with_2_at_once_and_is_named(command: str, option: str, tmp_path: Path) -> None:
    there = tmp_path / "rows.csv"
    there.write_text("a,y\n1,0\n")
    others = {"audit-removal": ROWS[:4], "check": ROWS[4:]}.get(command, ())
    given = [word for other in others if other != option for word in (other, str(there))]
    nowhere = (
        "--tracking-uri",
        "http://127.0.0.1:9",
        "--registry-uri",
        "http://127.0.0.1:9",
    )  # asked, it would end with 4
    model = () if command == "status" else ("models:/a/1",)
    ran = run(*command.split(), *model, *given, option, MISSING, *nowhere)
    assert ran.exit_code == 2, ran
    assert MISSING in ran.stderr
    assert option in ran.stderr or option in ("--policy", "--key", "--card")


JSON_ERRORS = [
    (UsageError("say it otherwise"), None, 2),
    (PolicyError(["privacy-gate.yaml:3: mode: got odd"]), "PG901", 2),
    (CouldNotJudge("no answers"), "PG111", 3),
    (SplitsUnavailable("no splits"), "PG104", 3),
    (EvidenceRejected("forged"), "PG002", 1),
    (CouldNotLook("no server"), "PG007", 4),
    (click.UsageError("odd option"), None, 2),
]


@pytest.mark.parametrize(("error", "code", "exit_code"), JSON_ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_of_a_command_that_was_asked_for_json_is_one_object_on_stdout(
    error: Exception, code: str | None, exit_code: int, failing: dict[str, Exception]
) -> None:
    failing["with"] = error
    ran = run("failing", "--output", "json")
    said = json.loads(ran.stdout)["error"]
    assert (said["code"], said["exit_code"], ran.exit_code) == (code, exit_code, exit_code)
    assert said["message"] in ran.stderr
    assert said["remedy"]


@pytest.mark.parametrize("asking", [("--output", "json"), ("--output=json",)], ids=" ".join)
def test_an_option_that_cannot_be_meant_is_json_too(asking: tuple[str, ...]) -> None:
    ran = run("check", "models:/a/1", "--no-such-option", *asking)
    assert ran.exit_code == 2
    assert "--no-such-option" in json.loads(ran.stdout)["error"]["message"]
    assert "--no-such-option" in ran.stderr


@pytest.mark.parametrize(
    ("error", "exit_code", "shown"),
    [
        (UsageError("say it otherwise"), 2, "say it otherwise"),
        (PolicyError(["privacy-gate.yaml:3: mode: got odd"]), 2, "PG901: privacy-gate.yaml:3: mode: got odd"),
        (CouldNotJudge("no answers"), 3, "PG111: no answers"),
        (SplitsUnavailable("no splits"), 3, "PG104: no splits"),
        (EvidenceRejected("forged"), 1, "PG002: forged"),
        (PromotionRefused("refused"), 1, "refused"),
        (CouldNotLook("no server"), 4, "PG007: no server"),
        (InternalError("ours"), 4, "PG909: ours"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_kind_of_error_is_one_message_and_its_own_exit_code(
    error: PrivacyGateError, exit_code: int, shown: str, failing: dict[str, Exception]
) -> None:
    failing["with"] = error
    ran = run("failing")
    assert (ran.exit_code, ran.stderr, ran.stdout) == (exit_code, shown + "\n", "")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """A command that fails with whatever is put here."""
    error: dict[str, Exception] = {}

    @click.command("failing")
    @output_option()
    def command(output: str) -> None:
        raise error["with"]

    module = type(sys)("mlflow_privacy_gate.cli.failing")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "failing", ("failing", "Fails."))
    return error


def test_a_fault_of_ours_keeps_its_traceback_and_asks_to_be_reported(
    failing: dict[str, Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing["with"] = ZeroDivisionError("oops")
    monkeypatch.setattr(sys, "argv", ["mlflow-privacy-gate", "failing"])
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().err
    assert stop.value.code == 4
    assert "Traceback" in told
    assert told.splitlines()[-1].startswith("PG909: a fault of mlflow-privacy-gate, please report it")


def test_ctrl_c_ends_with_130(failing: dict[str, Exception]) -> None:
    failing["with"] = click.Abort()
    assert run("failing").exit_code == 130


def test_importing_the_package_loads_nothing_heavy() -> None:
    asked = (
        "import sys, mlflow_privacy_gate\n"
        "assert 'check' in mlflow_privacy_gate.__all__\n"
        "print(sorted({'mlflow', 'pandas', 'numpy', 'sklearn', 'scipy', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    assert told.stdout == "[]\n"


def test_no_warning_is_raised_by_help() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run("check", "--help").exit_code == 0
