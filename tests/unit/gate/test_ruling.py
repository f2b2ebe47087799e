from __future__ import annotations

import base64
import hashlib
import json
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, PASSING_AUCS, attestation, fresh_signer, passing_evidence
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keyless_signer import KeylessSigner
from mlflow_privacy_gate.evidence.officer_statements import sign_statement
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind, SignOff
from mlflow_privacy_gate.evidence.signing import Ed25519Signer
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.gate import Decision, PromotionTarget, Route, decide, refuse
from mlflow_privacy_gate.policy import Mode, Policy, built_in_policy, parse_policy, policy_key_yaml, starter_policy
from mlflow_privacy_gate.vocabulary import Effect, Finding, KeyRole, Outcome, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
DIGEST = "e" * 64
SIGNER = fresh_signer()
POLICY = parse_policy(starter_policy(SIGNER.public_pem, "tester-1"))
TARGET = PromotionTarget("credit", "7", Route.ALIAS, "champion", DIGEST, evidence_location="runs:/abc/privacy_gate")


def evidence(*, days_ago: float = 1, digest: str = DIGEST, **changes: Any) -> Evidence:
    tested_at = NOW - timedelta(days=days_ago)
    return passing_evidence(digest, **{"tested_at": tested_at, "expires_at": tested_at + timedelta(days=90), **changes})


PASSING = attestation(evidence(), SIGNER)


def ruled(
    *attestations: str | bytes, policy: Policy = POLICY, target: PromotionTarget = TARGET, now: datetime = NOW
) -> Decision:
    return decide(policy, attestations, (), (), target=target, now=now)


def test_believed_passing_evidence_of_these_bytes_is_allowed() -> None:
    decision = ruled(PASSING)
    assert decision.allowed
    assert decision.refusal == ""
    assert decision.findings == decision.blocking == ()
    assert decision.verdict is not None
    assert decision.verdict.outcome is Outcome.PASS
    assert decision.evidence == evidence_in(PASSING)
    assert decision.envelope_sha256 is not None
    assert decision.mode is Mode.ENFORCE


def test_a_server_without_sigstore_refuses_an_identitys_evidence_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = json.loads(base64.b64decode(PASSING))
    content["signatures"][0]["sig"] = base64.b64encode(b'{"mediaType":""}').decode()
    keys = [{"id": "ci", "role": "tester", "identity": "a@b.c", "issuer": "https://issuer.example"}]
    for name in ("sigstore", "sigstore.models", "sigstore.verify"):
        monkeypatch.setitem(sys.modules, name, None)
    decision = ruled(json.dumps(content).encode(), policy=parse_policy(json.dumps({"version": 1, "keys": keys})))
    assert not decision.allowed
    assert [finding.code for finding in decision.blocking] == [ReasonCode.PG003]
    assert "pip install 'mlflow-privacy-gate[keyless]'" in decision.refusal
    # A key beside it still counts for what it signed.
    both = POLICY.model_copy(
        update={"keys": (*POLICY.keys, *parse_policy(json.dumps({"version": 1, "keys": keys})).keys)}
    )
    assert ruled(PASSING, policy=both).allowed


