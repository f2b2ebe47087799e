"""What a test measured, as frozen facts: the content of the signed statement, and the only input of a verdict.

Facts are measurements. Nothing here says pass or fail; that is :func:`mlflow_privacy_gate.policy.judge`'s to say, anew, wherever it is
needed. Times are timezone-aware UTC datetimes. Rates and AUCs are fractions in [0, 1]. No row and no per-row score is ever a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from mlflow_privacy_gate.vocabulary import Membership, SplitOrigin

# The metric that holds the interval of the largest of several attack AUCs; it stands with the attack that was largest.
WORST_AUC = "auc_worst"


@dataclass(frozen=True)
class Metric:
    """One measured number with its 95 % interval.

    ``id`` is ``auc``, ``tpr_at_fpr_0.01``, ``balanced_accuracy``, … ``upper`` is the one-sided 95 % upper bound that
    ``decide_on: upper`` compares (97.5 % for TPR limits). ``value`` is None where it could not be resolved; ``note`` says why.
    """

    id: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    upper: float | None = None
    ci_method: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class AttackFacts:
    """What one attack measured."""

    id: str
    formula: str
    metrics: tuple[Metric, ...]
    rows_left_out: int = 0
    seed: int | None = None
    references: int = 0
    references_origin: str | None = None
    notes: tuple[str, ...] = ()

    def metric(self, metric_id: str) -> Metric | None:
        """Return the metric of that id, or None where it was not measured."""
        return next((metric for metric in self.metrics if metric.id == metric_id), None)

    @property
    def auc(self) -> Metric | None:
        """The attack AUC; the interval of the worst of several attacks is the one that allows for its having been chosen."""
        own, chosen = self.metric("auc"), self.metric(WORST_AUC)
        if own is None or chosen is None:
            return own
        return replace(own, ci_low=chosen.ci_low, ci_high=chosen.ci_high, ci_method=chosen.ci_method, note=chosen.note)


@dataclass(frozen=True)
class NotRun:
    """An attack that was not run, and why; silence must never be read as resistance."""

    id: str
    reason: str


@dataclass(frozen=True)
class DataFacts:
    """One side of the test: ``role`` is ``members`` or ``non_members``; ``digest`` is ``rowset-sha256/v1:<hex>``."""

    role: str
    rows: int
    rows_used: int
    digest: str
    unknown_labels: int = 0
    source: str | None = None
    mlflow_name: str | None = None
    mlflow_digest: str | None = None


@dataclass(frozen=True)
class SplitFacts:
    """Where the splits came from and what they share.

    ``as_logged``: True when digests equal the logged ones, False when they (or row counts or schema) differ, None when nothing
    was logged to compare with. ``group_overlap``: groups on both sides, None without a group column. ``shared_rows``: rows
    (features + label) that stand on both sides, counted over all rows before they were dropped from both; ``shared_rows_expected`` what
    duplication within the splits alone predicts. ``used_for_tuning``: None when unknown.
    """

    origin: SplitOrigin
    membership: Membership = Membership.DECLARED
    manifest_sha256: str | None = None
    as_logged: bool | None = None
    as_logged_note: str | None = None
    group: str | None = None
    group_overlap: int | None = None
    shared_rows: int = 0
    shared_rows_expected: float = 0.0
    used_for_tuning: bool | None = None


@dataclass(frozen=True)
class ValidityFacts:
    """What was measured of the test itself. ``blind_*``: None when the blind baseline was not run.

    ``unstable_rows`` of ``asked_again_rows`` were answered otherwise, by more than float noise, when the model was asked once more.
    """

    blind_auc: float | None = None
    blind_ci_low: float | None = None
    blind_columns: tuple[str, ...] = ()
    tie_share: float | None = None
    positive_control_auc: float | None = None
    positive_control_ci_low: float | None = None
    unstable_rows: int | None = None
    smallest_detectable_auc: float | None = None
    holds_training_rows: str | None = None
    asked_again_rows: int | None = None


@dataclass(frozen=True)
class DifferentialPrivacyClaim:
    """A claim (epsilon, delta) per ``unit`` from the card; ``sampling_rate``, ``noise_multiplier``, ``steps`` where given."""

    epsilon: float
    delta: float
    unit: str | None = None
    accountant: str | None = None
    sampling_rate: float | None = None
    noise_multiplier: float | None = None
    steps: int | None = None


@dataclass(frozen=True)
class CardClaims:
    """What the author's card told the gate at the time of the test. ``personal_data`` None = not declared."""

    personal_data: bool | None = None
    data_categories: tuple[str, ...] = ()
    max_attack_auc: float | None = None
    differential_privacy: DifferentialPrivacyClaim | None = None


