"""What a check gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.vocabulary import EXIT_CODES, Finding, Outcome


@dataclass(frozen=True)
class CheckResult:
    """The answer of one check: the verdict, the number that decided it, and everything behind it.

    ``attack_auc`` and ``attack`` are the largest gating AUC (a fraction in [0, 1]) and its name; ``confidence_auc`` is the rule's own
    number (None for models without class probabilities). ``headroom`` is margin minus attack AUC. ``signed`` says whether the evidence
    can open a gate that requires signatures; ``recorded`` is False after a dry run. ``card`` and ``report`` are texts (Markdown and HTML).
    ``mitigations``: what was tried against the leak and measured, best first, where that was asked for and the model is over the margin.
    ``notes``: sentences on what a card that was handed in could not take back of the recorded one.
    """

    model: ResolvedModel
    verdict: Outcome
    attack: str | None
    attack_auc: float | None
    confidence_auc: float | None
    margin: float
    headroom: float | None
    findings: tuple[Finding, ...]
    evidence: Evidence
    signed: bool
    recorded: bool
    card: str = field(repr=False)
    report: str = field(repr=False)
    envelope: bytes = field(repr=False)
    mitigations: tuple[Mitigation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of ``mlflow-privacy-gate check`` for this verdict: 0 pass, 1 fail, 3 inconclusive."""
        return EXIT_CODES[self.verdict]
