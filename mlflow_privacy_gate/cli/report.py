"""``report``: the evaluation report of a model's recorded test."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import policy_option, server_options

_AS_STORED = (
    "Given as the check stored it. It has no signature of its own, the evidence has: whoever may write the run's artifacts "
    "could have changed the text; `verify` asks the evidence itself."
)


@click.command("report", epilog="Example: mlflow-privacy-gate report models:/credit/7 --out report.html")
@click.argument("model_uri", metavar="MODEL")
@click.option(
    "--format", "form", type=click.Choice(["html", "markdown"]), default="html", show_default=True, help="Its form."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it there (default: stdout)."
)
@policy_option
@server_options
def command(
    model_uri: str,
    form: str,
    out: Path | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
) -> None:
    """Give the evaluation report of MODEL's recorded test, judged under the policy in force.

    The report that the check stored is given as long as it still holds; otherwise it is made again, without the plots that need scores, and
    stderr says why. Exit codes: 0, 1 the evidence is not believed, 2 usage or policy, 3 never tested, 4 could not look.
    """
    from mlflow_privacy_gate.checks.recorded_report import ReportForm, recorded_report
    from mlflow_privacy_gate.cli.card import officers
    from mlflow_privacy_gate.policy import find_policy
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry

    in_force = find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    model = registry.resolve(model_uri)
    now = datetime.now(timezone.utc)
    heard = officers(in_force, model, now)
    report = recorded_report(registry, model, in_force, ReportForm[form.upper()], officers=heard, now=now)
    if report.made_again is not None:
        click.echo(f"Made again from the recorded evidence, without plots of scores: {report.made_again}.", err=True)
    else:
        click.echo(_AS_STORED, err=True)
    if out is None:
        click.echo(report.text, nl=False)
        return
    out.write_bytes(report.text.encode("utf-8"))
    click.echo(f"Written to {out}.", err=True)
