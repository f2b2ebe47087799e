"""``card``: print a model's card, write it again from the recorded evidence, find the mistakes in one."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option, server_options
from mlflow_privacy_gate.errors import UsageError

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.recorded import Officers
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy

_MODEL_SCHEMES = ("models:", "runs:")


@click.group("card")
def command() -> None:
    """Show, write or lint a model card."""


@command.command(
    "show", short_help="Print a card as it is found.", epilog="Example: mlflow-privacy-gate card show models:/credit/7"
)
@click.argument("model_uri", metavar="MODEL")
@policy_option
@server_options
def show(model_uri: str, policy: Path | None, tracking_uri: str | None, registry_uri: str | None) -> None:
    """Print MODEL's card as it is found; where there is none, the one that `card write` would write.

    Where it was found, and that the model is untested, is said on stderr. Exit codes: 0 printed, 2 usage or policy, 3 a card that cannot
    be added to, 4 could not look.
    """
    from mlflow_privacy_gate.checks.found_card import find_card
    from mlflow_privacy_gate.checks.recorded import NEVER_TESTED, recorded_card, recorded_envelope
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    registry = MlflowRegistry(tracking_uri, registry_uri)
    model = registry.resolve(model_uri)
    found = find_card(registry, model)
    if recorded_envelope(registry, model) is None:
        click.echo(f"{model_uri}: UNTESTED. {NEVER_TESTED}", err=True)
    if found.text is not None:
        click.echo(f"Found in {found.where}.", err=True)
        click.echo(found.text, nl=False)
        return
    in_force = find_policy(policy, os.environ, Path.cwd())
    click.echo("No card was found; this is the one that `card write` would write.", err=True)
    now = datetime.now(timezone.utc)
    card = recorded_card(registry, model, found, in_force, officers=officers(in_force, model, now), now=now)
    click.echo(card.text, nl=False)


@command.command(
    "write",
    short_help="Write a card again from the recorded evidence.",
    epilog="Example: mlflow-privacy-gate card write models:/credit/7",
)
@click.argument("model_uri", metavar="MODEL")
@click.option(
    "--card",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write into this local card (made where it is missing) and leave MLflow as it is.",
)
@policy_option
@server_options
@output_option()
def write(
    model_uri: str,
    file: Path | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Write MODEL's card and description again from its recorded evidence, judged under the policy in force.

    Nothing is measured, and no tag is touched. A model without a test that counts gets a card that says so. Exit codes: 0 written,
    2 usage or policy, 3 a card that cannot be added to, 4 could not look.
    """
    from mlflow_privacy_gate.checks.found_card import find_card
    from mlflow_privacy_gate.checks.recorded import recorded_card
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    in_force = find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    model = registry.resolve(model_uri)
    if file is None and model.run_id is None and not model.versioned:
        raise UsageError(f"{model_uri}: neither a run nor a registered version holds its card; name a file with --card")
    found = find_card(registry, model, read_card(file) if file is not None and file.exists() else None)
    now = datetime.now(timezone.utc)
    card = recorded_card(registry, model, found, in_force, officers=officers(in_force, model, now), now=now)
    if file is not None:
        file.write_bytes(card.text.encode("utf-8"))
        places = [str(file)]
    else:
        registry.write_card(model, path=found.path, card=card.text.encode("utf-8"), description=card.description)
        places = [f"runs:/{model.run_id}/{found.path}"] if model.run_id else []
        places += ["the version's description"] if card.description is not None else []
    if output == "json":
        click.echo(json.dumps({"model": model_uri, "verdict": card.verdict, "written": places}, indent=2))
        return
    click.echo(f"{model_uri}: {card.verdict.upper()}, written to {' and '.join(places)}.")
    for finding in card.findings:
        click.echo(f"{finding.code} {finding.title} ({finding.effect}). Next: {finding.remedy}.")


@command.command(
    "lint", short_help="Report every mistake in a card.", epilog="Example: mlflow-privacy-gate card lint README.md"
)
@click.argument("source", metavar="FILE|MODEL")
@server_options
@output_option()
def lint(source: str, tracking_uri: str | None, registry_uri: str | None, output: str) -> None:
    """Report every mistake in a card with its line: claims, markers, words never said of a model.

    Exit codes: 0 no mistakes, 1 mistakes, 2 usage, 4 could not look.
    """
    from mlflow_privacy_gate.cards.lint import lint as mistakes_in

    problems = mistakes_in(_card_of(source, tracking_uri, registry_uri))
    if output == "json":
        click.echo(json.dumps({"card": source, "problems": list(problems)}, indent=2))
    else:
        click.echo("\n".join(f"{source}: {problem}" for problem in problems) or f"{source}: no mistakes.")
    sys.exit(int(bool(problems)))


def _card_of(source: str, tracking_uri: str | None, registry_uri: str | None) -> str:
    from mlflow_privacy_gate.checks.found_card import find_card
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    if not source.startswith(_MODEL_SCHEMES):
        return read_card(Path(source))
    registry = MlflowRegistry(tracking_uri, registry_uri)
    found = find_card(registry, registry.resolve(source))
    if found.text is None:
        raise UsageError(f"{source} has no card; `mlflow-privacy-gate card write {source}` makes one")
    return found.text


def officers(policy: Policy, model: ResolvedModel, now: datetime) -> Officers:
    """Give the function that says, for a believed test, what the officers' statements beside it come to now."""
    from mlflow_privacy_gate.gate.statement_views import statements_in_force

    return lambda test: statements_in_force(policy, model, model_digest=test.verified.evidence.model_digest, now=now)


def read_card(file: Path) -> str:
    """Read a card file; UsageError where it is missing or no UTF-8 text."""
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{file}: cannot read the card: {exc}") from exc
