"""What a privacy officer's statements can do at a promotion, and what they never can."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from officer_builder import CHAMPION, exemption, policy_text, sha256_of, sign_off, signed, waiver

from mlflow_privacy_gate.evidence.facts import CardClaims
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind
from mlflow_privacy_gate.gate import Decision, PromotionTarget, Route, decide
from mlflow_privacy_gate.policy import Policy, parse_policy
from mlflow_privacy_gate.vocabulary import REASONS, Effect, Outcome, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
DIGEST = "e" * 64
TESTER = fresh_signer()
POLICY = parse_policy(policy_text(TESTER))
TARGET = PromotionTarget("credit", "7", Route.ALIAS, "champion", DIGEST, evidence_location="runs:/abc/privacy_gate")


def evidence(*, days_ago: float = 1, **changes: Any) -> str:
    tested_at = NOW - timedelta(days=days_ago)
    times = {"tested_at": tested_at, "expires_at": tested_at + timedelta(days=90)}
    return attestation(passing_evidence(DIGEST, **{**times, **changes}), TESTER)


PASSING = evidence()
FAILING = evidence(aucs=FAILING_AUCS)
EXPIRED = evidence(days_ago=100)


def waived(about: str = FAILING, **changes: Any) -> str:
    return signed(waiver(now=NOW, **{"evidence_sha256": sha256_of(about), **changes}))


def agreed(about: str = PASSING, **changes: Any) -> str:
    return signed(sign_off(now=NOW, **{"evidence_sha256": sha256_of(about), **changes}))


def ruled(
    attestation: str = FAILING,
    *waivers: str,
    sign_offs: tuple[str, ...] = (),
    exemptions: tuple[str, ...] = (),
    policy: Policy = POLICY,
    target: PromotionTarget = TARGET,
    now: datetime = NOW,
) -> Decision:
    return decide(policy, (attestation,), waivers, sign_offs, exemptions, target=target, now=now)


def test_a_waiver_in_force_lets_a_failed_version_through_as_waived_and_never_as_a_pass() -> None:
    decision = ruled(FAILING, waived())
    assert decision.allowed
    assert decision.outcome is Outcome.WAIVED
    assert decision.verdict is not None
    assert decision.verdict.outcome is Outcome.FAIL
    assert decision.refusal == ""
    assert {finding.effect for finding in decision.findings} == {Effect.WAIVED}
    assert [verified.key_id for verified in decision.waivers] == ["dpo"]
    assert decision.counts_until == NOW + timedelta(days=7)


def test_a_waiver_is_not_asked_where_nothing_stands_against_the_promotion() -> None:
    decision = ruled(PASSING, waived(PASSING), "rubbish")
    assert (decision.allowed, decision.outcome, decision.waivers, decision.findings) == (True, Outcome.PASS, (), ())


def test_a_waiver_permits_only_what_it_names() -> None:
    both = evidence(aucs=FAILING_AUCS, rows=150)
    decision = ruled(both, waived(both))
    assert not decision.allowed
    assert decision.outcome is Outcome.FAIL
    assert {str(finding.code) for finding in decision.blocking} == {"PG105"}
    assert "PG201 (waived)" in decision.refusal
    assert ruled(both, waived(both, findings=(ReasonCode.PG201, ReasonCode.PG105))).allowed


def test_two_waivers_may_together_permit_what_neither_does() -> None:
    both = evidence(aucs=FAILING_AUCS, rows=150)
    decision = ruled(both, waived(both), waived(both, findings=(ReasonCode.PG105,)))
    assert decision.allowed
    assert len(decision.waivers) == 2


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"effective_until": NOW - timedelta(seconds=1)}, "PG302", "ended"),
        ({"effective_on": NOW + timedelta(hours=1)}, "PG302", "begins"),
        ({"effective_until": NOW + timedelta(days=30)}, "PG302", "30.04 days; the policy allows 30 days"),
        ({"evidence_sha256": "f" * 64}, "PG302", "about another test"),
        ({"scope": Scope("debit", ScopeKind.ALIAS, "champion")}, "PG302", "alias champion of debit"),
        ({"scope": Scope("credit", ScopeKind.ALIAS, "prod")}, "PG302", "alias prod of credit"),
        ({"scope": Scope("credit", ScopeKind.STAGE, "champion")}, "PG302", "stage champion of credit"),
        ({"scope": Scope("credit", ScopeKind.NAME, "credit")}, "PG302", "guarded name credit"),
        ({"scope": replace(CHAMPION, workspace="team")}, "PG302", "in workspace team"),
        ({"approved_by": "Ann Author"}, "PG303", "takes two"),
        ({"approved_by": "  ann   AUTHOR "}, "PG303", "takes two"),
        ({"approved_by": "\u0410nn Author"}, "PG303", "takes two"),
        ({"approved_by": "\uff21\uff4e\uff4e Author"}, "PG303", "takes two"),
        ({"findings": (ReasonCode.PG105,)}, None, ""),
        ({"findings": (ReasonCode.PG004,)}, "PG302", "no waiver may cover"),
    ],
)
def test_a_waiver_that_does_not_count_refuses_and_says_why(
    changes: dict[str, Any], code: str | None, said: str
) -> None:
    decision = ruled(FAILING, waived(**changes))
    assert not decision.allowed
    assert decision.outcome is Outcome.FAIL
    assert decision.waivers == ()
    assert set(decision.reason_codes) == {"PG201"} | ({code} if code else set())
    assert said in " ".join(decision.refusal.split())


def test_a_waiver_counts_to_its_last_moment_and_from_five_minutes_before_its_first() -> None:
    until = NOW + timedelta(days=7)
    assert ruled(FAILING, waived(), now=until).allowed
    assert not ruled(FAILING, waived(), now=until + timedelta(microseconds=1)).allowed
    late = waived(effective_on=NOW + timedelta(minutes=5))
    assert ruled(FAILING, late).allowed
    assert not ruled(FAILING, late, now=NOW - timedelta(microseconds=1)).allowed


def test_the_policys_longest_waiver_counts_and_a_shorter_limit_ends_it() -> None:
    longest = waived(effective_on=NOW, effective_until=NOW + timedelta(days=30))
    assert ruled(FAILING, longest).allowed
    tighter = parse_policy(policy_text(TESTER, more="waivers: {max_days: 7}"))
    assert ruled(FAILING, longest, policy=tighter).reason_codes == ("PG201", "PG302")


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (signed(waiver(now=NOW, evidence_sha256=sha256_of(FAILING)), TESTER), "PG003"),
        (signed(waiver(now=NOW, evidence_sha256=sha256_of(FAILING)), fresh_signer()), "PG003"),
        (FAILING, "PG003"),
        (agreed(FAILING), "PG002"),
        ("rubbish", "PG002"),
    ],
    ids=["tester", "foreign", "evidence", "sign-off", "rubbish"],
)
def test_what_is_no_officers_waiver_lifts_nothing(envelope: str, code: str) -> None:
    decision = ruled(FAILING, envelope)
    assert not decision.allowed
    assert decision.reason_codes == ("PG201", code)
    assert "privacy officer" in decision.refusal


def test_many_broken_tags_are_told_once() -> None:
    decision = ruled(FAILING, *(f"rubbish{number}" for number in range(50)))
    assert sum(finding.code is ReasonCode.PG002 for finding in decision.findings) < 5


@pytest.mark.parametrize("code", [code for code, reason in REASONS.items() if not reason.waivable])
def test_what_may_never_be_waived_is_never_waived(code: ReasonCode) -> None:
    denied = evidence(card=CardClaims(data_categories=("controlled_access",)))
    decision = ruled(denied, waived(denied, findings=(code, ReasonCode.PG201)))
    assert not decision.allowed
    assert "PG402" in {str(finding.code) for finding in decision.blocking}


def test_the_codes_of_the_contract_cannot_be_waived() -> None:
    for code in ("PG002", "PG003", "PG004", "PG402"):
        assert not REASONS[ReasonCode(code)].waivable
    assert REASONS[ReasonCode.PG005].waivable
    assert REASONS[ReasonCode.PG201].waivable


def test_evidence_that_is_not_believed_cannot_be_waived() -> None:
    all_codes = tuple(ReasonCode)
    for unbelieved in (
        attestation(passing_evidence(DIGEST), fresh_signer()),
        attestation(passing_evidence("f" * 64), TESTER),
        attestation(passing_evidence(DIGEST), None),
        evidence(days_ago=-1),
    ):
        decision = ruled(unbelieved, waived(unbelieved, findings=all_codes))
        assert not decision.allowed
        assert (decision.outcome, decision.waivers) == (None, ())
    nothing = decide(POLICY, (), (waived(PASSING, findings=all_codes),), (), target=TARGET, now=NOW)
    assert nothing.reason_codes == ("PG001",)


def test_expired_evidence_is_refused_and_a_waiver_of_its_age_breaks_the_glass() -> None:
    assert ruled(EXPIRED).reason_codes == ("PG005",)
    decision = ruled(EXPIRED, waived(EXPIRED, findings=(ReasonCode.PG005,)))
    assert decision.allowed
    assert decision.outcome is Outcome.WAIVED
    assert decision.counts_until == NOW + timedelta(days=7)


def test_a_waiver_of_its_age_does_not_excuse_what_expired_evidence_measured() -> None:
    failed = evidence(days_ago=100, aucs=FAILING_AUCS)
    decision = ruled(failed, waived(failed, findings=(ReasonCode.PG005,)))
    assert not decision.allowed
    assert {str(finding.code) for finding in decision.blocking} == {"PG201"}


def test_a_waiver_does_not_outlive_the_test_it_is_about() -> None:
    newer = evidence(days_ago=0.5, aucs=FAILING_AUCS)
    decision = decide(POLICY, (FAILING, newer), (waived(FAILING),), (), target=TARGET, now=NOW)
    assert not decision.allowed
    assert "PG302" in decision.reason_codes


@pytest.mark.parametrize("stage", ["production", "PRODUCTION"])
def test_a_waiver_for_a_stage_knows_no_letter_case_as_stages_do(stage: str) -> None:
    target = replace(TARGET, route=Route.STAGE, value="Production")
    assert ruled(FAILING, waived(scope=Scope("credit", ScopeKind.STAGE, stage)), target=target).allowed


def test_a_waiver_for_an_alias_is_for_that_spelling_alone() -> None:
    assert not ruled(FAILING, waived(), target=replace(TARGET, value="Champion")).allowed


@pytest.mark.parametrize("route", [Route.CREATE, Route.COPY, Route.RENAME])
def test_a_waiver_for_a_guarded_name_opens_every_way_into_that_name_alone(route: Route) -> None:
    into = waived(scope=Scope("live", ScopeKind.NAME, "live"))
    assert ruled(FAILING, into, target=replace(TARGET, route=route, value="live")).allowed
    assert not ruled(FAILING, into, target=replace(TARGET, route=route, value="live-2")).allowed
    assert not ruled(FAILING, into, target=replace(TARGET, name="live", value="champion")).allowed


def test_without_a_requirement_a_sign_off_is_heard_and_changes_nothing() -> None:
    decision = ruled(PASSING, sign_offs=(agreed(),))
    assert decision.allowed
    assert [verified.statement.signed_by for verified in decision.sign_offs] == ["Bea Officer"]
    assert ruled(PASSING, sign_offs=("rubbish",)) == ruled(PASSING)


REQUIRED = parse_policy(policy_text(TESTER, more="sign_off: {required: true}"))


def test_where_a_sign_off_is_required_a_pass_alone_is_refused() -> None:
    decision = ruled(PASSING, policy=REQUIRED)
    assert not decision.allowed
    assert decision.reason_codes == ("PG301",)
    assert "mlflow-privacy-gate sign-off" in decision.refusal
    assert ruled(PASSING, sign_offs=(agreed(),), policy=REQUIRED).allowed


@pytest.mark.parametrize(
    ("envelope", "said"),
    [
        (agreed(FAILING), "about another test"),
        (agreed(scope=replace(CHAMPION, value="prod")), "alias prod of credit"),
        (signed(sign_off(now=NOW, evidence_sha256=sha256_of(PASSING)), TESTER), "has the role tester"),
        (waived(PASSING), "not believed"),
    ],
)
def test_a_sign_off_that_does_not_count_is_none_and_says_why(envelope: str, said: str) -> None:
    decision = ruled(PASSING, sign_offs=(envelope,), policy=REQUIRED)
    assert decision.reason_codes == ("PG301",)
    assert said in " ".join(decision.refusal.split())


def test_a_sign_off_lifts_no_finding_and_a_waiver_is_no_sign_off() -> None:
    assert not ruled(FAILING, sign_offs=(agreed(FAILING),), policy=REQUIRED).allowed
    every = tuple(ReasonCode)
    assert ruled(FAILING, waived(findings=every), policy=REQUIRED).reason_codes == ("PG201", "PG301")
    assert ruled(FAILING, waived(), sign_offs=(agreed(FAILING),), policy=REQUIRED).outcome is Outcome.WAIVED


NO_PERSONAL_DATA = evidence(card=CardClaims(personal_data=False))


def test_no_personal_data_on_the_card_counts_only_with_a_signed_exemption_of_these_bytes() -> None:
    assert ruled(NO_PERSONAL_DATA).reason_codes == ("PG401",)
    decision = ruled(NO_PERSONAL_DATA, exemptions=(signed(exemption(DIGEST, now=NOW)),))
    assert decision.allowed
    assert decision.outcome is Outcome.PASS
    assert decision.findings == ()
    other = ruled(NO_PERSONAL_DATA, exemptions=(signed(exemption("f" * 64, now=NOW)),))
    assert other.reason_codes == ("PG401",)
    assert "for other bytes" in " ".join(other.refusal.split())
    by_tester = ruled(NO_PERSONAL_DATA, exemptions=(signed(exemption(DIGEST, now=NOW), TESTER),))
    assert by_tester.reason_codes == ("PG401",)


WORKSPACES = ("default", "team", "other")


@pytest.mark.parametrize("asked", WORKSPACES)
@pytest.mark.parametrize("stated", [None, *WORKSPACES])
def test_every_statement_counts_in_the_workspace_it_names_and_in_no_other(stated: str | None, asked: str) -> None:
    meant = stated or "default"
    target, scope = replace(TARGET, workspace=asked), replace(CHAMPION, workspace=stated)
    assert ruled(FAILING, waived(scope=scope), target=target).allowed is (meant == asked)
    needed = parse_policy(policy_text(TESTER, more="sign_off: {required: true}"))
    decision = ruled(PASSING, sign_offs=(agreed(scope=scope),), policy=needed, target=target)
    assert decision.allowed is (meant == asked)
    exempt = signed(exemption(DIGEST, now=NOW, workspace=stated))
    decision = ruled(NO_PERSONAL_DATA, exemptions=(exempt,), target=target)
    assert decision.allowed is (meant == asked)
    assert bool(decision.exemptions) is (meant == asked)


def test_an_exemption_excuses_no_leak() -> None:
    leaking = evidence(card=CardClaims(personal_data=False), aucs=FAILING_AUCS)
    decision = ruled(leaking, exemptions=(signed(exemption(DIGEST, now=NOW)),))
    assert not decision.allowed
    assert decision.reason_codes == ("PG201",)


def test_warn_says_what_a_waiver_left_and_off_hears_nothing() -> None:
    warn = parse_policy(policy_text(TESTER, more="mode: warn"))
    assert ruled(FAILING, waived(), policy=warn).refusal == ""
    assert ruled(FAILING, policy=warn).outcome is Outcome.FAIL
    off = ruled(FAILING, waived(), policy=parse_policy(policy_text(TESTER, more="mode: off")))
    assert (off.outcome, off.waivers) == (None, ())


PAPERS = {
    "evidence": [FAILING, PASSING, NO_PERSONAL_DATA, EXPIRED, "rubbish"],
    "waivers": [
        waived(),
        waived(EXPIRED, findings=(ReasonCode.PG005,)),
        waived(effective_until=NOW - timedelta(days=1), effective_on=NOW - timedelta(days=2)),
        waived(approved_by="Ann Author"),
        waived(findings=(ReasonCode.PG105,)),
        "rubbish",
    ],
    "sign_offs": [agreed(), agreed(FAILING), agreed(EXPIRED), agreed(NO_PERSONAL_DATA), "rubbish"],
    "exemptions": [signed(exemption(DIGEST, now=NOW)), signed(exemption("f" * 64, now=NOW)), "rubbish"],
}


@settings(deadline=None, max_examples=300)
@given(st.data(), st.sampled_from([POLICY, REQUIRED]))
def test_taking_a_statement_away_never_turns_a_refusal_into_an_allowance(data: st.DataObject, policy: Policy) -> None:
    one = data.draw(st.sampled_from(PAPERS["evidence"]))
    kinds = ("waivers", "sign_offs", "exemptions")
    have = {kind: data.draw(st.lists(st.sampled_from(PAPERS[kind]), unique=True)) for kind in kinds}
    left = {kind: data.draw(st.lists(st.sampled_from(have[kind]), unique=True)) if have[kind] else [] for kind in kinds}

    def allowed(papers: dict[str, list[str]]) -> bool:
        decision = decide(policy, (one,), *(papers[kind] for kind in kinds), target=TARGET, now=NOW)
        assert decision.allowed == (not decision.blocking and decision.verdict is not None)
        assert decision.allowed == (decision.refusal == "")
        return decision.allowed

    assert allowed(left) <= allowed(have)
