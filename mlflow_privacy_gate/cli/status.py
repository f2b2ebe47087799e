"""``status``: every version, its verdict under the policy in force, and what production points to."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option, server_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlflow_privacy_gate.gate.examining import Standing

_WHOLE = ("version", "verdict", "attack\nAUC", "margin", "counts\nuntil", "codes")  # words never broken over two lines
_UNBOUNDED = 400  # columns, where nobody says how many there are
_ROOMY = 100  # columns from which on there is room for two blanks between two cells


@click.command("status", epilog="Example: mlflow-privacy-gate status credit --rehash")
@click.argument("name", required=False, metavar="[MODEL_NAME]")
@click.option(
    "--rehash", is_flag=True, help="Hash every version's stored bytes; finds artifacts changed after a promotion."
)
@policy_option
@server_options
@output_option()
def command(
    name: str | None,
    rehash: bool,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Show every registered version (or those of MODEL_NAME), judged anew under the policy in force.

    Nothing is changed. Exit codes: 0, or 1 when something that is in production now would be refused.
    """
    from mlflow_privacy_gate.cli.progress import shown_progress

    now = datetime.now(timezone.utc)
    with shown_progress() as progress:
        from mlflow_privacy_gate.gate.examining import standings
        from mlflow_privacy_gate.policy import find_policy
        from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

        registry = MlflowRegistry(tracking_uri, registry_uri)
        in_force = find_policy(policy, os.environ, Path.cwd())
        progress(f"asking {registry.describe()}")
        found: list[Standing] = []
        for standing in standings(registry, in_force, name=name, rehash=rehash, now=now):
            found.append(standing)
            progress(f"{len(found)} versions {'hashed and ' if rehash else ''}judged")
    if output == "json":
        click.echo(json.dumps([_fields(standing, now) for standing in found], indent=2))
    elif not found:
        click.echo(f"{registry.describe()} holds no registered model version.")
    else:
        _print(found, now, rehash)
    sys.exit(int(any(standing.promoted_as and not standing.decision.allowed for standing in found)))


def _print(found: Sequence[Standing], now: datetime, rehash: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # A terminal's width, so that rows stay whole; none in a file or pipe, where a reader wants one line a version.
    width = shutil.get_terminal_size((_UNBOUNDED, 0)).columns
    console = Console(width=width)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, int(width >= _ROOMY), 0, 0), pad_edge=False, show_edge=False)
    for heading in ("model", "version", "production", "verdict", "attack\nAUC", "margin", "counts\nuntil", "codes"):
        table.add_column(heading, overflow="fold", no_wrap=heading in _WHOLE)
    for standing in found:
        row = _row(standing, now, "\n" if width < _ROOMY else " ")
        table.add_row(*(escape(cell) for cell in row), style="red" if _refused_in_production(standing) else None)
    console.print(table)
    if not rehash:
        console.print("The stored bytes were not hashed; --rehash finds artifacts that were changed after their test.")
    for standing in found:
        if _refused_in_production(standing):
            where = ", ".join(standing.promoted_as)
            model = standing.model
            console.print(
                f"{model.name} version {model.version} holds {where} and would be refused now.",
                markup=False,
                style="red",
            )


def _row(standing: Standing, now: datetime, gap: str) -> tuple[str, ...]:
    from mlflow_privacy_gate.cards import numbers

    model, decision = standing.model, standing.decision
    verdict = decision.verdict
    auc = verdict.attack_auc if verdict else None
    ends = decision.counts_until
    until = "" if ends is None else f"{ends:%Y-%m-%d}"
    return (
        str(model.name),
        str(model.version),
        f",{gap}".join(standing.promoted_as),
        "WAIVED" if standing.decision.waived else _verdict(standing),
        "" if verdict is None or auc is None else numbers.plain(auc, limit=verdict.margin),
        "" if verdict is None else numbers.exact(verdict.margin),
        f"{until}{gap}(soon)" if standing.expires_soon(now) else until,
        gap.join(decision.reason_codes),
    )


def _verdict(standing: Standing) -> str:
    outcome = standing.decision.outcome
    return str(outcome) if outcome is not None else "not believed" if _has_evidence(standing) else "not checked"


def _has_evidence(standing: Standing) -> bool:
    from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

    return ATTESTATION_TAG in (standing.model.tags or {})


def _refused_in_production(standing: Standing) -> bool:
    return bool(standing.promoted_as) and not standing.decision.allowed


def _fields(standing: Standing, now: datetime) -> dict[str, Any]:
    from mlflow_privacy_gate.cli.verify import decision_fields

    return {
        "model": standing.model.name,
        "version": standing.model.version,
        "stage": standing.model.stage,
        "aliases": list(standing.model.aliases),
        "promoted_as": list(standing.promoted_as),
        "verdict": _verdict(standing),
        "expires_soon": standing.expires_soon(now),
        "rehashed": standing.rehashed,
        "decision": decision_fields(standing.decision),
    }
