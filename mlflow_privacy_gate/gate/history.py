"""What earlier tests of the same bytes say about the one that was handed in: a newer one, or one that failed on other rows.

The ledger remembers what tags can be made to forget. Each earlier test is judged under the policy in force, at its own moment, so that
age alone changes nothing of what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence
from mlflow_privacy_gate.policy.judging import judge
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.vocabulary import Effect, Finding, Outcome, ReasonCode


@dataclass(frozen=True)
class _EarlierTest:
    sha256: str
    evidence: Evidence
    outcome: Outcome


@dataclass(frozen=True)
class Held:
    """What is held against a test, and the failed tests (envelope sha256) among it for which a waiver answers."""

    findings: tuple[Finding, ...]
    answered: frozenset[str]


def history(
    policy: Policy, handed_in: VerifiedEvidence, known: KnownTests, *, answerable: Set[str] = frozenset()
) -> Held:
    """Find what the ledger holds against one believed test of the same bytes.

    PG008 where it knows a newer test. PG108 where an earlier test failed on other splits, and no newer test of those very splits passed;
    it counts as waived for the failed tests that are ``answerable``, being named in a privacy officer's waiver. CouldNotLook (PG902)
    where a recorded test cannot be read.
    """
    others = [test for test in _judged(policy, known) if test.sha256 != handed_in.envelope_sha256]
    standing = [test for test in others if _stands_against(test, handed_in, others)]
    findings = [*_newer(handed_in, others)]
    findings += [_failed(test, answered=test.sha256 in answerable) for test in standing]
    return Held(tuple(findings), frozenset(test.sha256 for test in standing) & answerable)


def _newer(handed_in: VerifiedEvidence, others: Sequence[_EarlierTest]) -> Iterator[Finding]:
    tested = handed_in.evidence.tested_at
    outdo = [
        test
        for test in others
        if test.evidence.tested_at > tested
        or (test.evidence.tested_at == tested and test.outcome is not Outcome.PASS)  # of one moment, the worse counts
    ]
    if outdo:
        newest = max(outdo, key=lambda test: test.evidence.tested_at)
        yield Finding(
            ReasonCode.PG008,
            f"The evidence is of {_minute(handed_in.evidence)}; the ledger knows a test of these bytes of {_minute(newest.evidence)} "
            f"({newest.outcome}, envelope sha256 {newest.sha256[:16]}).",
        )


def _stands_against(test: _EarlierTest, handed_in: VerifiedEvidence, others: Sequence[_EarlierTest]) -> bool:
    """Whether a test failed on other splits, and nothing has superseded it."""
    if test.outcome is not Outcome.FAIL or _splits(test.evidence) == _splits(handed_in.evidence):
        return False
    return not any(_supersedes(other, test) for other in others)


def _failed(test: _EarlierTest, *, answered: bool) -> Finding:
    return Finding(
        ReasonCode.PG108,
        f"These bytes failed a test of {_minute(test.evidence)} on other splits (envelope sha256 {test.sha256}), "
        f"and no newer test of those splits passed.",
        effect_override=Effect.WAIVED if answered else None,
    )


def _judged(policy: Policy, known: KnownTests) -> list[_EarlierTest]:
    tests = []
    for envelope in known.envelopes:
        try:
            opened = open_envelope(envelope)
            evidence = read_statement(opened.payload)
        except EvidenceRejected as exc:
            raise CouldNotLook(
                f"the ledger holds a test that cannot be read: {exc.message}", code=ReasonCode.PG902
            ) from exc
        tests.append(_EarlierTest(opened.sha256, evidence, judge(policy, evidence, now=evidence.tested_at).outcome))
    return tests


def _supersedes(test: _EarlierTest, failed: _EarlierTest) -> bool:
    newer = test.evidence.tested_at > failed.evidence.tested_at
    return newer and test.outcome is Outcome.PASS and _splits(test.evidence) == _splits(failed.evidence)


def _splits(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((side.role, side.digest) for side in evidence.data))


def _minute(evidence: Evidence) -> str:
    return f"{evidence.tested_at:%Y-%m-%d %H:%M:%S} UTC"
