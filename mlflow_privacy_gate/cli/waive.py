"""``waive``: a privacy officer permits one promotion in spite of named findings, for a while."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlflow_privacy_gate.cli.options import (
    officer_key_option,
    output_option,
    policy_option,
    scope_options,
    server_options,
)
from mlflow_privacy_gate.errors import UsageError

if TYPE_CHECKING:
    from mlflow_privacy_gate.vocabulary import ReasonCode


@click.command(
    "waive",
    epilog="Example: mlflow-privacy-gate waive models:/credit/7 --alias champion --finding PG201 --reason rollback --reference RISK-812 "
    "--controls internal --requested-by Sam --approved-by Dana --until 2026-12-20 --key dana.key",
)
@click.argument("model_uri", metavar="MODEL")
@scope_options
@click.option(
    "--finding", "findings", multiple=True, required=True, metavar="CODE", help="A finding to permit; repeat."
)
@click.option(
    "--test",
    metavar="SHA256",
    help="The earlier, failed test that PG108 names, instead of the one that stands with the version; its first digits do "
    "where the ledger can be reached.",
)
@click.option("--reason", required=True, help="Why it is permitted.")
@click.option("--reference", required=True, help="Where the decision is filed: a ticket, minutes.")
@click.option("--controls", required=True, help="What protects the people in the data meanwhile.")
@click.option("--requested-by", required=True, metavar="NAME", help="Who asks for it.")
@click.option("--approved-by", required=True, metavar="NAME", help="Who permits it: someone else.")
@click.option("--until", required=True, metavar="TIME", help="When it ends (ISO 8601; UTC where no zone is given).")
@click.option("--from", "begin", metavar="TIME", help="When it begins (default: now).")
@officer_key_option
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    stage: str | None,
    alias: str | None,
    into: str | None,
    findings: tuple[str, ...],
    test: str | None,
    reason: str,
    reference: str,
    controls: str,
    requested_by: str,
    approved_by: str,
    until: str,
    begin: str | None,
    key: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Sign a waiver for MODEL: one promotion, these findings, until a day that the policy bounds (`waivers.max_days`).

    It is about the test that stands with the version now, or with --test about an earlier one that failed (PG108), however often these
    bytes are tested anew; another test, name, stage, alias or workspace needs another waiver. A waived version
    shows WAIVED, never pass. The default key is PRIVACY_GATE_SIGNING_KEY. Exit codes: 0 attached, 2 usage or policy, 4 could not look.
    """
    from mlflow_privacy_gate.cli.officer_desk import attach, open_desk
    from mlflow_privacy_gate.cli.verify import parse_moment
    from mlflow_privacy_gate.evidence.officers import Waiver
    from mlflow_privacy_gate.gate.attaching import earlier_test, scope_of
    from mlflow_privacy_gate.vocabulary import ReasonCode

    codes = tuple(waivable(code) for code in findings)
    if test is not None and ReasonCode.PG108 not in codes:
        raise UsageError("--test: a waiver about an earlier test answers for PG108; name it with --finding PG108")
    now = parse_moment(None)
    desk = open_desk(
        model_uri, stage, alias, into, key=key, policy=policy, servers=(tracking_uri, registry_uri), now=now
    )
    assert desk.before.envelope_sha256 is not None
    waiver = Waiver(
        evidence_sha256=desk.before.envelope_sha256 if test is None else earlier_test(desk.before, test, desk.known),
        findings=codes,
        reason=reason,
        reference=reference,
        compensating_controls=controls,
        requested_by=requested_by,
        approved_by=approved_by,
        scope=scope_of(desk.before.target),
        effective_on=_moment(begin, now, "--from"),
        effective_until=parse_moment(until, "--until"),
        stated_at=now,
    )
    click.echo(attach(desk, waiver, output))


def waivable(text: str) -> ReasonCode:
    """Read a reason code that a waiver may cover; UsageError for any other."""
    from mlflow_privacy_gate.vocabulary import REASONS, ReasonCode

    if text.upper() not in ReasonCode.__members__:
        raise UsageError(f"--finding: expected a reason code such as PG201, got {text!r}")
    code = ReasonCode(text.upper())
    if not REASONS[code].waivable:
        raise UsageError(f"--finding: {code} ({REASONS[code].title}) can never be waived")
    return code


def _moment(text: str | None, now: datetime, option: str) -> datetime:
    from mlflow_privacy_gate.cli.verify import parse_moment

    return now if text is None else parse_moment(text, option)
