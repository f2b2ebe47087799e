"""One promotion, from the request to the write. Whatever goes wrong on the way refuses.

*Look*: hash the bytes, outside of any turn, since that takes time. Then, in one turn, with everybody else waiting: read the version and its
evidence, *decide* (the pure decision of ``gate``, with what the ledger knows), *record*, *write* through the inner store's own method, and
look a last time at the files. "There is no such version" stays MLflow's own error; every other error becomes a refusal with its
reason code. A refusal is in the ledger before it is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Generic, TypeVar

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate import gate
from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected, PolicyError, PromotionRefused
from mlflow_privacy_gate.evidence.ledger import KnownTests, Result
from mlflow_privacy_gate.policy.location import PolicyFile
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.registry.translation import is_conflict
from mlflow_privacy_gate.store.measuring import FolderAt, Looks, Unmeasured, VersionLocation
from mlflow_privacy_gate.store.recording import Recorder, Who, newest_of
from mlflow_privacy_gate.store.refusals import finding_of, is_an_answer, refused, target_of
from mlflow_privacy_gate.store.routes import Request, check_length
from mlflow_privacy_gate.store.subjects import Subject
from mlflow_privacy_gate.store.turns import Turn, Turns
from mlflow_privacy_gate.vocabulary import ReasonCode

_T = TypeVar("_T")
_W = TypeVar("_W")
_logger = logging.getLogger(__name__)

_TRIES = 5  # of one request, while versions move under it or the database gives it up for another
_MOST_REFUSED = 20  # versions that one rename is told of: every other promotion waits meanwhile
_MADE = frozenset({gate.Route.CREATE, gate.Route.COPY})


@dataclass(frozen=True)
class Promotion(Generic[_T]):
    """One request, how to look at the versions it promotes (none when they are prompts), how to write it.

    ``version_location`` says where a registered version lies. ``version`` is the one it is about (None: all, or a new one). ``written`` and
    ``undo`` serve where a version exists only afterwards: it is then judged as it was written, where that can be rolled back, and otherwise
    must hold the judged bytes, or it is undone. ``evidence`` are the evidence tags that a new version brings.
    """

    request: Request
    look: Callable[[], Iterable[Subject]]
    version_location: VersionLocation
    write: Callable[[], _T]
    version: str | None = None
    written: Callable[[_T], Sequence[Subject]] | None = None
    undo: Callable[[_T], object] | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ruled:
    """One version and what was decided of it."""

    subject: Subject
    decision: gate.Decision


class _Refused(Exception):
    """Leaves a savepoint with everything that was decided; it never leaves the guard."""

    def __init__(self, rulings: Sequence[Ruled]) -> None:
        super().__init__()
        self.rulings = tuple(rulings)


class PromotionGuard:
    """Decides promotions under the policy file in force.

    ``folder_at`` gives a location's folder, ``turns`` are taken at the registry, ``who`` says who asks, ``clock`` the time (UTC).
    """

    def __init__(
        self,
        policy_file: PolicyFile,
        folder_at: FolderAt,
        turns: Turns,
        who: Who,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._policy_file = policy_file
        self._folder_at = folder_at
        self._turns = turns
        self._who = who
        self._clock = clock
        self._last_read: Policy | None = None

    def promote(self, promotion: Promotion[_T]) -> _T:
        """Write what is no promotion or an allowed one; raise MlflowException (PERMISSION_DENIED) for a refused one."""
        if self._turns.inside():
            return promotion.write()  # a part of a promotion that is being decided
        policy = self._refusing(promotion, lambda: self._guarding(promotion))
        if policy is None:
            if promotion.evidence:
                return self.write_evidence(promotion.request.name, None, promotion.evidence, promotion.write)
            return promotion.write()
        if policy.mode is Mode.ENFORCE:
            return self._refusing(promotion, lambda: self._decided(policy, promotion), policy)
        try:
            return self._decided(policy, promotion)
        except Exception as exc:
            if is_an_answer(exc):
                raise
            _logger.warning("privacy gate (mode: %s) would have refused: %s", policy.mode, exc, exc_info=exc)
        return promotion.write()

    def write_evidence(self, name: str, version: str | None, tags: Mapping[str, str], write: Callable[[], _T]) -> _T:
        """Write tags that hold evidence, in a turn, and record those that are believed; nothing is written where that cannot be done."""
        if self._turns.inside():
            return write()

        def work() -> _T:
            policy = self._policy_file.current()
            with self._turns.turn(policy) as turn:
                turn.lock(name, version)
                result = write()
                Recorder(turn.ledger, self._who(), policy, self._clock()).papers(name, version, tags)
            return result

        return _writing(f"{' '.join(tags)} of {name}", work)

    def write_in_turn(self, name: str, version: str, write: Callable[[], object]) -> None:
        """Write a tag of the gate's that holds no evidence, or take one away, while no promotion is being decided."""
        if self._turns.inside():
            write()
            return

        def work() -> None:
            try:
                policy: Policy | None = self._policy_file.current()
            except PolicyError:
                policy = None
            with self._turns.turn(policy) as turn:
                turn.lock(name, version)
                write()

        _writing(f"the privacy gate's tag of {name} version {version}", work)

    def _refusing(self, promotion: Promotion[_T], work: Callable[[], _W], policy: Policy | None = None) -> _W:
        """Do a part of the work; what is no answer of MLflow's leaves it as a refusal."""
        try:
            return work()
        except PromotionRefused as exc:
            raise refused(exc.message) from exc
        except Exception as exc:
            if is_an_answer(exc):
                raise
            finding = finding_of(exc)
            refusal = gate.refuse(target_of(promotion.request, version=promotion.version), [finding])
            self._note(refusal, policy)
            raise refused(refusal.refusal) from exc

    def _guarding(self, promotion: Promotion[_T]) -> Policy | None:
        """Return the policy that guards this request, None where it is no promotion; PolicyError where that cannot be known."""
        request = promotion.request
        check_length(request)
        with self._turns.primary():
            try:
                policy = self._last_read = self._policy_file.current()
            except PolicyError:
                if request.guarded_blindly(self._last_read) and any(True for _ in promotion.look()):
                    raise
                return None
            return policy if request.guarded_by(policy) else None

    def _decided(self, policy: Policy, promotion: Promotion[_T]) -> _T:
        """Take turns until everything that is promoted was looked at before; PromotionRefused with every refusal."""
        looks = Looks(self._folder_at, promotion.version_location, policy.limits.memory_gb * 1e9)
        with self._turns.primary():
            ahead = tuple(promotion.look()) if _may_matter(policy) else ()
        for subject in ahead:
            if _worth_a_look(policy, promotion.request, subject):
                looks.look(subject.location)
        for _ in range(_TRIES):
            try:
                with self._turns.turn(policy) as turn:
                    outcome = self._in_turn(turn, policy, promotion, looks)
            except Unmeasured as exc:
                looks.look(exc.location)
                continue
            except Exception as exc:
                if is_conflict(exc):
                    continue
                raise
            if isinstance(outcome, _Refused):
                raise PromotionRefused("\n\n".join(_texts(outcome.rulings)))
            return outcome[0]
        raise CouldNotLook("what is to be promoted kept changing while it was looked at; try again")

    def _in_turn(self, turn: Turn, policy: Policy, promotion: Promotion[_T], looks: Looks) -> tuple[_T] | _Refused:
        """Read, decide, record, write; a refusal is returned, so that what was recorded of it stays."""
        turn.lock(promotion.request.name, promotion.version)
        recorder = Recorder(turn.ledger, self._who(), policy, self._clock())
        rulings: list[Ruled] = []
        result: list[_T] = []
        try:
            with turn.savepoint():
                if turn.transactional and promotion.written is not None:
                    result.append(promotion.write())
                    rulings += self._rule(turn, recorder, promotion, promotion.written(result[0]), looks)
                else:
                    rulings += self._rule(turn, recorder, promotion, promotion.look(), looks)
                    if not _as_looked_at(policy, looks):
                        raise _Refused([_changed(ruled) for ruled in rulings])
                    if not turn.transactional:
                        _record(recorder, rulings)
                    result.append(self._write(recorder, promotion, rulings, looks, turn))
                if turn.transactional and not _as_looked_at(policy, looks):
                    raise _Refused([_changed(ruled) for ruled in rulings])
        except _Refused as refusal:
            _record(recorder, refusal.rulings)
            return refusal
        if turn.transactional:
            _record(recorder, rulings)
        return (result[0],)

    def _write(
        self, recorder: Recorder, promotion: Promotion[_T], rulings: Sequence[Ruled], looks: Looks, turn: Turn
    ) -> _T:
        """Write what was allowed; where nothing can be rolled back, hold what was written to the judged bytes."""
        try:
            result = promotion.write()
        except Exception:
            if not turn.transactional:
                _record(recorder, rulings, Result.NOT_WRITTEN)
            raise
        if promotion.written is None or turn.transactional or recorder.policy is None or not rulings:
            return result
        try:
            stored = promotion.written(result)
            for subject in stored:
                looks.look(subject.location)
            same = {looks.at(subject.location).digest for subject in stored} == {
                ruled.decision.target.model_digest for ruled in rulings
            }
        except Exception:
            if promotion.undo is not None:
                _undo(promotion.undo, result)
            _record(recorder, rulings, Result.NOT_WRITTEN)
            raise
        if not same and promotion.undo is not None:
            _undo(promotion.undo, result)
            raise _Refused([_changed(ruled) for ruled in rulings])
        return result

    def _rule(
        self, turn: Turn, recorder: Recorder, promotion: Promotion[_T], subjects: Iterable[Subject], looks: Looks
    ) -> list[Ruled]:
        """Decide each version with what the ledger knows of its bytes; _Refused with those decided when one may not be promoted."""
        rulings = []
        policy = recorder.policy
        assert policy is not None
        for subject in subjects:
            seen = looks.at(subject.location) if _worth_a_look(policy, promotion.request, subject) else None
            digest = seen.digest if seen else None
            known = turn.ledger.known_tests(digest) if digest else KnownTests()
            attestations: Sequence[str] = subject.attestations
            if not attestations and promotion.request.route in _MADE:
                attestations = newest_of(known.envelopes)
            papers = subject.papers
            decision = gate.decide(
                policy,
                attestations,
                papers.waivers,
                papers.sign_offs,
                papers.exemptions,
                target=target_of(
                    promotion.request,
                    subject,
                    digest,
                    seen.problem if seen else None,
                    workspace=recorder.asker.workspace,
                ),
                now=recorder.now,
                known=known,
            )
            if decision.allowed and decision.refusal:  # modes warn and off
                _logger.warning("privacy gate: %s", decision.refusal)
            rulings.append(Ruled(subject, decision))
            if len(_texts(rulings)) == _MOST_REFUSED:
                break
        if not all(ruled.decision.allowed for ruled in rulings):
            raise _Refused(rulings)
        return rulings

    def _note(self, refusal: gate.Decision, policy: Policy | None) -> None:
        """Record a refusal without a decision, as far as that can be done; it stands all the same."""
        if str(ReasonCode.PG902) in refusal.reason_codes:
            return  # the database or the ledger itself
        try:
            with self._turns.turn(policy) as turn:
                Recorder(turn.ledger, self._who(), policy, self._clock()).decision(refusal)
        except Exception:
            _logger.exception("privacy gate: a refusal could not be recorded in the ledger")


