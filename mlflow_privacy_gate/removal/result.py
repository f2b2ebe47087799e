"""What a removal audit gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlflow_privacy_gate.evidence.removal import RemovalEvidence
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.vocabulary import REMOVAL_EXIT_CODES, RemovalAnswer


@dataclass(frozen=True)
class AuditResult:
    """The answer of one audit and everything behind it.

    ``signed`` says whether the evidence is; ``recorded`` is False after a dry run. ``files`` are the report (``report.md``,
    ``report.html``, ``report.json``) and the envelope (``removal.dsse.json``) by name; ``folder`` is their place among the run's artifacts.
    """

    model: ResolvedModel
    evidence: RemovalEvidence
    signed: bool
    recorded: bool
    folder: str
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def answer(self) -> RemovalAnswer:
        """The least favourable of the answers that were found."""
        return self.evidence.answer

    @property
    def exit_code(self) -> int:
        """The exit code of ``audit-removal``: 0 not memorised, 1 memorisation not ruled out, 3 inconclusive."""
        return REMOVAL_EXIT_CODES[self.answer]
