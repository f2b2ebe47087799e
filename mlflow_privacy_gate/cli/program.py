"""The program: its commands, loaded only when called, and how every error becomes a message and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from importlib.metadata import version

import click

from mlflow_privacy_gate.errors import InternalError, PrivacyGateError
from mlflow_privacy_gate.vocabulary import ReasonCode

# command -> (module, one line of help): the module is imported only when the command runs, so that --help stays fast.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Train three models, check them, and try to promote them: one is refused."),
    "init": ("init", "Write privacy-gate.yaml and a signing key."),
    "check": ("check", "Test a logged model and write the result to its card, tags and run."),
    "verify": ("verify", "Say whether a promotion would be allowed now, and why."),
    "promote": ("promote", "Check a version, then move it to a stage or alias."),
    "status": ("status", "Show every version, its verdict, and what production points to."),
    "waive": ("waive", "Sign a waiver: permit one promotion in spite of named findings, for a while."),
    "sign-off": ("sign_off", "Sign off a test for one promotion, or state that a model holds no personal data."),
    "keys": ("keys", "List the keys that the policy trusts, or make one."),
    "card": ("card", "Show a model's card, write it again from the recorded evidence, or find its mistakes."),
    "report": ("report", "Give the evaluation report of a model's recorded test."),
    "audit-removal": ("audit_removal", "Audit whether a retrained model still remembers rows it was to forget."),
    "ledger": ("ledger", "Show what was recorded and decided, and verify that nothing of it was changed."),
    "policy": ("policy", "Check or show the policy."),
}

# Where the user has not said otherwise: no bars in between our lines, and seconds, not minutes, for a server that does not answer.
_MLFLOW_HERE = {"MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


class LazyGroup(click.Group):
    """A click group that imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Name the commands in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and give one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"mlflow_privacy_gate.cli.{COMMANDS[cmd_name][0]}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands with their lines, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("mlflow-privacy-gate"), prog_name="mlflow-privacy-gate")
def program() -> None:
    """Test logged models for membership leakage, and refuse promotions that have no valid passing evidence.

    Exit codes: 0 pass or allowed, 1 fail or refused, 2 usage or policy, 3 could not judge, 4 could not look.
    """


def main() -> None:
    """Run the program; every error ends as a message on stderr and its own exit code, with a traceback only where the fault is ours."""
    for name, value in _MLFLOW_HERE.items():
        os.environ.setdefault(name, value)
    try:
        program.main(prog_name="mlflow-privacy-gate", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(mistake.exit_code)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except PrivacyGateError as error:
        click.echo(f"{error.code}: {error.message}" if error.code else error.message, err=True)
        sys.exit(error.exit_code)
    except Exception as fault:
        traceback.print_exc()
        click.echo(f"{ReasonCode.PG909}: a fault of mlflow-privacy-gate, please report it: {fault!r}", err=True)
        sys.exit(InternalError.exit_code)
