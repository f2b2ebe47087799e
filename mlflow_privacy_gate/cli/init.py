"""``init``: a policy and a signing key, never over existing ones."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from mlflow_privacy_gate.errors import UsageError

POLICY_FILE = "privacy-gate.yaml"
KEY_FILE = "privacy-gate.key"


@click.command("init")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    metavar="FOLDER",
    help="Where the two files go (default: here).",
)
@click.option("--key-id", default="tester", metavar="NAME", show_default=True, help="What the policy calls the key.")
def command(folder: Path, key_id: str) -> None:
    """Write privacy-gate.yaml and privacy-gate.key.

    The key signs evidence; keep it where the tests run, away from the people whose models are tested. It is encrypted when
    PRIVACY_GATE_KEY_PASSWORD is set, readable by you alone in any case, and ignored by git. Its public half stands in the policy.
    """
    write_key_and_policy(folder, key_id)
    click.echo(f"Wrote {folder / POLICY_FILE} and {folder / KEY_FILE} (git ignores the key).")
    click.echo("Start a guarded MLflow server with:\n")
    click.echo(guarded_server((folder / POLICY_FILE).resolve(), "sqlite:///mlflow.db"))
    click.echo(
        "\nTo guard a server that you have: the same variable in its environment, `privacy-gate:` before its registry's URI."
    )


def guarded_server(policy: Path, database: str, *options: str) -> str:
    """Give the shell command that starts a guarded MLflow server, such as works here whether or not the environment is activated."""
    beside = Path(sys.executable).with_name("mlflow")
    mlflow = ["mlflow"] if shutil.which("mlflow") == str(beside) else [sys.executable, "-m", "mlflow"]
    command = [*mlflow, "server", "--backend-store-uri", database, "--registry-store-uri", f"privacy-gate:{database}"]
    return f"  PRIVACY_GATE_POLICY={shlex.quote(str(policy))} \\\n  {shlex.join([*command, *options])}"


def write_key_and_policy(folder: Path, key_id: str = "tester") -> None:
    """Write both files into ``folder`` and keep the key out of git; UsageError where either stands already."""
    from mlflow_privacy_gate.evidence.signing import generate_key
    from mlflow_privacy_gate.policy import parse_policy, starter_policy

    policy, key = folder / POLICY_FILE, folder / KEY_FILE
    for path in (policy, key):
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path}: exists already and is left alone; move it away, or use --dir")
    ignore_in_git(key)
    password = os.environ.get("PRIVACY_GATE_KEY_PASSWORD")
    signer = generate_key(key, password=password.encode("utf-8") if password else None)
    text = starter_policy(signer.public_pem, key_id)
    parse_policy(text, POLICY_FILE)
    policy.write_text(text, encoding="utf-8")


def ignore_in_git(key: Path) -> None:
    """Have git ignore a key file, by a line in the ``.gitignore`` beside it."""
    ignore = key.parent / ".gitignore"
    text = ignore.read_text(encoding="utf-8") if ignore.exists() else ""
    if key.name not in text.splitlines():
        with ignore.open("a", encoding="utf-8") as stream:
            stream.write(("\n" if text and not text.endswith("\n") else "") + key.name + "\n")
