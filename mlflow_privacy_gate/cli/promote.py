"""``promote``: check a version, then move it to a stage or point an alias at it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from mlflow_privacy_gate.cli.options import (
    isolation_option,
    key_option,
    output_option,
    policy_option,
    server_options,
    target_options,
)


@click.command("promote", epilog="Example: mlflow-privacy-gate promote models:/credit/7 --alias champion")
@click.argument("model_uri", metavar="MODEL")
@target_options
@click.option("--recorded", is_flag=True, help="Use the recorded evidence and do not test again (a rollback).")
@isolation_option
@key_option
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    stage: str | None,
    alias: str | None,
    recorded: bool,
    isolation: str,
    key: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Check MODEL and, when it passes, move it to --stage or point --alias at it (default: the first guarded stage).

    The decision is made here first, so that nobody waits in a request for a large model, and again by the guarded registry. A version
    that only waivers let through shows WAIVED here and in its verdict tag, never pass. Exit codes: 0 promoted, 1 failed or refused, 2
    usage or policy, 3 could not judge, 4 could not look.
    """
    from mlflow_privacy_gate import check
    from mlflow_privacy_gate.cli.check_formats import result_fields, text
    from mlflow_privacy_gate.cli.progress import shown_progress
    from mlflow_privacy_gate.cli.verify import decision_fields, decision_text, exit_code, parse_moment, promotion_named
    from mlflow_privacy_gate.gate import Route
    from mlflow_privacy_gate.gate.examining import examine
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
    from mlflow_privacy_gate.vocabulary import VERDICT_TAG

    in_force = find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    route, value = promotion_named(stage, alias, in_force)
    model = registry.resolve(model_uri)
    said: dict[str, Any] = {"promoted": False, "check": None, "decision": None}
    if not recorded:
        with shown_progress() as progress:
            result = check(
                f"models:/{model.name}/{model.version}" if model.versioned else model_uri,
                policy=in_force,
                key=key,
                isolation=isolation,
                tracking_uri=tracking_uri,
                registry_uri=registry_uri,
                progress=progress,
            )
        said["check"] = result_fields(result)
        _say(output, text(result))
        if result.exit_code != 0:
            _finish(output, said, result.exit_code)
    model = registry.resolve(f"models:/{model.name}/{model.version}" if model.versioned else model_uri)
    decision = examine(registry, model, in_force, route=route, value=value, now=parse_moment(None))
    said["decision"] = decision_fields(decision)
    if decision.waived or not decision.allowed:
        _say(output, decision_text(decision))
    if not decision.allowed:
        _finish(output, said, exit_code(decision))
    if route is Route.ALIAS:
        registry.set_alias(model, value)
    else:
        registry.set_stage(model, value)
    if decision.waived:
        registry.annotate(model, artifacts={}, tags={VERDICT_TAG: str(decision.outcome)})
    said["promoted"] = True
    _say(
        output,
        f"Promoted{' (WAIVED)' if decision.waived else ''}: {model.name} version {model.version} to {route} {value}.",
    )
    _finish(output, said, 0)


def _say(output: str, text: str) -> None:
    if output == "text":
        click.echo(text)


def _finish(output: str, said: dict[str, Any], exit_code: int) -> NoReturn:
    if output == "json":
        click.echo(json.dumps(said, indent=2))
    sys.exit(exit_code)