def _may_matter(policy: Policy) -> bool:
    """Whether any bytes could get a promotion allowed."""
    return policy.mode is not Mode.OFF and not gate.hopeless(policy, has_evidence=True)


def _worth_a_look(policy: Policy, request: Request, subject: Subject) -> bool:
    """Whether the bytes decide: reading gigabytes to refuse what has no evidence would let anybody keep the server busy."""
    in_ledger = request.route in _MADE  # which evidence of a new version that is, its bytes tell
    return _may_matter(policy) and not gate.hopeless(policy, has_evidence=bool(subject.attestations) or in_ledger)


def _writing(what: str, work: Callable[[], _T]) -> _T:
    """Do work that writes tags; MLflow's own errors stay what they are, ours leave as MLflow's with their code."""
    for attempt in range(_TRIES):
        try:
            return work()
        except MlflowException as exc:
            if not is_conflict(exc) or attempt == _TRIES - 1:
                raise
        except Exception as exc:
            if not is_conflict(exc) or attempt == _TRIES - 1:
                finding = finding_of(exc)
                raise refused(f"Privacy gate did not write {what}: {finding.code}: {finding.message}.") from exc
    raise AssertionError("unreachable: the last try either answers or raises")


def _record(recorder: Recorder, rulings: Sequence[Ruled], result: Result | None = None) -> None:
    """Record what was decided, and before it the evidence that was seen for the first time."""
    for ruled in rulings:
        subject = ruled.subject
        if ruled.decision.mode is not Mode.OFF:
            recorder.papers(subject.name, subject.version, subject.evidence_tags)
        recorder.decision(ruled.decision, result=result)


def _as_looked_at(policy: Policy, looks: Looks) -> bool:
    """Take the last look at the bytes."""
    return policy.mode is Mode.OFF or looks.unchanged()


def _changed(ruled: Ruled) -> Ruled:
    """Refuse a version whose bytes were swapped while it was being decided."""
    error = EvidenceRejected("the stored model changed while it was looked at", code=ReasonCode.PG004)
    return Ruled(ruled.subject, gate.refuse(ruled.decision.target, [finding_of(error)]))


def _texts(rulings: Sequence[Ruled]) -> list[str]:
    return [ruled.decision.refusal for ruled in rulings if not ruled.decision.allowed]


def _undo(undo: Callable[[_T], object], result: _T) -> None:
    try:
        undo(result)
    except Exception:
        _logger.exception("privacy gate: a refused version could not be removed again: %s", result)
