"""``keys``: which keys the policy trusts, in which role and until when; making one; naming one."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.vocabulary import KeyRole


@click.group("keys", invoke_without_command=True)
@policy_option
@output_option()
@click.pass_context
def command(ctx: click.Context, policy: Path | None, output: str) -> None:
    """List the keys that the policy trusts, or make or name one."""
    if ctx.invoked_subcommand is None:
        _list(policy, output)


@command.command(
    "generate",
    short_help="Make a signing key.",
    epilog="Example: mlflow-privacy-gate keys generate --role privacy-officer --id dana",
)
@click.option(
    "--role", type=click.Choice([str(role) for role in KeyRole]), required=True, help="What the key is to sign."
)
@click.option("--id", "name", metavar="NAME", help="What the policy is to call it (default: the role).")
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="Where the key goes (default: ROLE.key here)."
)
def generate(role: str, name: str | None, file: Path | None) -> None:
    """Make an Ed25519 signing key and print the lines that make the policy trust it.

    The policy itself is not changed: trusting a key is for its reviewers to decide. The key file is encrypted when
    PRIVACY_GATE_KEY_PASSWORD is set, readable by you alone in any case, never written over another, and ignored by git.
    """
    from mlflow_privacy_gate.cli.init import ignore_in_git
    from mlflow_privacy_gate.evidence.signing import generate_key
    from mlflow_privacy_gate.policy import policy_key_yaml

    path = file or Path(f"{role}.key")
    password = os.environ.get("PRIVACY_GATE_KEY_PASSWORD")
    signer = generate_key(path, password=password.encode("utf-8") if password else None)
    ignore_in_git(path)
    click.echo(f"Wrote {path} (key id {signer.key_id}).", err=True)
    click.echo("Add to the policy, under `keys:`:\n", err=True)
    click.echo(policy_key_yaml(signer.public_pem, name or role, KeyRole(role)), nl=False)


@command.command(
    "id", short_help="Print the id of a key.", epilog="Example: mlflow-privacy-gate keys id privacy-gate.key"
)
@click.argument("file", type=click.Path(path_type=Path))
def show_id(file: Path) -> None:
    """Print the id by which envelopes name the key in FILE (a public key, or a signing key)."""
    from mlflow_privacy_gate.evidence.keys import public_key_id
    from mlflow_privacy_gate.evidence.signing import load_signer

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{file}: cannot be read as a key: {exc}") from exc
    if "PRIVATE KEY-----" in text:
        password = os.environ.get("PRIVACY_GATE_KEY_PASSWORD")
        click.echo(load_signer(file, password=password.encode("utf-8") if password else None).key_id)
    else:
        click.echo(public_key_id(text))


def _list(policy: Path | None, output: str) -> None:
    from mlflow_privacy_gate.evidence.identities import TrustedIdentity
    from mlflow_privacy_gate.policy import find_policy

    found = find_policy(policy, os.environ, Path.cwd())
    now = datetime.now(timezone.utc)
    rows = [
        {
            "id": key.id,
            "role": str(key.role),
            "not_after": key.not_after.isoformat() if key.not_after else None,
            "trusted_now": key.trusted_at(now),
            "key_id": key.key_id,
            "identity": key.identity if isinstance(key, TrustedIdentity) else None,
            "issuer": key.issuer if isinstance(key, TrustedIdentity) else None,
        }
        for key in found.trusted_keys
    ]
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(f"{found.source_name} trusts no key, so no signed evidence can be believed; `init` makes one.")
    for row in rows:
        until = f"until {row['not_after']}" if row["not_after"] else "without end"
        state = "trusted" if row["trusted_now"] else "NO LONGER TRUSTED"
        named = f"{row['identity']}, vouched for by {row['issuer']}" if row["identity"] else row["key_id"]
        click.echo(f"{row['id']}: {row['role']}, {state}, {until}\n  {named}")
