"""What a card or report says beside evidence and verdict; all optional, and printed as unknown, with the reason, where missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from mlflow_privacy_gate.cards.curves import RocCurve, ScoreHistogram


@dataclass(frozen=True)
class Mitigation:
    """What one mitigation was measured to do: attack AUC with it (a fraction) and the change of accuracy on the non-members.

    ``ci_low`` and ``ci_high``: the 95 % interval of that AUC. ``retrains``: whether the model is trained again, with ``changes`` to its
    recipe's parameters and on ``columns`` alone (empty: on all of them); otherwise only its answers are changed. ``note``: what else it
    costs or leaves open.
    """

    description: str
    attack_auc: float
    accuracy_change: float | None = None
    note: str | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    retrains: bool = False
    changes: Mapping[str, float] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SignOff:
    """A privacy officer's signed statement on this evidence; ``statement_sha256`` names it."""

    signed_by: str
    signed_at: datetime
    statement_sha256: str
    remark: str | None = None


@dataclass(frozen=True)
class WaiverInForce:
    """A signed, expiring permission to promote despite the named findings."""

    covers: tuple[str, ...]
    reason: str
    requested_by: str
    approved_by: str
    effective_until: datetime
    reference: str | None = None
    compensating_controls: str | None = None


@dataclass(frozen=True)
class AttackCurves:
    """What is drawn of one attack; built by :mod:`mlflow_privacy_gate.cards.curves`, so that no row's score is in it."""

    attack: str
    roc: RocCurve | None = None
    histogram: ScoreHistogram | None = None


RELEASE_CONTEXTS = ("public-api", "internal", "open-weights")


@dataclass(frozen=True)
class AuthorsWords:
    """What a card's author says of data and use: printed as their words, never inferred, and no part of the evidence.

    ``release_context`` is one of ``RELEASE_CONTEXTS``.
    """

    training_data: str | None = None
    cohort: str | None = None
    use_agreement: str | None = None
    release_context: str | None = None


@dataclass(frozen=True)
class Particulars:
    """Everything a view shows that is no measurement of the test.

    ``signer`` is the id of the key that signed; None means unsigned. ``tests_so_far`` counts tests of these bytes, this one included.
    ``author`` holds the author's own words, ``evaluator`` whom the person who ran the check named as such. ``parameters`` is the count of
    learned parameters. ``accuracy_members`` and ``accuracy_non_members`` are the model's own accuracy on each side, fractions in [0, 1].
    ``from_record``: the view is made again from recorded evidence, which holds none of those three; ``curves`` are those that
    were stored beside it, if any.
    """

    signer: str | None = None
    attestation_sha256: str | None = None
    tests_so_far: int | None = None
    report_uri: str | None = None
    verify_command: str | None = None
    author: AuthorsWords = AuthorsWords()
    evaluator: str | None = None
    from_record: bool = False
    parameters: int | None = None
    accuracy_members: float | None = None
    accuracy_non_members: float | None = None
    mitigations: tuple[Mitigation, ...] = ()
    sign_offs: tuple[SignOff, ...] = ()
    waivers: tuple[WaiverInForce, ...] = ()
    curves: tuple[AttackCurves, ...] = ()
    remarks: tuple[str, ...] = ()
