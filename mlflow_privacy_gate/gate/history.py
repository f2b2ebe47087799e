"""What earlier tests of the same bytes say about the one that was handed in: a newer one, or one that failed on other rows.

The ledger remembers what tags can be made to forget. Each earlier test is judged under the policy in force, at its own moment, so that
age alone changes nothing of what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence
from mlflow_privacy_gate.policy.judging import judge
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.vocabulary import Finding, Outcome, ReasonCode


@dataclass(frozen=True)
class _EarlierTest:
    sha256: str
    evidence: Evidence
    outcome: Outcome


def history(
    policy: Policy, handed_in: VerifiedEvidence, known: KnownTests, *, answered: Set[str] = frozenset()
) -> Iterator[Finding]:
    """Find what the ledger holds against one believed test of the same bytes.

    PG008 where it knows a newer test. PG108 where an earlier test failed on other splits, and no newer test of those very splits passed;
    ``answered`` are the failed tests (envelope sha256) that a privacy officer has named in a statement. CouldNotLook (PG902)
    where a recorded test cannot be read.
    """
    others = [test for test in _judged(policy, known) if test.sha256 != handed_in.envelope_sha256]
    tested = handed_in.evidence.tested_at
    newer = [test for test in others if test.evidence.tested_at > tested]
    same_moment = [test for test in others if test.evidence.tested_at == tested and test.outcome is not Outcome.PASS]
    if newer or same_moment:
        newest = max([*newer, *same_moment], key=lambda test: test.evidence.tested_at)
        yield Finding(
            ReasonCode.PG008,
            f"The evidence is of {_minute(handed_in.evidence)}; the ledger knows a test of these bytes of {_minute(newest.evidence)} "
            f"({newest.outcome}, envelope sha256 {newest.sha256[:16]}).",
        )
    here = _splits(handed_in.evidence)
    for failed in others:
        if failed.outcome is not Outcome.FAIL or _splits(failed.evidence) == here or failed.sha256 in answered:
            continue
        if not any(_supersedes(test, failed) for test in others):
            yield Finding(
                ReasonCode.PG108,
                f"These bytes failed a test of {_minute(failed.evidence)} on other splits (envelope sha256 {failed.sha256}), "
                f"and no newer test of those splits passed.",
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
