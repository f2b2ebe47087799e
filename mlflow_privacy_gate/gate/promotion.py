"""One promotion: what is asked for, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.officer_statements import VerifiedStatement
from mlflow_privacy_gate.evidence.officers import Exemption, SignOff, Waiver
from mlflow_privacy_gate.policy.judging import Verdict
from mlflow_privacy_gate.policy.model import Mode
from mlflow_privacy_gate.vocabulary import DEFAULT_WORKSPACE, Effect, Finding, Outcome, ReasonCode, StrEnum


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
    could not be read, and ``model_digest_problem`` says why, or were not read, because the promotion is :func:`hopeless` with any bytes.
    ``evidence_location`` is where a person finds the evidence (a URI or a page).
    ``workspace`` is the registry's own word for where the model is registered.
    """

    name: str
    version: str
    route: Route
    value: str
    model_digest: str | None
    model_digest_problem: str | None = None
    evidence_location: str | None = None
    workspace: str = DEFAULT_WORKSPACE

    @property
    def stated_workspace(self) -> str | None:
        """The workspace as a statement about this promotion says it: nothing of the default one."""
        return None if self.workspace == DEFAULT_WORKSPACE else self.workspace


@dataclass(frozen=True)
class Decision:
    """Whether one promotion may go ahead, and every reason.

    ``refusal`` is the text for the person who asked; it is empty only where nothing was held against the promotion. In mode ``warn``
    and ``off`` a promotion is ``allowed`` with a text that says so. ``evidence`` and ``envelope_sha256`` are the ones that were judged.
    ``verdict`` is the policy's alone; ``outcome`` is what to show. ``waivers`` are those that permit a finding here; ``sign_offs`` and
    ``exemptions`` all that count for this test, this target, these bytes.
    """

    allowed: bool
    target: PromotionTarget
    findings: tuple[Finding, ...]
    verdict: Verdict | None
    evidence: Evidence | None
    envelope_sha256: str | None
    mode: Mode
    refusal: str
    waivers: tuple[VerifiedStatement[Waiver], ...] = ()
    sign_offs: tuple[VerifiedStatement[SignOff], ...] = ()
    exemptions: tuple[VerifiedStatement[Exemption], ...] = ()

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings for which it is, or in mode ``warn`` would have been, refused."""
        return blocking(self.findings)

    @property
    def outcome(self) -> Outcome | None:
        """``waived`` where only waivers let this promotion through, else the verdict's own; None where nothing was judged."""
        if self.verdict is None:
            return None
        return Outcome.WAIVED if self.waivers and not self.blocking else self.verdict.outcome

    @property
    def waived(self) -> bool:
        """Whether only waivers let this promotion through."""
        return self.outcome is Outcome.WAIVED

    @property
    def counts_until(self) -> datetime | None:
        """Until when what was decided can hold: the end of the evidence, or of the first waiver to end; None where nothing was judged."""
        if self.verdict is None:
            return None
        ends = [waiver.statement.effective_until for waiver in self.waivers]
        waived = {code for waiver in self.waivers for code in waiver.statement.findings}
        return min(ends if ReasonCode.PG005 in waived else [*ends, self.verdict.expires_at])

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """The codes of all findings, each once, in order of appearance."""
        return tuple(dict.fromkeys(str(finding.code) for finding in self.findings))


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Give the findings that stand against a promotion: neither mere warnings nor covered by a waiver."""
    return tuple(finding for finding in findings if finding.effect not in (Effect.WARN, Effect.WAIVED))
