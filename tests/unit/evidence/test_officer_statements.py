"""An officer's statement is believed only whole, of its own kind, and signed with an officer's key."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import fresh_signer, passing_evidence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_mutations import mutate
from officer_builder import CHAMPION, OFFICER, exemption, sign_off, signed, waiver

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.keys import TrustedKey
from mlflow_privacy_gate.evidence.officer_statements import (
    MOST_OF_A_KIND,
    OfficerStatement,
    attached,
    exemptions_in_force,
    officer_statement_bytes,
    read_officer_statement,
    sign_statement,
    verify_statement,
)
from mlflow_privacy_gate.evidence.officers import Exemption, Scope, ScopeKind, SignOff, Waiver
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.vocabulary import EXEMPTION_TAG, SIGN_OFF_TAG, WAIVER_TAG, KeyRole, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
TESTER = fresh_signer()
KEYS = (
    TrustedKey("tester-1", KeyRole.TESTER, TESTER.public_pem),
    TrustedKey("dpo", KeyRole.PRIVACY_OFFICER, OFFICER.public_pem),
)
STATEMENTS: dict[str, OfficerStatement] = {
    "waiver": waiver(now=NOW),
    "sign-off": sign_off(now=NOW),
    "exemption": exemption("e" * 64, now=NOW),
}
EACH = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=list(STATEMENTS))


def refusal(kind: type[OfficerStatement], envelope: bytes | str, **changes: Any) -> ReasonCode | None:
    with pytest.raises(EvidenceRejected) as refused:
        verify_statement(kind, envelope, **{"keys": KEYS, "now": NOW, **changes})
    return refused.value.code


@EACH
def test_a_statement_says_after_signing_what_it_said_before(statement: OfficerStatement) -> None:
    made = sign_statement(statement, OFFICER)
    for envelope in (made.envelope, made.tag_value):
        verified = verify_statement(type(statement), envelope, keys=KEYS, now=NOW)
        assert verified.statement == statement
        assert verified.key_id == "dpo"
        assert verified.envelope_sha256.startswith(made.tag.rpartition(".")[2])


@EACH
def test_a_statement_is_in_toto_of_its_own_predicate_type_and_names_its_subject_by_sha256(
    statement: OfficerStatement,
) -> None:
    content = json.loads(officer_statement_bytes(statement))
    word = {Waiver: "waiver", SignOff: "signoff", Exemption: "exemption"}[type(statement)]
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    assert content["predicateType"].endswith(f"/privacy-{word}/v1")
    digest = statement.model_digest if isinstance(statement, Exemption) else statement.evidence_sha256
    assert [subject["digest"] for subject in content["subject"]] == [{"sha256": digest}]
    assert digest not in json.dumps(content["predicate"])


def test_a_waiver_states_everything_under_its_own_name() -> None:
    predicate = json.loads(officer_statement_bytes(waiver(now=NOW)))["predicate"]
    assert predicate == {
        "findings": ["PG201"],
        "reason": "rollback after an outage",
        "reference": "CHG-4711",
        "compensatingControls": "answers are rounded and rate-limited",
        "requestedBy": "Ann Author",
        "approvedBy": "Bea Officer",
        "scope": {"registeredModel": "credit", "kind": "alias", "value": "champion"},
        "effectiveOn": "2026-06-01T11:00:00Z",
        "effectiveUntil": "2026-06-08T12:00:00Z",
        "statedAt": "2026-06-01T11:00:00Z",
    }


@EACH
def test_every_flipped_byte_refuses(statement: OfficerStatement) -> None:
    envelope = sign_statement(statement, OFFICER).envelope
    accepted = []
    for place in range(len(envelope)):
        for mask in (0x01, 0x20, 0xFF):
            flipped = bytearray(envelope)
            flipped[place] ^= mask
            try:
                verify_statement(type(statement), bytes(flipped), keys=KEYS, now=NOW)
            except EvidenceRejected:
                continue
            accepted.append((place, mask))
    assert accepted == []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(STATEMENTS.values())), st.data())
def test_no_mutated_envelope_is_believed(statement: OfficerStatement, data: st.DataObject) -> None:
    content = json.loads(sign_statement(statement, OFFICER).envelope)
    mutated = mutate(content, data)
    if mutated != content:
        refusal(type(statement), json.dumps(mutated).encode())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(STATEMENTS.values())), st.data())
def test_no_mutated_statement_is_believed_under_the_old_signature(
    statement: OfficerStatement, data: st.DataObject
) -> None:
    content = json.loads(sign_statement(statement, OFFICER).envelope)
    stated = json.loads(base64.b64decode(content["payload"]))
    mutated = mutate(stated, data)
    if mutated != stated:
        content["payload"] = base64.b64encode(json.dumps(mutated).encode()).decode()
        assert refusal(type(statement), json.dumps(content).encode()) is ReasonCode.PG002


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(STATEMENTS.values())), st.data())
def test_a_signed_statement_of_another_shape_is_refused_or_reads_as_exactly_what_it_states(
    statement: OfficerStatement, data: st.DataObject
) -> None:
    mutated = mutate(json.loads(officer_statement_bytes(statement)), data)
    try:
        read = read_officer_statement(type(statement), json.dumps(mutated).encode())
    except EvidenceRejected:
        return
    again = json.loads(officer_statement_bytes(read))
    assert again["predicate"] == mutated["predicate"]
    assert again["subject"][0]["digest"]["sha256"] == mutated["subject"][0]["digest"]["sha256"]


@EACH
def test_a_field_that_is_missing_is_missed(statement: OfficerStatement) -> None:
    content = json.loads(officer_statement_bytes(statement))
    for name in set(content["predicate"]) - {"remark"}:
        lacking = {**content, "predicate": {key: value for key, value in content["predicate"].items() if key != name}}
        assert refusal(type(statement), sign(json.dumps(lacking).encode(), OFFICER)) is ReasonCode.PG006


@EACH
def test_the_digest_cannot_stand_in_the_predicate_as_well(statement: OfficerStatement) -> None:
    content = json.loads(officer_statement_bytes(statement))
    for key in ("evidenceSha256", "modelDigest"):
        doubled = {**content, "predicate": {**content["predicate"], key: "f" * 64}}
        assert refusal(type(statement), sign(json.dumps(doubled).encode(), OFFICER)) is ReasonCode.PG002


@EACH
def test_a_statement_counts_as_its_own_kind_only(statement: OfficerStatement) -> None:
    envelope = sign_statement(statement, OFFICER).envelope
    for kind in {Waiver, SignOff, Exemption} - {type(statement)}:
        assert refusal(kind, envelope) is ReasonCode.PG002


def test_evidence_under_an_officers_key_is_no_statement() -> None:
    envelope = sign(statement_bytes(passing_evidence("e" * 64)), OFFICER)
    assert {refusal(kind, envelope) for kind in (Waiver, SignOff, Exemption)} == {ReasonCode.PG002}


@EACH
def test_a_testers_key_a_foreign_key_and_no_key_sign_no_statement(statement: OfficerStatement) -> None:
    kind = type(statement)
    assert refusal(kind, signed(statement, TESTER)) is ReasonCode.PG003
    assert refusal(kind, signed(statement, fresh_signer())) is ReasonCode.PG003
    assert refusal(kind, sign(officer_statement_bytes(statement), None)) is ReasonCode.PG002
    assert refusal(kind, signed(statement), keys=KEYS[:1]) is ReasonCode.PG003


@EACH
def test_a_statement_ends_with_its_key(statement: OfficerStatement) -> None:
    ended = replace(KEYS[1], not_after=NOW)
    assert refusal(type(statement), signed(statement), keys=(KEYS[0], ended)) is ReasonCode.PG003
    assert verify_statement(type(statement), signed(statement), keys=(ended,), now=NOW - timedelta(seconds=1))


@EACH
def test_a_statement_from_the_future_does_not_count_yet(statement: OfficerStatement) -> None:
    envelope = signed(replace(statement, stated_at=NOW + timedelta(minutes=6)))
    assert refusal(type(statement), envelope) is ReasonCode.PG302
    assert verify_statement(type(statement), envelope, keys=KEYS, now=NOW + timedelta(minutes=1))


@EACH
def test_empty_words_are_no_statement(statement: OfficerStatement) -> None:
    optional = {"remark", "evidence_sha256", "model_digest"}
    names = [field.name for field in fields(statement) if isinstance(getattr(statement, field.name), str)]
    for name in set(names) - optional:
        blank: dict[str, Any] = {name: " \n"}
        with pytest.raises(UsageError, match=name):
            replace(statement, **blank)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"findings": ()}, "findings"),
        ({"findings": (ReasonCode.PG201, ReasonCode.PG201)}, "findings"),
        ({"effective_until": NOW - timedelta(hours=1)}, "effective_until"),
        ({"effective_on": NOW.replace(tzinfo=None)}, "effective_on"),
        ({"evidence_sha256": "A" * 64}, "evidence_sha256"),
    ],
)
def test_a_waiver_that_contradicts_itself_cannot_be_made_or_read(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        waiver(now=NOW, **changes)
    content = json.loads(officer_statement_bytes(waiver(now=NOW)))
    content["predicate"]["findings"] = []
    assert refusal(Waiver, sign(json.dumps(content).encode(), OFFICER)) is ReasonCode.PG002


def test_statements_are_found_in_their_own_tags_and_nowhere_else() -> None:
    made = {name: sign_statement(statement, OFFICER) for name, statement in STATEMENTS.items()}
    tags = {one.tag: one.tag_value for one in made.values()}
    found = attached({**tags, "privacy_gate.verdict": "waived", "privacy_gate.waivers": "x", "waiver.1": "y"})
    assert found.waivers == (made["waiver"].tag_value,)
    assert found.sign_offs == (made["sign-off"].tag_value,)
    assert found.exemptions == (made["exemption"].tag_value,)
    assert attached(None) == attached({})


def test_no_more_statements_of_a_kind_are_read_than_can_be_read_at_once() -> None:
    tags = {
        f"{tag}.{number:04}": str(number) for tag in (WAIVER_TAG, SIGN_OFF_TAG, EXEMPTION_TAG) for number in range(500)
    }
    found = attached(tags)
    first = tuple(map(str, range(MOST_OF_A_KIND)))
    assert (found.waivers, found.sign_offs, found.exemptions) == (first, first, first)


def test_two_waivers_stand_side_by_side() -> None:
    first, second = (sign_statement(waiver(now=NOW, reference=name), OFFICER) for name in ("CHG-1", "CHG-2"))
    assert first.tag != second.tag
    assert first.artifact != second.artifact
    assert len(attached({one.tag: one.tag_value for one in (first, second)}).waivers) == 2


def test_an_exemption_counts_for_the_bytes_it_names_only() -> None:
    tags = (signed(exemption("e" * 64, now=NOW)), "rubbish", signed(exemption("f" * 64, now=NOW), TESTER))
    counting, others = exemptions_in_force(tags, keys=KEYS, model_digest="e" * 64, workspace="default", now=NOW)
    assert [verified.statement.model_digest for verified in counting] == ["e" * 64]
    assert len(others) == 2
    nothing, why = exemptions_in_force(tags, keys=KEYS, model_digest="d" * 64, workspace="default", now=NOW)
    assert nothing == ()
    assert "for other bytes" in why[0]
    elsewhere, why = exemptions_in_force(tags, keys=KEYS, model_digest="e" * 64, workspace="team", now=NOW)
    assert elsewhere == ()
    assert "for workspace default" in why[0]


def test_a_scope_is_said_in_words() -> None:
    assert str(CHAMPION) == "alias champion of credit"
    assert str(Scope("live", ScopeKind.NAME, "live")) == "the guarded name live"
    assert str(replace(CHAMPION, workspace="team")) == "alias champion of credit in workspace team"


@pytest.mark.parametrize("workspace", [None, "team"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_says_its_workspace_and_reads_back_with_it(name: str, workspace: str) -> None:
    made = STATEMENTS[name]
    where = (
        {"workspace": workspace} if isinstance(made, Exemption) else {"scope": replace(made.scope, workspace=workspace)}
    )
    statement = replace(made, **where)
    read = verify_statement(type(statement), signed(statement), keys=KEYS, now=NOW).statement
    assert read == statement
