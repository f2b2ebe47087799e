"""``audit-removal``: does a model still remember rows that it was trained again without?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.options import isolation_option, key_option, output_option, policy_option, server_options

if TYPE_CHECKING:
    from mlflow_privacy_gate.removal import AuditResult


@click.command(
    "audit-removal",
    epilog="Example: mlflow-privacy-gate audit-removal models:/credit/8 --query erased.parquet --calibration-train other.parquet "
    "--calibration-test held_out.parquet",
)
@click.argument("model_uri", metavar="MODEL")
@click.option("--query", required=True, metavar="SOURCE", help="The rows in question, with their label (path or URI).")
@click.option(
    "--calibration-train", required=True, metavar="SOURCE", help="Other rows, to train a calibration model on."
)
@click.option(
    "--calibration-test", required=True, metavar="SOURCE", help="Rows that neither that model nor MODEL was trained on."
)
@click.option("--control", metavar="SOURCE", help="Rows MODEL is known to be trained on, instead of the logged ones.")
@click.option(
    "--calibration-model",
    metavar="MODEL",
    help="A model of the same recipe, trained on --calibration-train, where MODEL cannot be trained again here.",
)
@click.option("--target", metavar="COLUMN", help="The label's column, where it cannot be found.")
@click.option(
    "--references",
    type=click.IntRange(min=2),
    default=16,
    show_default=True,
    metavar="N",
    help="How many reference models to train.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write report and signed statement here too.",
)
@click.option("--dry-run", is_flag=True, help="Audit, and record nothing in MLflow.")
@isolation_option
@key_option
@policy_option
@server_options
@output_option()
def command(
    model_uri: str,
    query: str,
    calibration_train: str,
    calibration_test: str,
    control: str | None,
    calibration_model: str | None,
    target: str | None,
    references: int,
    save: Path | None,
    dry_run: bool,
    isolation: str,
    key: Path | None,
    policy: Path | None,
    tracking_uri: str | None,
    registry_uri: str | None,
    output: str,
) -> None:
    """Audit whether MODEL still remembers the --query rows, for instance after an erasure request and a retraining without them.

    Exit codes: 0 not memorised, 1 memorisation not ruled out, 2 usage or policy, 3 inconclusive or could not judge, 4 could not look.
    """
    from mlflow_privacy_gate.cli.progress import shown_progress

    with shown_progress() as progress:
        from mlflow_privacy_gate import audit_removal  # takes seconds to import

        result = audit_removal(
            model_uri,
            query=query,
            calibration_train=calibration_train,
            calibration_test=calibration_test,
            control=control,
            calibration_model=calibration_model,
            target=target,
            references=references,
            policy=policy,
            key=key,
            dry_run=dry_run,
            isolation=isolation,
            tracking_uri=tracking_uri,
            registry_uri=registry_uri,
            progress=progress,
        )
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        for name, content in result.files.items():
            (save / name).write_bytes(content)
    click.echo(json.dumps(fields(result), indent=2) if output == "json" else text(result))
    sys.exit(result.exit_code)


def text(result: AuditResult) -> str:
    """Say it to a person at a terminal: the answer, what it rests on, where the report is."""
    from mlflow_privacy_gate.cards.removal_report import ks_words, reads_otherwise

    evidence = result.evidence
    lines = [f"{evidence.model_uri}: {result.answer.upper()}", ""]
    lines += [f"- {reason}" for reason in evidence.reasons]
    lines.append(f"- rho_KS, which decides nothing: {ks_words(evidence.ks)}")
    differing = reads_otherwise(evidence)
    if differing is not None:
        lines.append(f"- {differing}")
    lines += ["", "This proves neither that the model holds these rows nor that it does not.", "", _where(result)]
    if not result.signed:
        lines.append(
            "The report is unsigned: no signing key was found (--key, PRIVACY_GATE_SIGNING_KEY, privacy-gate.key)."
        )
    return "\n".join(lines)


def fields(result: AuditResult) -> dict[str, Any]:
    """Lay out the audit for JSON: the report's own fields, and what became of it."""
    report: dict[str, Any] = json.loads(result.files["report.json"])
    return {**report, "signed": result.signed, "recorded": result.recorded, "folder": result.folder}


def _where(result: AuditResult) -> str:
    if not result.recorded:
        return "Not recorded (dry run)."
    if result.model.run_id is None:
        return "The model names no run, so its report could not be recorded there; --save keeps it."
    return f"Report and statement: runs:/{result.model.run_id}/{result.folder}"
