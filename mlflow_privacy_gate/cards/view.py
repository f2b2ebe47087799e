"""One fact base for the card, the HTML report and the Markdown report: evidence, verdict and particulars, printed once.

Templates lay out what stands here and compute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from mlflow_privacy_gate.cards import numbers, rows, sections
from mlflow_privacy_gate.cards.mitigations import MitigationRow, mitigation_rows
from mlflow_privacy_gate.cards.particulars import Particulars
from mlflow_privacy_gate.cards.privacy_budget import privacy_budget
from mlflow_privacy_gate.cards.rows import AttackRow, FieldRow, FindingRow, SubgroupRow, TailRow
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.policy.judging import Verdict
from mlflow_privacy_gate.vocabulary import RULE_NAME, Outcome


@dataclass(frozen=True)
class CardView:
    """What every view of one test shows; build it with :func:`card_view`.

    All texts are unescaped: templates escape every value they print. ``outcome`` is ``waived`` where a waiver is in force over a
    verdict that is no pass. Numbers are texts already, fractions with a point. ``blocks`` names the templates of our block, longest first.
    """

    evidence: Evidence
    verdict: Verdict
    particulars: Particulars
    outcome: Outcome
    model_name: str
    version: str | None
    in_short: tuple[str, ...]
    next_steps: tuple[str, ...]
    attack_auc: str
    confidence_auc: str
    margin: str
    headroom: str
    severity: str
    tested_at: str
    expires_at: str
    attacks: tuple[AttackRow, ...]
    tail_names: tuple[str, ...]
    tails: tuple[TailRow, ...]
    tail_notes: tuple[str, ...]
    findings: tuple[FindingRow, ...]
    subgroups: tuple[SubgroupRow, ...]
    identity: tuple[FieldRow, ...]
    data: tuple[FieldRow, ...]
    validity: tuple[FieldRow, ...]
    reach: tuple[FieldRow, ...]
    privacy_budget: tuple[FieldRow, ...]
    provenance: tuple[FieldRow, ...]
    environment: tuple[FieldRow, ...]
    power: str
    mitigations: tuple[MitigationRow, ...]
    rule_name: str = RULE_NAME
    blocks: tuple[str, ...] = ("block.md.j2", "short_block.md.j2", "shortest_block.md.j2")

    @property
    def passed(self) -> bool:
        """Whether the verdict is a stated pass."""
        return self.outcome is Outcome.PASS

    @property
    def title(self) -> str:
        """The model's name, with its version where it has one."""
        return f"{self.model_name} version {self.version}" if self.version else self.model_name


def card_view(evidence: Evidence, verdict: Verdict, particulars: Particulars | None = None) -> CardView:
    """Build the view of one test; CardError where a number to print is NaN or infinite."""
    extra = particulars or Particulars()
    waived = bool(extra.waivers) and verdict.outcome is not Outcome.PASS
    outcome = Outcome.WAIVED if waived else verdict.outcome
    worst = verdict.attack_auc
    tried = mitigation_rows(extra.mitigations, attack_auc=worst, margin=verdict.margin)
    return CardView(
        evidence=evidence,
        verdict=verdict,
        particulars=extra,
        outcome=outcome,
        model_name=evidence.registered_model or evidence.model_uri,
        version=evidence.version,
        in_short=sections.in_short(verdict),
        next_steps=sections.next_steps(verdict, outcome, tried),
        attack_auc=rows.NOT_MEASURED if worst is None else numbers.plain(worst, limit=verdict.margin),
        confidence_auc=sections.confidence(verdict),
        margin=numbers.exact(verdict.margin),
        headroom=rows.NOT_MEASURED if worst is None else numbers.headroom(verdict.margin, worst),
        severity=sections.severity(verdict),
        tested_at=moment(evidence.tested_at),
        expires_at=moment(verdict.expires_at),
        attacks=rows.attack_rows(evidence, verdict),
        tail_names=rows.tail_names(evidence),
        tails=rows.tail_rows(evidence),
        tail_notes=rows.tail_notes(evidence),
        findings=rows.rows_of_findings(verdict.findings),
        subgroups=rows.subgroup_rows(evidence.subgroups),
        identity=sections.identity(evidence, extra),
        data=sections.data(evidence),
        validity=sections.validity(evidence),
        reach=sections.reach(evidence, extra),
        privacy_budget=privacy_budget(evidence),
        provenance=sections.provenance(evidence, verdict, extra),
        environment=sections.environment(evidence),
        power=sections.power(evidence),
        mitigations=tried,
    )


def moment(time: datetime) -> str:
    """Print a timezone-aware time in UTC to the minute: ``2026-03-01 14:05 UTC``."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
