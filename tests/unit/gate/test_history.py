"""What the ledger holds against a test: a newer one, and a fail on other rows. Remembering more can only refuse more."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from officer_builder import policy_text, sha256_of, sign_off, signed, waiver

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.facts import CardClaims, DataFacts
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind
from mlflow_privacy_gate.gate import Decision, PromotionTarget, Route, decide
from mlflow_privacy_gate.policy import Policy, parse_policy
from mlflow_privacy_gate.vocabulary import Outcome, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
DIGEST = "e" * 64
TESTER = fresh_signer()
POLICY = parse_policy(policy_text(TESTER))
TARGET = PromotionTarget("credit", "7", Route.ALIAS, "champion", DIGEST)


def made(days_ago: float, *, splits: str = "b", fails: bool = False, **changes: Any) -> str:
    tested_at = NOW - timedelta(days=days_ago)
    data = tuple(
        DataFacts(role=role, rows=2000, rows_used=2000, digest=f"rowset-sha256/v1:{digit * 64}")
        for role, digit in (("members", "a"), ("non_members", splits))
    )
    fields = {"tested_at": tested_at, "expires_at": tested_at + timedelta(days=90), "data": data, **changes}
    if fails:
        fields["aucs"] = FAILING_AUCS
    return attestation(passing_evidence(DIGEST, **fields), TESTER)


def ruled(
    handed_in: str,
    *known: str,
    waivers: tuple[str, ...] = (),
    sign_offs: tuple[str, ...] = (),
    policy: Policy = POLICY,
) -> Decision:
    remembered = KnownTests(tuple(base64.b64decode(test) for test in known))
    return decide(policy, (handed_in,), waivers, sign_offs, target=TARGET, now=NOW, known=remembered)


def test_the_only_test_of_these_bytes_is_allowed() -> None:
    handed_in = made(1)
    assert ruled(handed_in).allowed
    assert ruled(handed_in, handed_in).allowed


def test_an_older_pass_is_refused_where_a_newer_fail_is_known() -> None:
    decision = ruled(made(2), made(1, fails=True))
    assert decision.reason_codes == ("PG008",)
    assert not decision.allowed
    assert decision.outcome is Outcome.INCONCLUSIVE
    assert "fail" in decision.refusal


def test_an_older_pass_is_refused_where_a_newer_pass_is_known_too() -> None:
    assert ruled(made(2), made(1)).reason_codes == ("PG008",)


def test_of_two_tests_of_one_moment_the_one_that_fails_counts() -> None:
    assert ruled(made(1), made(1, fails=True)).reason_codes == ("PG008",)
    assert ruled(made(1), made(1, nonce="another")).allowed


def test_a_newer_pass_on_the_same_splits_supersedes_a_fail() -> None:
    assert ruled(made(1), made(2, fails=True)).allowed


def test_a_pass_on_other_splits_does_not_supersede_a_fail() -> None:
    failed = made(2, fails=True)
    decision = ruled(made(1, splits="c"), failed)
    assert decision.reason_codes == ("PG108",)
    assert decision.outcome is Outcome.INCONCLUSIVE
    assert sha256_of(failed) in "".join(finding.message for finding in decision.findings)


def test_a_fail_that_was_superseded_on_its_own_splits_is_forgotten_there_and_elsewhere() -> None:
    assert ruled(made(1, splits="c"), made(3, fails=True), made(2)).allowed


def test_a_pass_before_the_fail_supersedes_nothing() -> None:
    assert ruled(made(1, splits="c"), made(3), made(2, fails=True)).reason_codes == ("PG108",)


def rows_used(members: int, non_members: int) -> tuple[DataFacts, ...]:
    return tuple(
        DataFacts(role=role, rows=2000, rows_used=used, digest=f"rowset-sha256/v1:{digit * 64}")
        for role, digit, used in (("members", "a", members), ("non_members", "b", non_members))
    )


FAILED_AS: dict[str, Any] = {"card": CardClaims(data_categories=("finance", "Location"), max_attack_auc=0.53)}
LOOSER: dict[str, tuple[dict[str, Any], str]] = {
    "fewer members": ({"data": rows_used(1999, 2000)}, "used 1,999 of the members, the failed test 2,000"),
    "fewer non-members": ({"data": rows_used(2000, 1500)}, "used 1,500 of the non-members"),
    "a category dropped": (
        {"card": CardClaims(data_categories=("finance",), max_attack_auc=0.53)},
        "declares location",
    ),
    "every category dropped": ({"card": CardClaims(max_attack_auc=0.53)}, "declares finance, location"),
    "its own margin dropped": ({"card": CardClaims(data_categories=("finance", "location"))}, "margin is 0.55"),
    "its own margin raised": (
        {"card": CardClaims(data_categories=("finance", "location"), max_attack_auc=0.54)},
        "margin is 0.54, the failed test's 0.53",
    ),
}
AS_STRICT: dict[str, dict[str, Any]] = {
    "the same": {},
    "another spelling": {"card": CardClaims(data_categories=("location", "FINANCE"), max_attack_auc=0.53)},
    "a further category": {"card": CardClaims(data_categories=("finance", "location", "x"), max_attack_auc=0.53)},
    "a lower margin": {"card": CardClaims(data_categories=("finance", "location"), max_attack_auc=0.52)},
}


@pytest.mark.parametrize("way", LOOSER)
def test_a_newer_pass_that_asks_less_than_the_test_that_failed_supersedes_nothing(way: str) -> None:
    changes, said = LOOSER[way]
    failed, looser = made(3, fails=True, **FAILED_AS), made(2, **{**FAILED_AS, **changes})
    decision = ruled(looser, failed)
    assert "PG108" in decision.reason_codes
    assert said in " ".join(decision.refusal.split())
    assert ruled(made(1, splits="c"), failed, looser).reason_codes == ("PG108",)


def test_a_pass_on_fewer_rows_supersedes_nothing_though_the_policy_asks_for_fewer_now() -> None:
    fewer = parse_policy(policy_text(TESTER, more="sources: {max_rows: 1500}"))
    failed, passed = made(2, fails=True), made(1, data=rows_used(1500, 1500))
    assert ruled(passed, policy=fewer).allowed
    assert ruled(passed, failed, policy=fewer).reason_codes == ("PG108",)


@pytest.mark.parametrize("way", AS_STRICT)
def test_a_newer_pass_that_asks_as_much_supersedes_a_fail(way: str) -> None:
    failed, as_strict = made(3, fails=True, **FAILED_AS), made(2, **{**FAILED_AS, **AS_STRICT[way]})
    assert ruled(as_strict, failed).allowed
    assert ruled(made(1, splits="c"), failed, as_strict).allowed


def test_a_card_margin_that_the_policy_never_took_need_not_be_kept() -> None:
    failed = made(2, fails=True, card=CardClaims(max_attack_auc=0.9))
    assert ruled(made(1), failed).allowed


def test_an_inconclusive_test_of_the_splits_that_failed_supersedes_nothing() -> None:
    too_few = made(
        2,
        data=tuple(
            DataFacts(role, 50, 50, f"rowset-sha256/v1:{d * 64}")
            for role, d in (("members", "a"), ("non_members", "b"))
        ),
    )
    assert ruled(made(1, splits="c"), made(3, fails=True), too_few).reason_codes == ("PG108",)


def test_age_alone_turns_no_earlier_pass_into_a_fail_or_a_fail_into_nothing() -> None:
    assert ruled(made(1, splits="c"), made(200, fails=True), made(199)).allowed
    assert ruled(made(1, splits="c"), made(200, fails=True)).reason_codes == ("PG108",)


def test_a_waiver_that_names_the_failed_test_answers_for_it_as_waived() -> None:
    failed, handed_in = made(2, fails=True), made(1, splits="c")
    answer = signed(waiver(now=NOW, evidence_sha256=sha256_of(failed), findings=(ReasonCode.PG108,)))
    decision = ruled(handed_in, failed, waivers=(answer,))
    assert decision.allowed
    assert decision.outcome is Outcome.WAIVED
    assert decision.counts_until == NOW + timedelta(days=7)


def test_a_waiver_that_names_the_test_that_is_handed_in_permits_it_as_waived() -> None:
    failed, handed_in = made(2, fails=True), made(1, splits="c")
    answer = signed(waiver(now=NOW, evidence_sha256=sha256_of(handed_in), findings=(ReasonCode.PG108,)))
    decision = ruled(handed_in, failed, waivers=(answer,))
    assert (decision.allowed, decision.outcome) == (True, Outcome.WAIVED)


@pytest.mark.parametrize(
    "changes",
    [
        {"findings": (ReasonCode.PG201,)},
        {"scope": Scope("credit", ScopeKind.ALIAS, "prod")},
        {"approved_by": "Ann Author", "requested_by": "Ann Author"},
        {"effective_until": NOW - timedelta(hours=1), "effective_on": NOW - timedelta(days=1)},
    ],
    ids=["another finding", "another alias", "one person", "ended"],
)
def test_a_waiver_that_does_not_count_answers_for_no_fail(changes: dict[str, Any]) -> None:
    failed = made(2, fails=True)
    fields = {"evidence_sha256": sha256_of(failed), "findings": (ReasonCode.PG108,), **changes}
    assert not ruled(made(1, splits="c"), failed, waivers=(signed(waiver(now=NOW, **fields)),)).allowed


def test_one_answered_fail_does_not_answer_for_another() -> None:
    failed, other = made(3, fails=True), made(2, splits="d", fails=True)
    answer = signed(waiver(now=NOW, evidence_sha256=sha256_of(failed), findings=(ReasonCode.PG108,)))
    assert not ruled(made(1, splits="c"), failed, other, waivers=(answer,)).allowed


def test_a_sign_off_of_the_failed_test_lifts_nothing() -> None:
    failed = made(2, fails=True)
    agreed = signed(sign_off(now=NOW, evidence_sha256=sha256_of(failed)))
    assert not ruled(made(1, splits="c"), failed, sign_offs=(agreed,)).allowed


def test_a_recorded_test_that_cannot_be_read_decides_nothing() -> None:
    with pytest.raises(CouldNotLook) as caught:
        decide(POLICY, (made(1),), (), (), target=TARGET, now=NOW, known=KnownTests((b"{}",)))
    assert caught.value.code is ReasonCode.PG902


TESTS = [
    made(days, splits=splits, fails=fails) for days in (1, 2, 3) for splits in ("b", "c") for fails in (False, True)
]


@settings(max_examples=60, deadline=None)
@given(
    handed_in=st.sampled_from(TESTS), known=st.lists(st.sampled_from(TESTS), unique=True, max_size=5), data=st.data()
)
def test_a_fail_that_is_remembered_never_turns_a_refusal_into_an_allowance(
    handed_in: str, known: list[str], data: st.DataObject
) -> None:
    fail = data.draw(st.sampled_from(TESTS[1::2]))
    if not ruled(handed_in, *known).allowed:
        assert not ruled(handed_in, *known, fail).allowed
