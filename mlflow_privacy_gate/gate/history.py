"""What earlier tests of the same bytes say about the one that was handed in: a newer one, or one that failed and was not made good.

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
from mlflow_privacy_gate.policy.margin import declared_categories, margin_in_force
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.wording import number
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

    PG008 where it knows a newer test. PG108 where an earlier test failed, the one handed in was not put to the same proof, and no
    newer test that was has passed; it counts as waived for the failed tests that are ``answerable``, being named in a privacy
    officer's waiver. CouldNotLook (PG902) where a recorded test cannot be read.
    """
    others = _judged(policy, known, besides=handed_in.envelope_sha256)
    standing = [test for test in others if _stands_against(policy, test, handed_in, others)]
    findings = [*_newer(handed_in, others)]
    findings += [_failed(policy, test, handed_in, answered=test.sha256 in answerable) for test in standing]
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


def _stands_against(
    policy: Policy, test: _EarlierTest, handed_in: VerifiedEvidence, others: Sequence[_EarlierTest]
) -> bool:
    """Whether a test failed, and neither this one nor a pass in between has put the same bytes to the same proof."""
    if test.outcome is not Outcome.FAIL or not _lacks(policy, handed_in.evidence, test.evidence):
        return False
    return not any(_supersedes(policy, other, test) for other in others)


def _failed(policy: Policy, test: _EarlierTest, handed_in: VerifiedEvidence, *, answered: bool) -> Finding:
    lacks = "; ".join(_lacks(policy, handed_in.evidence, test.evidence))
    return Finding(
        ReasonCode.PG108,
        f"These bytes failed a test of {_minute(test.evidence)} (envelope sha256 {test.sha256}), and no newer one takes its place. "
        f"The test handed in does not: {lacks}.",
        effect_override=Effect.WAIVED if answered else None,
    )


def _judged(policy: Policy, known: KnownTests, *, besides: str) -> list[_EarlierTest]:
    tests = []
    for envelope in known.envelopes:
        try:
            opened = open_envelope(envelope)
            if opened.sha256 == besides:
                continue
            evidence = read_statement(opened.payload)
        except EvidenceRejected as exc:
            raise CouldNotLook(
                f"the ledger holds a test that cannot be read: {exc.message}", code=ReasonCode.PG902
            ) from exc
        tests.append(_EarlierTest(opened.sha256, evidence, judge(policy, evidence, now=evidence.tested_at).outcome))
    return tests


def _supersedes(policy: Policy, test: _EarlierTest, failed: _EarlierTest) -> bool:
    newer = test.evidence.tested_at > failed.evidence.tested_at
    return newer and test.outcome is Outcome.PASS and not _lacks(policy, test.evidence, failed.evidence)


def _lacks(policy: Policy, test: Evidence, failed: Evidence) -> tuple[str, ...]:
    """Say what a test lacks of the proof that another one failed: its splits, its rows, its data categories, its margin."""
    if _splits(test) != _splits(failed):
        return ("it is on other splits",)
    lacks = [
        f"it used {_used(test, side.role):,} of the {side.role.replace('_', '-')}, the failed test {side.rows_used:,}"
        for side in failed.data
        if _used(test, side.role) < side.rows_used
    ]
    dropped = set(declared_categories(failed.card)) - set(declared_categories(test.card))
    if dropped:
        lacks.append(f"the card no longer declares {', '.join(sorted(dropped))}")
    ours, theirs = margin_in_force(policy, test.card).value, margin_in_force(policy, failed.card).value
    if ours > theirs:
        lacks.append(f"its margin is {number(ours)}, the failed test's {number(theirs)}")
    return tuple(lacks)


def _used(evidence: Evidence, role: str) -> int:
    side = evidence.side(role)
    return 0 if side is None else side.rows_used


def _splits(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((side.role, side.digest) for side in evidence.data))


def _minute(evidence: Evidence) -> str:
    return f"{evidence.tested_at:%Y-%m-%d %H:%M:%S} UTC"
