"""The view of a model without a test that counts: what is not known is called unknown, with the reason, never a 0 or a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlflow_privacy_gate.cards.rows import FieldRow, FindingRow, rows_of_findings
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.vocabulary import RULE_NAME, Finding

UNTESTED = "untested"
_NO_TEST = "no test of it counts"


@dataclass(frozen=True)
class UntestedView:
    """What a card shows of a model that was never tested, or whose recorded test is not believed; build it with :func:`untested_view`.

    ``findings`` say why no test counts. All texts are unescaped: templates escape every value they print.
    """

    model_uri: str
    model_name: str
    version: str | None
    findings: tuple[FindingRow, ...]
    identity: tuple[FieldRow, ...]
    check_command: str
    rule_name: str = RULE_NAME
    blocks: tuple[str, ...] = ("untested.md.j2",)

    @property
    def title(self) -> str:
        """The model's name, with its version where it has one."""
        return f"{self.model_name} version {self.version}" if self.version else self.model_name


def untested_view(
    model: ResolvedModel, reason: Finding, *, datasets: Sequence[DatasetInput], signature: FieldRow
) -> UntestedView:
    """Build the view of a model for which ``reason`` says why no test counts; ``signature`` is the row on its inputs and outputs."""
    uri = f"models:/{model.name}/{model.version}" if model.versioned else model.uri
    unregistered = "the model is not registered"
    no_run = model.lineage_note or "the model names no run"
    return UntestedView(
        model_uri=uri,
        model_name=model.name or uri,
        version=model.version,
        findings=rows_of_findings((reason,)),
        identity=(
            FieldRow("Model", model.name, unregistered),
            FieldRow("Version", model.version, unregistered),
            FieldRow("Model URI", uri),
            FieldRow("Training run", model.run_id, no_run),
            FieldRow("Data sets of the run", _names(datasets), "its run logged none" if model.run_id else no_run),
            signature,
            FieldRow("Attack AUC", None, _NO_TEST),
            FieldRow("Tested", None, _NO_TEST),
            FieldRow("Valid until", None, _NO_TEST),
        ),
        check_command=f"mlflow-privacy-gate check {uri}",
    )


def _names(datasets: Sequence[DatasetInput]) -> str | None:
    return ", ".join(f"{one.name} ({one.context or 'no context'})" for one in datasets) or None
