"""``ledger``: what was recorded, and whether the chain still holds."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.ledger import Row
    from mlflow_privacy_gate.registry.ledger._interface import Ledger

Command = Any


def _place_options(command: Command) -> Command:
    for option in (
        click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="A ledger kept in a file."),
        click.option(
            "--registry-uri",
            metavar="URI",
            help="The registry's database, as it stands behind `privacy-gate:` at the server (default: MLFLOW_REGISTRY_URI, else "
            "MLFLOW_TRACKING_URI); a server's address will not do.",
        ),
        policy_option,
    ):
        command = option(command)
    return command


@click.group("ledger")
def command() -> None:
    """Read the ledger of attestations, officers' statements and decisions, where its database or file can be reached."""


@command.command(
    "show",
    short_help="List what the ledger holds, oldest first.",
    epilog="Example: mlflow-privacy-gate ledger show credit --registry-uri postgresql://reader@database/mlflow",
)
@click.argument("name", required=False, metavar="[MODEL_NAME]")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N rows.")
@_place_options
@output_option()
def show(
    name: str | None, last: int | None, policy: Path | None, registry_uri: str | None, file: Path | None, output: str
) -> None:
    """List what the ledger holds, oldest first (of MODEL_NAME only, where one is named).

    The chain is not verified; `ledger verify` does that. Exit codes: 0, 4 when the ledger cannot be reached.
    """
    from mlflow_privacy_gate.errors import CouldNotLook
    from mlflow_privacy_gate.evidence.ledger import UnreadableRow, shown
    from mlflow_privacy_gate.vocabulary import ReasonCode

    with _ledger(policy, registry_uri, file).snapshot() as snapshot:
        try:
            rows = [row for row in snapshot.rows if name is None or row.entry.name == name]
        except UnreadableRow as exc:
            raise CouldNotLook(f"{exc}; see `mlflow-privacy-gate ledger verify`", code=ReasonCode.PG902) from exc
    rows = rows[-last:] if last else rows
    if output == "json":
        click.echo(json.dumps([shown(row) for row in rows], indent=2))
    else:
        for row in rows:
            click.echo(_line(row))


@command.command(
    "verify",
    short_help="Find the first row that was changed, is missing or moved.",
    epilog="Example: mlflow-privacy-gate ledger verify --registry-uri sqlite:///mlflow.db",
)
@_place_options
@output_option()
def verify(policy: Path | None, registry_uri: str | None, file: Path | None, output: str) -> None:
    """Walk the whole chain and name the first row that was changed, is missing or was moved.

    Exit codes: 0 the chain holds, 1 it is broken, 4 the ledger cannot be reached.
    """
    from mlflow_privacy_gate.evidence.ledger import verify_chain

    ledger = _ledger(policy, registry_uri, file)
    with ledger.snapshot() as snapshot:
        chain = verify_chain(snapshot.rows, snapshot.head)
    broken = chain.broken
    if output == "json":
        fields = {
            "ledger": ledger.describe(),
            "intact": broken is None,
            "rows": chain.rows,
            "head_sha256": chain.head.sha256,
            "broken_at": broken.sequence if broken else None,
            "problem": broken.problem if broken else None,
        }
        click.echo(json.dumps(fields, indent=2))
    elif broken is None:
        click.echo(f"{ledger.describe()}: {chain.rows} rows, the chain holds. Its head is sha256 {chain.head.sha256}.")
    else:
        click.echo(
            f"{ledger.describe()}: BROKEN at row {broken.sequence}: {broken.problem}. {chain.rows} rows before it hold."
        )
    sys.exit(0 if broken is None else 1)


def _ledger(policy: Path | None, registry_uri: str | None, file: Path | None) -> Ledger:
    """Find the ledger that is meant; CouldNotLook where it cannot be reached from here."""
    from mlflow_privacy_gate.errors import CouldNotLook
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger
    from mlflow_privacy_gate.registry.ledger.location import reachable_ledger
    from mlflow_privacy_gate.registry.stores import said_without_credentials
    from mlflow_privacy_gate.vocabulary import ReasonCode

    if file is not None:
        return FileLedger(file)
    named = registry_uri or os.environ.get("MLFLOW_REGISTRY_URI") or os.environ.get("MLFLOW_TRACKING_URI") or ""
    found = reachable_ledger(named, find_policy(policy, os.environ, Path.cwd()))
    if found is None:
        where = said_without_credentials(named) if named else "no registry is named"
        raise CouldNotLook(
            f"no ledger can be reached from here ({where}): give --registry-uri with the database's "
            "own URI, which stands behind `privacy-gate:` at the server (for example postgresql://reader@database/mlflow), or --file",
            code=ReasonCode.PG902,
        )
    return found


def _line(row: Row) -> str:
    entry = row.entry
    about = f"{entry.name} version {entry.version}" if entry.version else entry.name
    words = [
        f"{row.sequence:>5}",
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        f"{entry.kind:<11}",
        f"{entry.result:<12}",
        entry.target or "",
        about,
        " ".join(entry.codes),
        f"envelope {entry.envelope_sha256[:16]}" if entry.envelope_sha256 else "",
        f"by {entry.actor}",
        f"[{entry.workspace}]" if entry.workspace != "default" else "",
    ]
    return "  ".join(
        "".join(character if character.isprintable() else "?" for character in word) for word in words if word
    )
