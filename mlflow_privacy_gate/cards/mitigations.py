"""What was tried against a leak and what each trial came to: only one that lowered the attack AUC is said to help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.cards.rows import NOT_MEASURED
from mlflow_privacy_gate.policy.margin import exceeds

WITHIN = "within the margin"
LOWER = "lower than before, still over the margin"
NO_HELP = "no lower than before"


@dataclass(frozen=True)
class MitigationRow:
    """One mitigation as printed. ``effect`` is ``WITHIN``, ``LOWER`` or ``NO_HELP``; ``accuracy`` the change on the non-members."""

    description: str
    auc: str
    interval: str
    accuracy: str
    effect: str
    note: str | None

    @property
    def helps(self) -> bool:
        """Whether the attack AUC was lower with it."""
        return self.effect != NO_HELP

    @property
    def text(self) -> str:
        """What it was measured to do, in one line."""
        between = f" ({self.interval})" if self.interval != NOT_MEASURED else ""
        note = f"; {self.note}" if self.note else ""
        return f"attack AUC {self.auc}{between}, {self.effect}; accuracy {self.accuracy}{note}"


def mitigation_rows(
    measured: Iterable[Mitigation], *, attack_auc: float | None, margin: float
) -> tuple[MitigationRow, ...]:
    """Print mitigations in the order they were ranked in, best first, beside the ``attack_auc`` of the model as it is."""
    return tuple(_row(one, attack_auc, margin) for one in measured)


def _row(measured: Mitigation, before: float | None, margin: float) -> MitigationRow:
    return MitigationRow(
        description=measured.description,
        auc=numbers.plain(measured.attack_auc, limit=margin),
        interval=numbers.interval(measured.ci_low, measured.ci_high) or NOT_MEASURED,
        accuracy=_change(measured.accuracy_change),
        effect=_effect(measured.attack_auc, before, margin),
        note=measured.note,
    )


def _effect(after: float, before: float | None, margin: float) -> str:
    if before is None or not exceeds(before, after):
        return NO_HELP
    return LOWER if exceeds(after, margin) else WITHIN


def _change(change: float | None) -> str:
    if change is None:
        return NOT_MEASURED
    return "unchanged" if change == 0 else numbers.signed(change)
