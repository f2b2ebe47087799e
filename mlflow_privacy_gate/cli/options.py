"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def server_options(command: Command) -> Command:
    """Add ``--tracking-uri`` and ``--registry-uri``; MLflow's own environment variables hold where they are not given."""
    for option in (
        click.option("--registry-uri", metavar="URI", help="Registry to use (default: MLFLOW_REGISTRY_URI)."),
        click.option("--tracking-uri", metavar="URI", help="Tracking server to use (default: MLFLOW_TRACKING_URI)."),
    ):
        command = option(command)
    return command


def policy_option(command: Command) -> Command:
    """Add ``--policy``."""
    return click.option(
        "--policy",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Policy (default: PRIVACY_GATE_POLICY, else ./privacy-gate.yaml, else the built-in).",
    )(command)


def key_option(command: Command) -> Command:
    """Add ``--key``."""
    return click.option(
        "--key",
        metavar="FILE|URI",
        help="Signing key: a file, a key service's URI such as awskms:…, or keyless: for Sigstore "
        "(default: PRIVACY_GATE_SIGNING_KEY, else privacy-gate.key beside the policy).",
    )(command)


def officer_key_option(command: Command) -> Command:
    """Add ``--key`` for a privacy officer's key, which is never taken from beside the policy."""
    return click.option(
        "--key",
        metavar="FILE|URI",
        help="The privacy officer's signing key: a file, a key service's URI such as awskms:…, or keyless: for Sigstore "
        "(default: PRIVACY_GATE_SIGNING_KEY).",
    )(command)


def scope_options(command: Command) -> Command:
    """Add ``--stage``, ``--alias`` and ``--into``, one of which names the promotion that a statement is for."""
    for option in (
        click.option("--into", metavar="NAME", help="For creating, copying or renaming into this guarded model name."),
        click.option("--alias", metavar="ALIAS", help="For setting this alias."),
        click.option("--stage", metavar="STAGE", help="For moving to this stage."),
    ):
        command = option(command)
    return command


def isolation_option(command: Command) -> Command:
    """Add ``--in-process``; without it a model is opened in a child process."""
    return click.option(
        "--in-process",
        "isolation",
        flag_value="in-process",
        default="child-process",
        help="Open the model in this process, not in a child without keys and credentials: it runs its author's code.",
    )(command)


def output_option(*more: str) -> Callable[[Command], Command]:
    """Add ``--output text|json`` and any further formats named."""
    return click.option(
        "--output", type=click.Choice(["text", "json", *more]), default="text", show_default=True, help="Output format."
    )


def target_options(command: Command) -> Command:
    """Add ``--stage`` and ``--alias``, one of which names the promotion."""
    for option in (
        click.option("--alias", metavar="ALIAS", help="Promote by setting this alias."),
        click.option("--stage", metavar="STAGE", help="Promote by moving to this stage."),
    ):
        command = option(command)
    return command
