"""``promote``: check a version, then move it to a stage or point an alias at it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mlflow_privacy_gate.cli.options import (
    isolation_option,
    key_option,
    output_option,
    policy_option,
    server_options,
    target_options,
)

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.gate import Decision, Route
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry


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
    from mlflow_privacy_gate.cli.verify import decision_fields, decision_text, exit_code, parse_moment, promotion_named
    from mlflow_privacy_gate.gate.examining import examine
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    in_force = find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    route, value = promotion_named(stage, alias, in_force)
    model = registry.resolve(model_uri)
    pinned = f"models:/{model.name}/{model.version}" if model.versioned else model_uri
    told = _Told(output)
    if not recorded:
        _test(pinned, in_force, told, key=key, isolation=isolation, servers=(tracking_uri, registry_uri))
        model = registry.resolve(pinned)  # with the tags that the test left
    decision = examine(registry, model, in_force, route=route, value=value, now=parse_moment(None))
    told.fields["decision"] = decision_fields(decision)
    if decision.waived or not decision.allowed:
        told.say(decision_text(decision))
    if not decision.allowed:
        told.end(exit_code(decision))
    _move(registry, model, decision, route=route, value=value)
    told.fields["promoted"] = True
    waived = " (WAIVED)" if decision.waived else ""
    told.say(f"Promoted{waived}: {model.name} version {model.version} to {route} {value}.")
    told.end(0)


class _Told:
    """What this command says: step by step to a person, or as one JSON object at its end."""

    def __init__(self, output: str) -> None:
        self.fields: dict[str, Any] = {"promoted": False, "check": None, "decision": None}
        self._output = output

    def say(self, text: str) -> None:
        if self._output == "text":
            click.echo(text)

    def end(self, exit_code: int) -> NoReturn:
        if self._output == "json":
            click.echo(json.dumps(self.fields, indent=2))
        sys.exit(exit_code)


def _test(
    model_uri: str,
    policy: Policy,
    told: _Told,
    *,
    key: str | None,
    isolation: str,
    servers: tuple[str | None, str | None],
) -> None:
    """Check the version; the command ends here, with the check's own exit code, unless it passed."""
    from mlflow_privacy_gate import check
    from mlflow_privacy_gate.cli.check_formats import result_fields, text
    from mlflow_privacy_gate.cli.progress import shown_progress

    tracking_uri, registry_uri = servers
    with shown_progress() as progress:
        result = check(
            model_uri,
            policy=policy,
            key=key,
            isolation=isolation,
            tracking_uri=tracking_uri,
            registry_uri=registry_uri,
            progress=progress,
        )
    told.fields["check"] = result_fields(result)
    told.say(text(result))
    if result.exit_code != 0:
        told.end(result.exit_code)


def _move(registry: Registry, model: ResolvedModel, decision: Decision, *, route: Route, value: str) -> None:
    from mlflow_privacy_gate.gate import Route
    from mlflow_privacy_gate.vocabulary import VERDICT_TAG

    if route is Route.ALIAS:
        registry.set_alias(model, value)
    else:
        registry.set_stage(model, value)
    if decision.waived:
        registry.annotate(model, artifacts={}, tags={VERDICT_TAG: str(decision.outcome)})
