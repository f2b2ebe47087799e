"""The rows of a card's tables, each as the words and numbers that are printed, from evidence and verdict alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.small_cells import SMALLEST_CELL, printed_counts
from mlflow_privacy_gate.evidence.facts import AttackFacts, Evidence, Metric, SubgroupFacts
from mlflow_privacy_gate.policy.judging import Verdict
from mlflow_privacy_gate.vocabulary import ATTACKS, REASONS, Effect, Finding, Outcome, ReasonCode, severity_word

TPR_PREFIX = "tpr_at_fpr_"
NOT_MEASURED = "not measured"
NOT_JUDGED = "could not judge"


@dataclass(frozen=True)
class FieldRow:
    """One named fact; ``value`` None is printed as unknown with the ``reason``, never as 0 or a guess."""

    label: str
    value: str | None
    reason: str = "not stated"

    @property
    def text(self) -> str:
        """The value, or ``unknown`` with the reason."""
        return self.value if self.value is not None else f"unknown ({self.reason})"


@dataclass(frozen=True)
class AttackRow:
    """One attack as printed. ``ruling`` is ``pass``, ``fail``, ``could not judge`` or ``reported only``."""

    name: str
    title: str
    formula: str
    source: str
    auc: str
    interval: str
    margin: str
    headroom: str
    result: str
    ruling: str
    gating: bool
    value: float | None
    low: float | None
    high: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TailRow:
    """One attack's true positive rates at low false positive rates, in the order of the view's ``tail_names``."""

    attack: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class FindingRow:
    """All findings of one code and effect as printed; ``effect`` in plain words, ``remedy`` said once."""

    code: str
    title: str
    effect: str
    messages: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class SubgroupRow:
    """One subgroup as printed; ``auc`` is ``too small`` where the group was not judged."""

    column: str
    group: str
    rows_members: str
    rows_non_members: str
    auc: str
    interval: str
    holm_p: str
    tpr: str
    tpr_holm_p: str


_EFFECT_WORDS = {
    Effect.WARN: "warning",
    Effect.INCONCLUSIVE: NOT_JUDGED,
    Effect.BROKEN: "the test is broken",
    Effect.FAIL: "fail",
    Effect.REFUSE: "refused at the gate",
    Effect.WAIVED: "waived",
}
_UNDECIDED = frozenset({Effect.INCONCLUSIVE, Effect.BROKEN})


def rows_of_findings(findings: Iterable[Finding]) -> tuple[FindingRow, ...]:
    """Print findings by code, in their own order of first appearance."""
    alike: dict[tuple[ReasonCode, Effect, str], list[str]] = {}
    for finding in findings:
        alike.setdefault((finding.code, finding.effect, finding.remedy), []).append(finding.message)
    return tuple(
        FindingRow(str(code), REASONS[code].title, _EFFECT_WORDS[effect], tuple(messages), remedy)
        for (code, effect, remedy), messages in alike.items()
    )


def attack_rows(evidence: Evidence, verdict: Verdict) -> tuple[AttackRow, ...]:
    """Print every attack that ran, gating ones first."""
    rows = [_attack_row(attack, evidence, verdict) for attack in evidence.attacks]
    return tuple(sorted(rows, key=lambda row: not row.gating))


def _attack_row(attack: AttackFacts, evidence: Evidence, verdict: Verdict) -> AttackRow:
    auc = attack.auc or Metric("auc", None)
    gating = attack.id in evidence.gating or attack.id == verdict.attack
    words = ATTACKS.get(attack.id)
    ruling = _ruling(attack.id, verdict, measured=auc.value is not None)
    notes = (*attack.notes, *((auc.note,) if auc.note else ()), *_counted_out(attack))
    return AttackRow(
        name=attack.id,
        title=words.title if words else "an attack of another version of this tool",
        formula=attack.formula,
        source=words.source if words else "unknown (not an attack this version knows)",
        auc=numbers.plain(auc.value, limit=verdict.margin) if auc.value is not None else NOT_MEASURED,
        interval=numbers.interval(auc.ci_low, auc.ci_high) or NOT_MEASURED,
        margin=numbers.exact(verdict.margin),
        headroom=numbers.headroom(verdict.margin, auc.value) if auc.value is not None else NOT_MEASURED,
        result=_result(auc.value, verdict, ruling),
        ruling=ruling if gating else "reported only",
        gating=gating,
        value=auc.value,
        low=auc.ci_low,
        high=auc.ci_high,
        notes=notes,
    )


def _result(auc: float | None, verdict: Verdict, ruling: str) -> str:
    if auc is None:
        return NOT_MEASURED
    return ruling if ruling == NOT_JUDGED else severity_word(auc, verdict.margin)


def _counted_out(attack: AttackFacts) -> tuple[str, ...]:
    return (f"{numbers.count(attack.rows_left_out)} rows left out",) if attack.rows_left_out else ()


def _ruling(attack: str, verdict: Verdict, *, measured: bool) -> str:
    concerning = [f for f in verdict.findings if f.attack in (None, attack)]
    if verdict.outcome is Outcome.INCONCLUSIVE or not measured:
        return NOT_JUDGED
    if any(f.code is ReasonCode.PG201 and f.attack == attack and f.effect is Effect.FAIL for f in concerning):
        return "fail"
    return NOT_JUDGED if any(f.effect in _UNDECIDED for f in concerning) else "pass"


def tail_names(evidence: Evidence) -> tuple[str, ...]:
    """Name the measured low false positive rates, largest first: ``TPR at 1% FPR``, ``TPR at 0.1% FPR``."""
    return tuple(_tail_name(metric_id) for metric_id in _tail_ids(evidence))


def tail_rows(evidence: Evidence) -> tuple[TailRow, ...]:
    """Print each attack's true positive rates with intervals, or why one could not be resolved."""
    ids = _tail_ids(evidence)
    return tuple(TailRow(a.id, tuple(_tail_cell(a.metric(i)) for i in ids)) for a in evidence.attacks if _has_tail(a))


