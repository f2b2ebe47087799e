"""``verify``: whether the guarded registry would allow a promotion, now or at another time, and why."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.options import output_option, policy_option, server_options, target_options
from mlflow_privacy_gate.errors import UsageError

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.officer_statements import VerifiedStatement
    from mlflow_privacy_gate.gate import Decision, Route
    from mlflow_privacy_gate.policy import Policy


@click.command("verify", epilog="Example: mlflow-privacy-gate verify models:/credit@champion --alias champion")
@click.argument("model_uri", metavar="MODEL")
@target_options
@click.option(
    "--at", "moment", metavar="TIME", help="Decide as if it were this time (ISO 8601; UTC where no zone is given)."
)
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    stage: str | None,
    alias: str | None,
    moment: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Say whether MODEL may be promoted now, and why; its stored bytes are hashed anew. Put it before serving a model.

    Without --stage or --alias the policy's first guarded stage is meant. Exit codes: 0 allowed, 1 refused, 2 usage or policy, 4 could
    not look.
    """
    from mlflow_privacy_gate.cli.progress import shown_progress

    now = parse_moment(moment)
    with shown_progress() as progress:
        from mlflow_privacy_gate.gate.examining import examine
        from mlflow_privacy_gate.policy import find_policy
        from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

        in_force = find_policy(policy, os.environ, Path.cwd())
        registry = MlflowRegistry(tracking_uri, registry_uri)
        route, value = promotion_named(stage, alias, in_force)
        progress(f"asking {registry.describe()}")
        model = registry.resolve(model_uri)
        if not model.versioned:
            raise UsageError(f"{model_uri}: not a registered version, so it cannot be promoted; register it first")
        progress("hashing the stored model")
        decision = examine(registry, model, in_force, route=route, value=value, now=now)
    click.echo(json.dumps(decision_fields(decision), indent=2) if output == "json" else decision_text(decision))
    sys.exit(exit_code(decision))


def promotion_named(stage: str | None, alias: str | None, policy: Policy) -> tuple[Route, str]:
    """Read --stage and --alias; UsageError when both are given."""
    from mlflow_privacy_gate.gate import Route
    from mlflow_privacy_gate.gate.examining import default_promotion

    if stage is not None and alias is not None:
        raise UsageError("--stage and --alias name two promotions; give one")
    if alias is not None:
        return Route.ALIAS, alias
    return (Route.STAGE, stage) if stage is not None else default_promotion(policy)


def parse_moment(text: str | None, option: str = "--at") -> datetime:
    """Read a time given to an option; now without it."""
    if text is None:
        return datetime.now(timezone.utc)
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as exc:
        raise UsageError(f"{option}: expected a time such as 2027-03-01T12:00Z, got {text!r}") from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def decision_text(decision: Decision) -> str:
    """Say a decision to a person: the refusal as the registry words it, or what was allowed and until when."""
    from mlflow_privacy_gate.gate.refusal import said_beside

    if decision.refusal:
        return decision.refusal
    target, verdict = decision.target, decision.verdict
    asked = f"{target.route} {target.value} for {target.name} version {target.version}"
    lines = [f"WAIVED, not passed: {asked} is allowed." if decision.waivers else f"Allowed: {asked}."]
    lines += [
        f"- waived until {_minute(waiver.effective_until)}: {', '.join(waiver.findings)} ({waiver.reference}; requested by "
        f"{waiver.requested_by}, approved by {waiver.approved_by})"
        for waiver in (verified.statement for verified in decision.waivers)
    ]
    if verdict is not None:
        lines.append(f"The evidence counts until {_minute(verdict.expires_at)}.")
    lines += [f"- {said_beside(finding)}" for finding in decision.findings]
    return "\n".join(lines)


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"


def decision_fields(decision: Decision) -> dict[str, Any]:
    """Lay out a decision for JSON."""
    from mlflow_privacy_gate.cli.check_formats import finding_fields

    target, verdict = decision.target, decision.verdict
    return {
        "allowed": decision.allowed,
        "mode": str(decision.mode),
        "model": target.name,
        "version": target.version,
        "route": str(target.route),
        "value": target.value,
        "model_digest": f"sha256:{target.model_digest}" if target.model_digest else None,
        "verdict": str(decision.outcome) if decision.outcome else None,
        "attack": verdict.attack if verdict else None,
        "attack_auc": verdict.attack_auc if verdict else None,
        "margin": verdict.margin if verdict else None,
        "expires_at": verdict.expires_at.isoformat() if verdict else None,
        "envelope_sha256": decision.envelope_sha256,
        "waivers": [_statement_fields(waiver) for waiver in decision.waivers],
        "sign_offs": [_statement_fields(sign_off) for sign_off in decision.sign_offs],
        "exemptions": [_statement_fields(exemption) for exemption in decision.exemptions],
        "findings": [finding_fields(finding) for finding in decision.findings],
        "text": decision_text(decision),
    }


def _statement_fields(verified: VerifiedStatement[Any]) -> dict[str, Any]:
    from mlflow_privacy_gate.evidence.wire import encode

    return {"envelope_sha256": verified.envelope_sha256, "key": verified.key_id, **encode(verified.statement)}


def exit_code(decision: Decision) -> int:
    """Give 0 for allowed, 4 when the bytes could not be looked at, 1 for any other refusal."""
    from mlflow_privacy_gate.vocabulary import ReasonCode

    if decision.allowed:
        return 0
    return 4 if any(finding.code is ReasonCode.PG007 for finding in decision.blocking) else 1
