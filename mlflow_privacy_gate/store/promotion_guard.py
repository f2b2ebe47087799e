"""One promotion, from the request to the write: look, decide, write. Whatever goes wrong on the way refuses.

*Look*: read the version, its evidence and its bytes through the inner store. *Decide*: the pure decision of ``gate``. *Write*: the inner
store's own method, after a last look at the bytes. "There is no such version" stays MLflow's own error; every other error
becomes a refusal with its reason code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Generic, TypeVar

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate import gate
from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected, PolicyError, PromotionRefused
from mlflow_privacy_gate.evidence.model_digest import fingerprint, model_digest
from mlflow_privacy_gate.policy.location import PolicyFile
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.store.refusals import is_an_answer, refusal_of, refused, target_of
from mlflow_privacy_gate.store.routes import Request
from mlflow_privacy_gate.store.subjects import Subject
from mlflow_privacy_gate.vocabulary import ReasonCode

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)

VersionLocation = Callable[[str, str], str]
FolderAt = Callable[[str, VersionLocation], AbstractContextManager[Path]]


@dataclass(frozen=True)
class Measured:
    """The bytes of one version as they were a moment ago; ``folder`` is where they still lie, None where they were a copy."""

    digest: str
    fingerprint: str
    folder: Path | None


@dataclass(frozen=True)
class Promotion(Generic[_T]):
    """One request, how to look at the versions it promotes (none when they are prompts), how to write it.

    ``version_location`` says where a registered version lies. ``written`` and ``undo`` serve where a version exists only afterwards: its
    bytes must then be the judged ones, or it is undone.
    """

    request: Request
    look: Callable[[], Sequence[Subject]]
    version_location: VersionLocation
    write: Callable[[], _T]
    written: Callable[[_T], Sequence[Subject]] | None = None
    undo: Callable[[_T], object] | None = None


class PromotionGuard:
    """Decides promotions under the policy file in force; ``folder_at`` gives a location's folder, ``clock`` the time (UTC)."""

    def __init__(
        self,
        policy_file: PolicyFile,
        folder_at: FolderAt,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._policy_file = policy_file
        self._folder_at = folder_at
        self._clock = clock
        self._last_read: Policy | None = None

    def promote(self, promotion: Promotion[_T]) -> _T:
        """Write what is no promotion or an allowed one; raise MlflowException (PERMISSION_DENIED) for a refused one."""
        try:
            judged = self._judged(promotion)
        except Exception as exc:
            if is_an_answer(exc):
                raise  # there is no such version: MLflow's own answer
            refusal = exc.message if isinstance(exc, PromotionRefused) else refusal_of(exc, promotion.request)
            raise refused(refusal) from exc
        return _written(promotion, judged, self._measure) if judged else promotion.write()

    def _judged(self, promotion: Promotion[_T]) -> tuple[Measured, ...]:
        """Return the bytes that were judged and allowed; empty where there is nothing to judge; raises for everything that refuses."""
        request = promotion.request
        try:
            policy = self._last_read = self._policy_file.current()
        except PolicyError:
            if request.guarded_blindly(self._last_read) and promotion.look():
                raise
            return ()
        if not request.guarded_by(policy):
            return ()
        if policy.mode is Mode.OFF:
            notice = gate.decide(policy, (), (), (), target=target_of(request), now=self._clock()).refusal
            _logger.warning("privacy gate: %s", notice)
            return ()
        if policy.mode is Mode.ENFORCE:
            return self._decide(policy, promotion)
        try:
            self._decide(policy, promotion)
        except Exception as exc:
            _logger.warning("privacy gate (mode: warn) would have refused: %s", exc, exc_info=exc)
        return ()

    def _decide(self, policy: Policy, promotion: Promotion[_T]) -> tuple[Measured, ...]:
        """Return the bytes that were judged, all allowed; PromotionRefused with every refusal otherwise."""
        judged, refusals = [], []
        for subject in promotion.look():
            measured, problem = None, None
            try:
                measured = self._measure(subject.location, promotion.version_location)
                judged.append(measured)
            except CouldNotLook as exc:
                problem = exc.message
            target = target_of(promotion.request, subject, measured.digest if measured else None, problem)
            papers = subject.papers
            decision = gate.decide(
                policy,
                subject.attestations,
                papers.waivers,
                papers.sign_offs,
                papers.exemptions,
                target=target,
                now=self._clock(),
            )
            if not decision.allowed:
                refusals.append(decision.refusal)
            elif decision.refusal:  # mode: warn
                _logger.warning("privacy gate: %s", decision.refusal)
        if refusals:
            raise PromotionRefused("\n\n".join(refusals))
        if not all(_unchanged(measured) for measured in judged):
            raise EvidenceRejected("the stored model changed while it was looked at", code=ReasonCode.PG004)
        return tuple(judged)

    def _measure(self, location: str, version_location: VersionLocation) -> Measured:
        """Hash the bytes at a location; CouldNotLook (PG007) where they cannot be had, ModelUnusable (PG004) where they are no model."""
        try:
            with self._folder_at(location, version_location) as folder:
                print_before = fingerprint(folder)
                measured = Measured(model_digest(folder), print_before, folder)
        except MlflowException as exc:
            raise CouldNotLook(f"the model's bytes at {location} cannot be read: {exc.message}") from exc
        return measured if folder.exists() else replace(measured, folder=None)


def _unchanged(measured: Measured) -> bool:
    return measured.folder is None or fingerprint(measured.folder) == measured.fingerprint


def _written(
    promotion: Promotion[_T], judged: Sequence[Measured], measure: Callable[[str, VersionLocation], Measured]
) -> _T:
    """Write an allowed promotion; a database that fails is a refusal (PG902), and other bytes than the judged ones are undone (PG004)."""
    try:
        result = promotion.write()
    except Exception as exc:
        if is_an_answer(exc):
            raise
        raise refused(refusal_of(exc, promotion.request)) from exc
    if promotion.written is None or promotion.undo is None:
        return result
    try:
        stored = {measure(subject.location, promotion.version_location).digest for subject in promotion.written(result)}
        if stored != {measured.digest for measured in judged}:
            raise EvidenceRejected("the version as created holds other bytes than were judged", code=ReasonCode.PG004)
    except Exception as exc:
        _undo(promotion.undo, result)
        raise refused(refusal_of(exc, promotion.request)) from exc
    return result


def _undo(undo: Callable[[_T], object], result: _T) -> None:
    try:
        undo(result)
    except Exception:
        _logger.exception("privacy gate: a refused version could not be removed again: %s", result)
