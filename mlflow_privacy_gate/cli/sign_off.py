"""``sign-off``: a privacy officer agrees to one promotion of one test, or states that a model holds no personal data."""

from __future__ import annotations

from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import (
    officer_key_option,
    output_option,
    policy_option,
    scope_options,
    server_options,
)
from mlflow_privacy_gate.errors import UsageError


@click.command(
    "sign-off",
    epilog="Example: mlflow-privacy-gate sign-off models:/credit/8 --alias champion --signed-by Dana --key dana.key",
)
@click.argument("model_uri", metavar="MODEL")
@scope_options
@click.option("--signed-by", required=True, metavar="NAME", help="The privacy officer's name.")
@click.option("--remark", help="A remark that the report prints.")
@click.option(
    "--no-personal-data",
    "exemption",
    metavar="REASON",
    help="State instead, with its reason, that these bytes were trained on no personal data (for a card that says so).",
)
@officer_key_option
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    stage: str | None,
    alias: str | None,
    into: str | None,
    signed_by: str,
    remark: str | None,
    exemption: str | None,
    key: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Sign off MODEL's present test for one promotion; needed where the policy says `sign_off: {required: true}`.

    A sign-off lifts no finding. With --no-personal-data the statement is an exemption: it names the model's bytes, answers PG401 and
    nothing else. The default key is PRIVACY_GATE_SIGNING_KEY. Exit codes: 0 attached, 2 usage or policy, 4 could not look.
    """
    from mlflow_privacy_gate.cli.officer_desk import attach, open_desk
    from mlflow_privacy_gate.cli.verify import parse_moment
    from mlflow_privacy_gate.evidence.officers import Exemption, SignOff
    from mlflow_privacy_gate.gate.attaching import scope_of

    if exemption is not None and remark is not None:
        raise UsageError("--remark belongs to a sign-off; an exemption has its reason")
    now = parse_moment(None)
    desk = open_desk(
        model_uri,
        stage,
        alias,
        into,
        key=key,
        policy=policy,
        servers=(tracking_uri, registry_uri),
        now=now,
        any_promotion=exemption is not None,
    )
    target, sha256 = desk.before.target, desk.before.envelope_sha256
    assert sha256 is not None
    assert target.model_digest is not None
    statement = (
        Exemption(target.model_digest, exemption, signed_by, now, target.stated_workspace)
        if exemption is not None
        else SignOff(sha256, scope_of(target), signed_by, now, remark)
    )
    click.echo(attach(desk, statement, output))
