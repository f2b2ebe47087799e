"""``check``: test a logged model and record the result."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mlflow_privacy_gate.cli.options import isolation_option, key_option, output_option, policy_option, server_options


@click.command("check", epilog="Example: mlflow-privacy-gate check models:/credit/7")
@click.argument("model_uri", metavar="MODEL")
@click.option(
    "--members", metavar="SOURCE", help="Rows the model was trained on (path or URI), instead of the logged ones."
)
@click.option("--non-members", metavar="SOURCE", help="Rows from the same source that it was not trained on.")
@click.option("--target", metavar="COLUMN", help="The label's column, where it cannot be found.")
@click.option(
    "--card", type=click.Path(path_type=Path), metavar="FILE", help="Model card to read claims from and to write to."
)
@click.option("--evaluator", metavar="NAME", help="Who answers for this test, as the report names them.")
@click.option(
    "--subgroup",
    "subgroups",
    multiple=True,
    metavar="COLUMN",
    help="Look at this column's groups too; may be repeated.",
)
@click.option("--stop-early", is_flag=True, help="Train no reference models once the verdict can no longer change.")
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    metavar="FILE.parquet",
    help="Write how exposed each row is to a local file.",
)
@click.option(
    "--suggest", is_flag=True, help="Of a model over the margin, measure what each mitigation would do to it."
)
@click.option("--dry-run", is_flag=True, help="Measure and judge, write nothing.")
@isolation_option
@key_option
@policy_option
@server_options
@output_option("junit", "sarif", "markdown")
def command(
    model_uri: str,
    members: str | None,
    non_members: str | None,
    target: str | None,
    card: Path | None,
    evaluator: str | None,
    subgroups: tuple[str, ...],
    stop_early: bool,
    records: Path | None,
    suggest: bool,
    dry_run: bool,
    isolation: str,
    key: str | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Test MODEL (models:/name/version, models:/name@alias, models:/m-…, runs:/…/model) and record the result.

    Exit codes: 0 pass, 1 fail, 2 usage or policy, 3 could not judge, 4 could not look.
    """
    from mlflow_privacy_gate.cli.progress import shown_progress

    with shown_progress() as progress:
        from mlflow_privacy_gate import check  # takes seconds to import
        from mlflow_privacy_gate.cli.check_formats import FORMATS

        result = check(
            model_uri,
            policy=policy,
            members=members,
            non_members=non_members,
            target=target,
            card=card,
            evaluator=evaluator,
            key=key,
            dry_run=dry_run,
            subgroups=subgroups,
            stop_early=stop_early,
            records=records,
            suggest=suggest,
            isolation=isolation,
            tracking_uri=tracking_uri,
            registry_uri=registry_uri,
            progress=progress,
        )
    click.echo(FORMATS[output](result))
    sys.exit(result.exit_code)
