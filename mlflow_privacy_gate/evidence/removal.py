"""What an audit of data removal measured, as frozen facts: the content of a signed removal statement.

No row and no per-row score stands here, so no threshold either: each is one calibration row's score. Probabilities, shares and AUCs are
fractions in [0, 1]. An object whose answer is better than what it was drawn from cannot be made (UsageError).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.facts import DataFacts, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.in_toto import check_sha256
from mlflow_privacy_gate.vocabulary import REMOVAL_EXIT_CODES, RemovalAnswer, StrEnum

_FAVOUR = tuple(REMOVAL_EXIT_CODES)


def least_favourable(answers: Iterable[RemovalAnswer]) -> RemovalAnswer:
    """Return the answer that says least for the model."""
    return max(answers, key=_FAVOUR.index)


@dataclass(frozen=True)
class MetricFacts:
    """How well one EMA metric parted the calibration model's rows; ``used`` is False where it parted nothing."""

    id: str
    balanced_accuracy: float
    used: bool


@dataclass(frozen=True)
class SetFacts:
    """How EMA saw one set of rows: ``zeros`` of ``rows`` lie below every threshold.

    ``cleared`` is the share of all queries of the audited size, drawn from these rows, that EMA would call not memorised; None where there
    are fewer rows than that.
    """

    rows: int
    zeros: int
    cleared: float | None


@dataclass(frozen=True)
class EmaFacts:
    """EMA's answer, with what it takes to read it.

    ``rho`` is None where no metric could be used; ``alpha`` is what it was held against. ``fewest_zeros`` below every threshold are
    enough for a query of this size to be cleared. ``control`` are known training rows, ``held_out`` rows that were not trained on.
    """

    answer: RemovalAnswer
    reason: str
    alpha: float
    metrics: tuple[MetricFacts, ...]
    rows: int
    zeros: int | None = None
    rho: float | None = None
    fewest_zeros: int | None = None
    control: SetFacts | None = None
    held_out: SetFacts | None = None


class KsState(StrEnum):
    """What became of the ratio rho_KS."""

    FINITE = "finite"
    INFINITE = "infinite"
    UNDEFINED = "undefined"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class KsFacts:
    """The ratio rho_KS, shown beside the others; it decides nothing.

    ``value`` is given where it is finite, ``reason`` where it was not run.
    """

    state: KsState
    value: float | None = None
    target_to_query: float | None = None
    calibration_to_query: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class RankFacts:
    """A one-sided rank test of scores by one attack: whether the ``higher`` rows score higher than the ``lower`` ones.

    ``auc`` is the share of pairs in which they do, with its 95 % interval; a small ``p_value`` says that it is no accident.
    """

    attack: str
    formula: str
    higher: str
    lower: str
    p_value: float
    auc: float
    ci_low: float
    ci_high: float
    ci_method: str


@dataclass(frozen=True)
class CalibratedFacts:
    """What reference models add: is a row's score what it is because the target saw the row, or because the row is easy?

    ``level`` is what p-values were held against. ``decided_by`` names the attack whose tests decide. ``tests`` is empty, and
    ``references`` 0, where it was not run.
    """

    answer: RemovalAnswer
    reason: str
    level: float
    decided_by: str
    tests: tuple[RankFacts, ...] = ()
    references: int = 0
    references_origin: str | None = None
    seed: int | None = None
    rows_left_out: int = 0

    def test(self, attack: str, higher: str) -> RankFacts | None:
        """Return the test by that attack in which those rows were asked to score higher, or None where it was not made."""
        return next((test for test in self.tests if (test.attack, test.higher) == (attack, higher)), None)


@dataclass(frozen=True)
class RemovalEvidence:
    """One audit: does one model's bytes still remember these query rows?

    ``data`` has the roles ``query``, ``calibration_train``, ``calibration_test`` and, where there was one, ``control``.
    ``query_among_members``: query rows that stand among the logged training rows of this very model; None where no record could be read,
    and ``record`` says why, or where it was found. ``calibration_model`` is ``refitted`` or the URI of a given one, whose digest is given.
    """

    model_uri: str
    model_digest: str
    audited_at: datetime
    nonce: str
    answer: RemovalAnswer
    reasons: tuple[str, ...]
    ema: EmaFacts
    ks: KsFacts
    calibrated: CalibratedFacts
    data: tuple[DataFacts, ...]
    record: str
    calibration_model: str
    tool: ToolFacts
    policy: PolicyReference
    query_among_members: int | None = None
    calibration_model_digest: str | None = None
    registered_model: str | None = None
    version: str | None = None
    run_id: str | None = None
    limitations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_sha256("model_digest", self.model_digest)
        check_sha256("policy.sha256", self.policy.sha256)
        known = RemovalAnswer.NOT_RULED_OUT if self.query_among_members else RemovalAnswer.NOT_MEMORISED
        parts = (known, self.ema.answer, self.calibrated.answer)
        if self.answer is not least_favourable(parts):
            raise UsageError(f"answer: {self.answer!r} is not the least favourable of {', '.join(sorted(set(parts)))}")
        roles = [side.role for side in self.data]
        if len(set(roles)) != len(roles) or "query" not in roles:
            raise UsageError(f"data: expected each role once and a query, got {', '.join(roles) or 'none'}")

    def side(self, role: str) -> DataFacts | None:
        """Return the facts of one set of rows, or None where there was none."""
        return next((side for side in self.data if side.role == role), None)
