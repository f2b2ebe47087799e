"""The program: its commands, loaded only when called, and how every error becomes a message and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import click

from mlflow_privacy_gate.cli.failure import failure_of
from mlflow_privacy_gate.errors import PrivacyGateError

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
    "verify-removal": ("verify_removal", "Say whether a recorded removal audit is to be believed, and what it says."),
    "ledger": ("ledger", "Show what was recorded and decided, and verify that nothing of it was changed."),
    "policy": ("policy", "Check or show the policy."),
}

# Where the user has not said otherwise: no bars in between our lines, and seconds, not minutes, for a server that does not answer.
_MLFLOW_HERE = {"MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


_FOR_JSON = f"{__name__}.for_json"


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether JSON is asked for before any other word of the call can be wrong."""
        ctx.meta[_FOR_JSON] = "--output=json" in args or ("--output", "json") in pairwise(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what stops one that was asked for JSON is said as JSON on stdout, before it is said in words on stderr."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.meta[_FOR_JSON]:
                click.echo(failure_of(error, f"{ctx.info_name} {ctx.invoked_subcommand}").as_json())
            raise

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
    """Run the program; every error ends as a message on stderr and its own exit code, with a traceback only where the fault is ours.

    With ``--output json`` stdout then holds one object ``error`` with ``code``, ``message``, ``remedy`` and ``exit_code``.
    """
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
    except Exception as error:
        if not isinstance(error, PrivacyGateError):
            traceback.print_exc()
        failure = failure_of(error, "mlflow-privacy-gate")
        click.echo(failure.text(), err=True)
        sys.exit(failure.exit_code)
