"""One promotion: what is asked for, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.policy.judging import Verdict
from mlflow_privacy_gate.policy.model import Mode
from mlflow_privacy_gate.vocabulary import Effect, Finding, StrEnum


class Route(StrEnum):
    """The ways to production."""

    STAGE = "stage"
    ALIAS = "alias"
    CREATE = "create"
    COPY = "copy"
    RENAME = "rename"


@dataclass(frozen=True)
class PromotionTarget:
    """A version and what it is to become.

    ``value`` is the stage, the alias, or the guarded name. ``model_digest`` (hex) is of the stored bytes as they are now; None where they
    could not be read, and ``model_digest_problem`` says why. ``evidence_location`` is where a person finds the evidence (a URI or a page).
    """

    name: str
    version: str
    route: Route
    value: str
    model_digest: str | None
    model_digest_problem: str | None = None
    evidence_location: str | None = None


@dataclass(frozen=True)
class Decision:
    """Whether one promotion may go ahead, and every reason.

    ``refusal`` is the text for the person who asked; it is empty only where nothing was held against the promotion. In mode ``warn``
    and ``off`` a promotion is ``allowed`` with a text that says so. ``evidence`` and ``envelope_sha256`` are the ones that were judged.
    """

    allowed: bool
    target: PromotionTarget
    findings: tuple[Finding, ...]
    verdict: Verdict | None
    evidence: Evidence | None
    envelope_sha256: str | None
    mode: Mode
    refusal: str

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings for which it is, or in mode ``warn`` would have been, refused."""
        return tuple(finding for finding in self.findings if finding.effect is not Effect.WARN)

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """The codes of all findings, each once, in order of appearance."""
        return tuple(dict.fromkeys(str(finding.code) for finding in self.findings))