def test_an_identity_may_test_and_another_sign_off(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import FakeSigstore, oidc_token

    sigstore, issuer = FakeSigstore(issuer="https://issuer.example"), "https://issuer.example"
    root = sigstore.trust_root(tmp_path).name
    keys = [
        {"id": name, "role": role, "identity": f"{name}@clinic.example", "issuer": issuer, "trust_root": root}
        for name, role in (("theo", "tester"), ("dana", "privacy-officer"))
    ]
    written = json.dumps({"version": 1, "sign_off": {"required": True}, "keys": keys})
    policy = parse_policy(written, folder=tmp_path)

    def signing_as(who: TrustedIdentity) -> KeylessSigner:
        sigstore.identity = who.identity
        return KeylessSigner(who, lambda: sigstore.context(tmp_path), lambda: oidc_token(issuer, sub=who.identity))

    theo, dana = (one for one in policy.trusted_keys if isinstance(one, TrustedIdentity))
    tested = sign(statement_bytes(evidence()), signing_as(theo))
    agreed = SignOff(
        hashlib.sha256(tested).hexdigest(),
        Scope("credit", ScopeKind.ALIAS, "champion"),
        "Dana",
        NOW - timedelta(hours=1),
    )
    papers = sign_statement(agreed, signing_as(dana)).envelope, sign_statement(agreed, signing_as(theo)).envelope
    allowed = decide(policy, [tested], (), papers[:1], target=TARGET, now=NOW)
    assert (allowed.allowed, [paper.key_id for paper in allowed.sign_offs]) == (True, ["dana"])
    refused = decide(policy, [tested], (), papers[1:], target=TARGET, now=NOW)
    assert [finding.code for finding in refused.blocking] == [ReasonCode.PG301]


def evidence_in(envelope: str) -> Evidence:
    allowed = ruled(envelope).evidence
    assert allowed is not None
    return allowed


def test_the_envelope_counts_as_bytes_and_as_base64() -> None:
    assert ruled(base64.b64decode(PASSING)).allowed


def test_no_evidence_is_refused() -> None:
    decision = ruled()
    assert not decision.allowed
    assert decision.reason_codes == ("PG001",)
    assert (decision.verdict, decision.evidence, decision.envelope_sha256) == (None, None, None)


def test_without_a_tester_key_everything_is_refused_and_init_is_named() -> None:
    decision = ruled(PASSING, policy=built_in_policy())
    assert decision.reason_codes == ("PG003",)
    assert "mlflow-privacy-gate init" in decision.refusal
    assert ruled(policy=built_in_policy()).reason_codes == ("PG003", "PG001")


def test_an_officers_key_is_no_testers_key() -> None:
    policy = parse_policy(starter_policy(SIGNER.public_pem, "x").replace("role: tester", "role: privacy-officer"))
    assert ruled(PASSING, policy=policy).reason_codes == ("PG003",)


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (attestation(evidence(), fresh_signer()), "PG003"),
        (attestation(evidence(), None), "PG002"),
        (attestation(evidence(digest="f" * 64), SIGNER), "PG004"),
        (attestation(evidence(days_ago=91), SIGNER), "PG005"),
        (attestation(evidence(days_ago=-1), SIGNER), "PG005"),
        ("not an envelope", "PG002"),
        (b"", "PG002"),
        (b"{}", "PG002"),
    ],
)
def test_evidence_that_is_not_believed_is_refused_with_its_code(envelope: str | bytes, code: str) -> None:
    decision = ruled(envelope)
    assert not decision.allowed
    assert decision.reason_codes == (code,)


def keys(*entries: tuple[str, Ed25519Signer, KeyRole]) -> str:
    return "version: 1\nkeys:\n" + "".join(policy_key_yaml(key.public_pem, name, role) for name, key, role in entries)


