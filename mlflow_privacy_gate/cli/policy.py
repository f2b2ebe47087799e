"""``policy``: find every mistake in a policy, or print what is in force."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option


@click.group("policy")
def command() -> None:
    """Check or show the policy."""


@command.command("lint")
@click.argument("file", type=click.Path(path_type=Path), default=Path("privacy-gate.yaml"))
def lint(file: Path) -> None:
    """Report every mistake in FILE (default privacy-gate.yaml) with its line; exit 2 when there is one."""
    from mlflow_privacy_gate.policy import load_policy

    policy = load_policy(file)
    click.echo(f"{file}: no mistakes (sha256 {policy.sha256}).")
    if not policy.keys:
        click.echo("Note: no key stands in it, so no signed evidence can be believed.")
    if policy.mode != "enforce":
        click.echo(f"Note: mode is {policy.mode}: promotions are not refused.")


@command.command("show")
@policy_option
@output_option()
def show(policy: Path | None, output: str) -> None:
    """Print the policy in force, with every key and the preset's values."""
    from mlflow_privacy_gate.policy import effective_yaml, find_policy

    found = find_policy(policy, os.environ, Path.cwd())
    if output == "json":
        click.echo(json.dumps({"sha256": found.sha256, "policy": found.model_dump(mode="json")}, indent=2))
        return
    click.echo(f"# {found.source_name or 'built-in policy'}, sha256 {found.sha256}")
    click.echo(effective_yaml(found), nl=False)
