"""The evaluation report of a recorded test: the one the check stored, as long as it still says what is so, else made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.report import html_report, markdown_report
from mlflow_privacy_gate.checks.found_card import find_card
from mlflow_privacy_gate.checks.papers import REPORT_HTML, REPORT_MARKDOWN, templates_of
from mlflow_privacy_gate.checks.recorded import RecordedTest, recorded_test, recorded_view
from mlflow_privacy_gate.errors import CouldNotJudge, EvidenceRejected
from mlflow_privacy_gate.vocabulary import Finding, ReasonCode

if TYPE_CHECKING:
    from datetime import datetime

    from mlflow_privacy_gate.checks.recorded import Officers, Statements
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry


class ReportForm(Enum):
    """The two forms of a report, by the artifact that a check stores."""

    HTML = REPORT_HTML
    MARKDOWN = REPORT_MARKDOWN

    @property
    def render(self) -> Callable[..., str]:
        """The function that renders this form from a view."""
        return html_report if self is ReportForm.HTML else markdown_report


@dataclass(frozen=True)
class RecordedReport:
    """A report's text; ``made_again`` says why it is not the stored one (None: it is)."""

    text: str
    made_again: str | None


def recorded_report(
    registry: Registry, model: ResolvedModel, policy: Policy, form: ReportForm, *, officers: Officers, now: datetime
) -> RecordedReport:
    """Give the report of a model's recorded test.

    CouldNotJudge for a model that was never tested, EvidenceRejected where its recorded test is not believed now.
    """
    test = recorded_test(registry, model, policy, now=now)
    if isinstance(test, Finding):
        error = CouldNotJudge if test.code is ReasonCode.PG001 else EvidenceRejected
        raise error(f"{model.uri} is untested: {test.message} To do: {test.remedy}.", code=test.code)
    stored = registry.read_artifact(model, form.value)
    statements = officers(test)
    outdated = _outdated(stored, test, policy, statements)
    if stored is not None and outdated is None:
        return RecordedReport(stored.decode("utf-8"), None)
    view = recorded_view(registry, test, model, find_card(registry, model), policy, statements)
    return RecordedReport(form.render(view, templates=templates_of(policy)), outdated)


def _outdated(stored: bytes | None, test: RecordedTest, policy: Policy, statements: Statements) -> str | None:
    """Say why a stored report does not hold for the recorded test under the policy in force, or None where it does."""
    evidence, verdict = test.verified.evidence, test.verdict
    if stored is None:
        return "no report is stored with the model's run"
    if test.verified.envelope_sha256.encode("ascii") not in stored:
        return "the stored report is of another test"
    if evidence.policy.sha256 != policy.sha256:
        return "the stored report was made under another policy"
    if (evidence.outcome, evidence.reason_codes) != (str(verdict.outcome), verdict.reason_codes):
        return "the verdict is another one now"
    if statements.waivers or statements.sign_offs:
        return "an officer has signed since"
    return None
