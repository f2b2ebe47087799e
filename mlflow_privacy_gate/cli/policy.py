"""``policy``: find every mistake in a policy, or print what is in force."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option
from mlflow_privacy_gate.errors import UsageError


@click.group("policy")
@policy_option
@click.pass_context
def command(context: click.Context, policy: Path | None) -> None:
    """Check or show the policy."""
    context.obj = policy


@command.command("lint", short_help="Report every mistake in a policy.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@policy_option
@click.pass_obj
def lint(before: Path | None, file: Path | None, policy: Path | None) -> None:
    """Report every mistake in FILE with its line, and what may not be meant as it stands; exit 2 when there is a mistake.

    Without FILE it is the policy that every other command would take, but never the built-in.
    """
    from mlflow_privacy_gate.policy import lint as linted
    from mlflow_privacy_gate.policy.location import POLICY_FILE, POLICY_VARIABLE

    path = _one(before, file, policy) or Path(os.environ.get(POLICY_VARIABLE) or POLICY_FILE)
    found, cautions = linted(path)
    click.echo(f"{path}: no mistakes (sha256 {found.sha256}).")
    for caution in cautions:
        click.echo(f"Note: {caution}.")


def _one(*named: Path | None) -> Path | None:
    """Give the one file that was named; UsageError where two different ones were."""
    found = {path for path in named if path is not None}
    if len(found) > 1:
        raise UsageError(f"name one policy, not {len(found)}: {', '.join(sorted(map(str, found)))}")
    return next(iter(found), None)


@command.command("show", short_help="Print the policy in force.")
@policy_option
@output_option()
@click.pass_obj
def show(before: Path | None, policy: Path | None, output: str) -> None:
    """Print the policy in force, with every key and the preset's values."""
    from mlflow_privacy_gate.policy import effective_yaml, find_policy

    found = find_policy(_one(before, policy), os.environ, Path.cwd())
    if output == "json":
        click.echo(json.dumps({"sha256": found.sha256, "policy": found.model_dump(mode="json")}, indent=2))
        return
    click.echo(f"# {found.source_name or 'built-in policy'}, sha256 {found.sha256}")
    click.echo(effective_yaml(found), nl=False)
