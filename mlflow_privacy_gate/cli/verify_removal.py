"""``verify-removal``: is a recorded removal audit to be believed, and what does it say?"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option, server_options
from mlflow_privacy_gate.errors import UsageError

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.removal_verification import VerifiedRemoval


@click.command(
    "verify-removal", epilog="Example: mlflow-privacy-gate verify-removal models:/credit/8 removal.dsse.json"
)
@click.argument("model_uri", metavar="MODEL")
@click.argument("statement", type=click.Path(path_type=Path, dir_okay=False), metavar="STATEMENT")
@click.option("--query", metavar="SOURCE", help="Also hold these rows against those that were audited (path or URI).")
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    statement: Path,
    query: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Say whether STATEMENT (removal.dsse.json) is a removal audit of MODEL's stored bytes, signed by a tester the policy trusts.

    Exit codes: 0 believed, and it says not memorised; 1 not believed, or memorisation not ruled out; 2 usage or policy; 3 inconclusive;
    4 could not look.
    """
    from mlflow_privacy_gate.evidence.model_digest import model_digest
    from mlflow_privacy_gate.evidence.removal_verification import verify_removal
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
    from mlflow_privacy_gate.splits.access import SourceAccess
    from mlflow_privacy_gate.splits.caller import load_table
    from mlflow_privacy_gate.vocabulary import REMOVAL_EXIT_CODES

    in_force = find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    access = SourceAccess(registry, http_hosts=in_force.sources.http_hosts)
    with registry.open_model(registry.resolve(model_uri)) as folder:
        digest = model_digest(folder)
    verified = verify_removal(
        read(statement),
        keys=in_force.trusted_keys,
        model_digest=digest,
        now=datetime.now(timezone.utc),
        query_digest=None if query is None else load_table(query, access, role="query").digest,
    )
    click.echo(
        json.dumps(fields(verified), indent=2) if output == "json" else text(verified, query_held=query is not None)
    )
    sys.exit(REMOVAL_EXIT_CODES[verified.evidence.answer])


def read(statement: Path) -> bytes:
    """Read the statement's bytes; UsageError where there are none."""
    try:
        return statement.read_bytes()
    except OSError as exc:
        raise UsageError(
            f"{statement}: cannot be read: {exc.strerror}; name the removal.dsse.json of an audit"
        ) from exc


def text(verified: VerifiedRemoval, *, query_held: bool) -> str:
    """Say it to a person: whose word it is, of which rows and bytes, and what it says."""
    evidence = verified.evidence
    query = evidence.side("query")
    assert query is not None
    rows = "the rows handed in" if query_held else "not held against any rows (--query)"
    lines = [
        f"Believed: signed by {verified.key_id}, of the bytes that {evidence.model_uri} has now.",
        f"{evidence.answer.upper()}, audited {evidence.audited_at:%Y-%m-%d %H:%M} UTC",
        f"Query: {query.rows_used:,} of {query.rows:,} rows used, {query.digest}; {rows}",
        *(f"- {reason}" for reason in evidence.reasons),
        "",
        "This proves neither that the model holds these rows nor that it does not.",
    ]
    return "\n".join(lines)


def fields(verified: VerifiedRemoval) -> dict[str, Any]:
    """Lay out the believed audit for JSON, numbers as in the statement."""
    from mlflow_privacy_gate.evidence.wire import encode

    return {"key": verified.key_id, "envelope_sha256": verified.envelope_sha256, **encode(verified.evidence)}