MINE, SECOND, STRANGER = fresh_signer(), fresh_signer(), fresh_signer()
TESTER_1 = ("tester-1", MINE, KeyRole.TESTER)
DPO = ("dpo", SECOND, KeyRole.PRIVACY_OFFICER)
ENDED = "    not_after: 2020-01-01T00:00:00Z\n"
INIT = "mlflow-privacy-gate init"
SITUATIONS: dict[str, tuple[str, Ed25519Signer | None, str]] = {
    "no keys at all": ("version: 1\n", MINE, INIT),
    "officers only": (keys(DPO), MINE, "list the public key of a tester"),
    "an unknown key": (keys(TESTER_1, DPO), STRANGER, "a tester key of the policy (tester-1), or list the public half"),
    "another role": (keys(TESTER_1, DPO), SECOND, "a tester key of the policy (tester-1); a key has one role"),
    "an expired key": (
        keys(("old", SECOND, KeyRole.TESTER)) + ENDED + keys(TESTER_1).partition("keys:\n")[2],
        SECOND,
        "signed anew with a tester key of the policy (tester-1)",
    ),
    "only expired keys": (keys(("old", SECOND, KeyRole.TESTER)) + ENDED, SECOND, "none there is trusted any more"),
    "no signature": (keys(TESTER_1), None, "signed with a tester key of the policy (tester-1)"),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_would_help_fits_why_the_signature_is_not_believed(situation: str) -> None:
    text, signer, said = SITUATIONS[situation]
    decision = ruled(attestation(evidence(), signer), policy=parse_policy(text))
    remedies = " ".join(finding.remedy for finding in decision.blocking)
    assert said in remedies
    assert (INIT in remedies) is (situation == "no keys at all")


def test_a_broken_signature_is_signed_anew() -> None:
    content = json.loads(base64.b64decode(PASSING))
    raw = bytearray(base64.b64decode(content["signatures"][0]["sig"]))
    raw[5] ^= 1
    content["signatures"][0]["sig"] = base64.b64encode(raw).decode()
    (finding,) = ruled(json.dumps(content).encode()).blocking
    assert (finding.code, "have it signed anew" in finding.remedy) == (ReasonCode.PG002, True)


def test_unsigned_evidence_counts_only_under_its_unsafe_word() -> None:
    policy = parse_policy("version: 1\nevidence: {unsafe_allow_unsigned: true}\n")
    assert ruled(attestation(evidence(), None), policy=policy).allowed
    assert not ruled(attestation(evidence(aucs=FAILING_AUCS), None), policy=policy).allowed


def test_bytes_that_cannot_be_read_are_refused_even_with_evidence() -> None:
    target = replace(TARGET, model_digest=None, model_digest_problem="the bucket did not answer")
    decision = ruled(PASSING, target=target)
    assert not decision.allowed
    assert decision.reason_codes == ("PG007",)
    assert "the bucket did not answer" in decision.refusal


def test_bytes_that_were_not_read_are_no_finding_beside_what_refuses_with_any_bytes() -> None:
    unread = replace(TARGET, model_digest=None)
    assert ruled(target=unread).reason_codes == ("PG001",)
    assert ruled(PASSING, target=unread).reason_codes == ("PG007",)


def test_a_failing_verdict_refuses_with_every_finding() -> None:
    decision = ruled(attestation(evidence(aucs=FAILING_AUCS, rows=150), SIGNER))
    assert not decision.allowed
    assert decision.verdict is not None
    assert decision.verdict.outcome is Outcome.FAIL
    assert len(decision.blocking) == 6
    assert decision.reason_codes == ("PG201", "PG105")


def test_the_newest_test_of_these_bytes_decides_in_any_order() -> None:
    older_pass = attestation(evidence(days_ago=2), SIGNER)
    newer_fail = attestation(evidence(days_ago=1, aucs=FAILING_AUCS), SIGNER)
    for order in ((older_pass, newer_fail), (newer_fail, older_pass)):
        assert not ruled(*order).allowed
    newest_pass = attestation(evidence(days_ago=0.5), SIGNER)
    assert ruled(newer_fail, newest_pass, older_pass).allowed


def test_of_two_tests_at_one_moment_the_one_that_fails_counts() -> None:
    fail = attestation(evidence(aucs=FAILING_AUCS), SIGNER)
    for order in ((PASSING, fail), (fail, PASSING)):
        assert not ruled(*order).allowed


def test_rubbish_beside_good_evidence_is_told_and_does_not_block() -> None:
    decision = ruled("rubbish", PASSING, attestation(evidence(digest="f" * 64), SIGNER))
    assert decision.allowed
    assert decision.reason_codes == ("PG002", "PG004")
    assert {finding.effect for finding in decision.findings} == {Effect.WARN}


def test_every_envelope_that_is_not_believed_is_listed() -> None:
    decision = ruled("rubbish", attestation(evidence(digest="f" * 64), SIGNER), attestation(evidence(), None))
    assert not decision.allowed
    assert decision.reason_codes == ("PG002", "PG004")
    assert len(decision.blocking) == 3


def test_what_was_handed_in_as_waiver_or_sign_off_lifts_nothing() -> None:
    fail = attestation(evidence(aucs=FAILING_AUCS), SIGNER)
    papers = (b"{}", PASSING.encode())
    with_papers = decide(POLICY, (fail,), papers, papers, target=TARGET, now=NOW)
    assert not with_papers.allowed
    assert not with_papers.waivers
    assert not with_papers.sign_offs
    assert with_papers.verdict == ruled(fail).verdict


def test_warn_allows_and_says_what_would_have_been_refused() -> None:
    policy = parse_policy(starter_policy(SIGNER.public_pem, "a").replace("mode: enforce", "mode: warn"))
    decision = ruled(policy=policy)
    assert decision.allowed
    assert decision.blocking
    assert decision.refusal.startswith(
        "Privacy gate would have refused alias champion for credit version 7: no evidence"
    )
    assert "mode is warn" in decision.refusal.splitlines()[1]
    assert ruled(PASSING, policy=policy).refusal == ""


def test_off_judges_nothing_and_says_so() -> None:
    policy = parse_policy("version: 1\nmode: off\n", "house.yaml")
    decision = ruled(policy=policy)
    assert (decision.allowed, decision.verdict, decision.findings) == (True, None, ())
    assert decision.refusal == (
        "Privacy gate is off (house.yaml: mode off): alias champion for credit version 7 was allowed, and nothing was judged."
    )


def test_a_tightened_policy_refuses_what_was_allowed_and_a_comment_does_not() -> None:
    text = starter_policy(SIGNER.public_pem, "a")
    assert ruled(PASSING, policy=parse_policy(f"{text}# a comment\n")).allowed
    assert not ruled(PASSING, policy=parse_policy(text.replace("default: 0.55", "default: 0.51"))).allowed


def test_evidence_is_refused_once_it_has_expired() -> None:
    assert ruled(PASSING, now=NOW + timedelta(days=88)).allowed
    assert ruled(PASSING, now=NOW + timedelta(days=90)).reason_codes == ("PG005",)


def test_evidence_binds_to_bytes_and_not_to_a_name() -> None:
    renamed = replace(TARGET, name="prod-credit", version="1", route=Route.COPY, value="prod-credit")
    assert ruled(PASSING, target=renamed).allowed


def test_what_could_not_be_decided_is_refused_under_any_mode() -> None:
    decision = refuse(TARGET, [Finding(ReasonCode.PG901, "privacy-gate.yaml:3: mode: expected …")])
    assert not decision.allowed
    assert decision.mode is Mode.ENFORCE
    assert "PG901: privacy-gate.yaml:3: mode" in decision.refusal
    assert "policy lint" in decision.refusal


@given(st.lists(st.sampled_from(["pass", "fail", "foreign", "unsigned", "other", "rubbish"]), max_size=5))
def test_a_promotion_is_allowed_only_with_a_pass_and_no_newer_fail(kinds: list[str]) -> None:
    made = {
        "pass": PASSING,
        "fail": attestation(evidence(days_ago=0.5, aucs=FAILING_AUCS), SIGNER),
        "foreign": attestation(evidence(), fresh_signer()),
        "unsigned": attestation(evidence(), None),
        "other": attestation(evidence(digest="f" * 64), SIGNER),
        "rubbish": "rubbish",
    }
    decision = ruled(*(made[kind] for kind in kinds))
    assert decision.allowed == ("pass" in kinds and "fail" not in kinds)
    assert decision.allowed == (decision.refusal == "") == (not decision.blocking)


@given(st.data())
def test_flipping_any_byte_of_an_envelope_refuses(data: st.DataObject) -> None:
    raw = bytearray(base64.b64decode(PASSING))
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] ^= data.draw(st.integers(1, 255))
    assert not ruled(bytes(raw)).allowed


def test_the_aucs_of_the_cases_are_what_the_tests_take_them_for() -> None:
    assert max(PASSING_AUCS.values()) <= 0.55 < min(FAILING_AUCS.values())