@dataclass(frozen=True)
class RecomputedEpsilon:
    """Epsilon worked out again from the training that the card states: by ``rdp`` (an upper bound) or ``prv`` (tight).

    ``epsilon`` is None where no finite one holds. ``accountant`` and ``version`` name what worked it out.
    """

    method: str
    epsilon: float | None
    accountant: str
    version: str


@dataclass(frozen=True)
class PrivacyBudgetFacts:
    """What was measured of a claim of differential privacy.

    ``epsilon_lower_bound``: what the model's epsilon exceeds with confidence ``level``, by what ``attack`` tells apart in its ``tail``
    (``in`` or ``out``) on ``rows_members`` and ``rows_non_members`` rows that had no part in choosing either; None where no attack could
    be used. ``seed`` drew the halves.
    """

    recomputed: tuple[RecomputedEpsilon, ...] = ()
    epsilon_lower_bound: float | None = None
    level: float | None = None
    attack: str | None = None
    tail: str | None = None
    rows_members: int | None = None
    rows_non_members: int | None = None
    seed: int | None = None

    def by(self, method: str) -> RecomputedEpsilon | None:
        """Return what that method gave, or None where it was not used."""
        return next((one for one in self.recomputed if one.method == method), None)


@dataclass(frozen=True)
class SubgroupFacts:
    """One subgroup: rows a side, its attack AUC with interval, its TPR at 1 % FPR; ``note`` is ``too small`` where it was not judged.

    ``holm_p`` and ``tpr_holm_p`` are corrected together, over all groups of the test.
    """

    column: str
    group: str
    rows_members: int
    rows_non_members: int
    auc: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    holm_p: float | None = None
    note: str | None = None
    tpr: float | None = None
    tpr_holm_p: float | None = None


@dataclass(frozen=True)
class ToolFacts:
    """Which tool measured, under which versions, and how the model was isolated (``in-process`` or ``child-process``)."""

    name: str
    version: str
    python: str
    mlflow: str | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    isolation: str = "in-process"


@dataclass(frozen=True)
class PolicyReference:
    """The policy that stood when the test was made: its file name (never a path) and sha256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Evidence:
    """One test of one model's bytes: what was measured, on what, with which data, by which tool, under which policy.

    ``kind`` is what the model gives: ``classification``, ``label_only``, ``regression`` or ``density``.
    ``gating`` names the attacks that were
    asked to gate at the time (information: the policy in force decides anew). ``outcome`` is what was concluded then (information too).
    """

    model_uri: str
    model_digest: str
    kind: str
    tested_at: datetime
    expires_at: datetime
    nonce: str
    outcome: str
    reason_codes: tuple[str, ...]
    attacks: tuple[AttackFacts, ...]
    data: tuple[DataFacts, ...]
    splits: SplitFacts
    validity: ValidityFacts
    card: CardClaims
    tool: ToolFacts
    policy: PolicyReference
    registered_model: str | None = None
    version: str | None = None
    run_id: str | None = None
    gating: tuple[str, ...] = ()
    privacy_budget: PrivacyBudgetFacts | None = None
    subgroups: tuple[SubgroupFacts, ...] = ()
    not_run: tuple[NotRun, ...] = ()
    limitations: tuple[str, ...] = ()

    def attack(self, attack_id: str) -> AttackFacts | None:
        """Return what that attack measured, or None where it did not run."""
        return next((attack for attack in self.attacks if attack.id == attack_id), None)

    def side(self, role: str) -> DataFacts | None:
        """Return the facts of one side (``members`` or ``non_members``), or None where they are missing."""
        return next((side for side in self.data if side.role == role), None)