def _tail_name(metric_id: str) -> str:
    return f"TPR at {numbers.percentage(_fpr(metric_id))} FPR"


def _has_tail(attack: AttackFacts) -> bool:
    return any(metric.id.startswith(TPR_PREFIX) for metric in attack.metrics)


def _tail_ids(evidence: Evidence) -> list[str]:
    ids = {m.id for attack in evidence.attacks for m in attack.metrics if m.id.startswith(TPR_PREFIX)}
    return sorted(ids, key=_fpr, reverse=True)


def _fpr(metric_id: str) -> float:
    return float(metric_id.removeprefix(TPR_PREFIX))


def _tail_cell(metric: Metric | None) -> str:
    if metric is None or metric.value is None:
        return (metric.note if metric else None) or NOT_MEASURED
    between = numbers.interval(metric.ci_low, metric.ci_high)
    return numbers.plain(metric.value) + (f" ({between})" if between else "")


def tail_notes(evidence: Evidence) -> tuple[str, ...]:
    """Print each note on a measured rate once, with the attacks it is about: ``TPR at 1% FPR (confidence, loss): rests on …``."""
    alike: dict[tuple[str, str], list[str]] = {}
    for metric_id in _tail_ids(evidence):
        for attack in evidence.attacks:
            metric = attack.metric(metric_id)
            if metric is not None and metric.value is not None and metric.note:
                alike.setdefault((metric_id, metric.note), []).append(attack.id)
    return tuple(f"{_tail_name(metric_id)} ({', '.join(ids)}): {note}" for (metric_id, note), ids in alike.items())


def subgroup_rows(subgroups: Iterable[SubgroupFacts]) -> tuple[SubgroupRow, ...]:
    """Print subgroups column by column; counts below ten, and what would give them away, are not printed."""
    rows: list[SubgroupRow] = []
    for _, groups in groupby(subgroups, key=lambda subgroup: subgroup.column):
        column = list(groups)
        members = printed_counts([group.rows_members for group in column])
        non_members = printed_counts([group.rows_non_members for group in column])
        rows += [_subgroup_row(*cells) for cells in zip(column, members, non_members, strict=True)]
    return tuple(rows)


def _subgroup_row(group: SubgroupFacts, members: str, non_members: str) -> SubgroupRow:
    small = min(group.rows_members, group.rows_non_members) < SMALLEST_CELL
    judged = group.auc is not None and group.note is None and not small
    missing = NOT_MEASURED if judged else "not shown"
    return SubgroupRow(
        column=group.column,
        group=group.group,
        rows_members=members,
        rows_non_members=non_members,
        auc=numbers.plain(group.auc) if judged and group.auc is not None else group.note or "too small",
        interval=(numbers.interval(group.ci_low, group.ci_high) if judged else None) or missing,
        holm_p=numbers.p_value(group.holm_p) if judged and group.holm_p is not None else missing,
        tpr=numbers.plain(group.tpr) if judged and group.tpr is not None else missing,
        tpr_holm_p=numbers.p_value(group.tpr_holm_p) if judged and group.tpr_holm_p is not None else missing,
    )
