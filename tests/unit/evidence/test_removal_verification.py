"""A removal statement is believed when a trusted tester signed it about these bytes and rows; nothing else is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from evidence_builder import fresh_signer
from hypothesis import given, settings
from hypothesis import strategies as st
from removal_cases import NOW, removal_evidence

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.keys import TrustedKey
from mlflow_privacy_gate.evidence.removal_statement import removal_statement_bytes
from mlflow_privacy_gate.evidence.removal_verification import VerifiedRemoval, verify_removal
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode, RemovalAnswer

SIGNER, STRANGER = fresh_signer(), fresh_signer()
TESTER = TrustedKey("tester", KeyRole.TESTER, SIGNER.public_pem)
OFFICER = TrustedKey("officer", KeyRole.PRIVACY_OFFICER, SIGNER.public_pem)
EXAMPLE = removal_evidence()
STATEMENT = removal_statement_bytes(EXAMPLE)
ENVELOPE = sign(STATEMENT, SIGNER)
QUERY = f"rowset-sha256/v1:{'b' * 64}"


def verified(envelope: bytes = ENVELOPE, **changes: Any) -> VerifiedRemoval:
    now: datetime = NOW + timedelta(days=500)
    return verify_removal(envelope, **{"keys": [TESTER], "model_digest": "a" * 64, "now": now, **changes})


def with_payload(change: Callable[[dict[str, Any]], None]) -> bytes:
    """The envelope with its signature, and another payload under it."""
    envelope, statement = json.loads(ENVELOPE), json.loads(STATEMENT)
    change(statement["predicate"])
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps(envelope).encode()


def test_a_signed_audit_is_believed_however_old_it_is() -> None:
    found = verified(query_digest=QUERY)
    assert (found.evidence, found.key_id) == (EXAMPLE, "tester")


@settings(deadline=None)
@given(st.integers(0, 8 * len(ENVELOPE) - 1))
def test_flipping_any_bit_of_the_envelope_refuses(bit: int) -> None:
    forged = bytearray(ENVELOPE)
    forged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(EvidenceRejected):
        verified(bytes(forged))


def test_a_better_answer_under_a_genuine_signature_is_refused() -> None:
    worse = removal_evidence(
        answer=RemovalAnswer.NOT_RULED_OUT, ema=replace(EXAMPLE.ema, answer=RemovalAnswer.NOT_RULED_OUT)
    )
    envelope = json.loads(sign(removal_statement_bytes(worse), SIGNER))
    envelope["payload"] = json.loads(ENVELOPE)["payload"]
    with pytest.raises(EvidenceRejected) as caught:
        verified(json.dumps(envelope).encode())
    assert caught.value.code is ReasonCode.PG002
    with pytest.raises(EvidenceRejected):
        verified(with_payload(lambda predicate: predicate.update(runId="another")))


@pytest.mark.parametrize(
    ("envelope", "changes", "code"),
    [
        (sign(STATEMENT, None), {}, ReasonCode.PG002),
        (sign(STATEMENT, STRANGER), {}, ReasonCode.PG003),
        (ENVELOPE, {"keys": []}, ReasonCode.PG003),
        (ENVELOPE, {"keys": [OFFICER]}, ReasonCode.PG003),
        (ENVELOPE, {"keys": [replace(TESTER, not_after=NOW - timedelta(seconds=1))]}, ReasonCode.PG003),
        (ENVELOPE, {"model_digest": "c" * 64}, ReasonCode.PG004),
        (ENVELOPE, {"query_digest": f"rowset-sha256/v1:{'c' * 64}"}, ReasonCode.PG004),
        (ENVELOPE, {"now": NOW - timedelta(hours=1)}, ReasonCode.PG005),
        (b"{}", {}, ReasonCode.PG002),
    ],
    ids=[
        "unsigned",
        "a stranger's",
        "no keys",
        "an officer's",
        "an expired key's",
        "other bytes",
        "other rows",
        "not yet",
        "no envelope",
    ],
)
def test_what_is_not_a_trusted_testers_word_on_these_bytes_and_rows_is_refused(
    envelope: bytes, changes: dict[str, Any], code: ReasonCode
) -> None:
    with pytest.raises(EvidenceRejected) as caught:
        verified(envelope, **changes)
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("changes", "help_given"),
    [
        ({"model_digest": "c" * 64}, "name the version that was audited"),
        ({"query_digest": f"rowset-sha256/v1:{'c' * 64}"}, "hand in the very rows that were audited"),
        ({"now": NOW - timedelta(hours=1)}, "compare the clocks"),
    ],
    ids=["other bytes", "other rows", "not yet"],
)
def test_an_audit_that_does_not_fit_says_what_would_help_an_audit_not_what_would_help_a_check(
    changes: dict[str, Any], help_given: str
) -> None:
    with pytest.raises(EvidenceRejected) as caught:
        verified(**changes)
    assert help_given in (caught.value.remedy or "")
    assert "check the version" not in (caught.value.remedy or "")


def test_a_membership_tests_evidence_is_no_removal_audit() -> None:
    from evidence_builder import passing_evidence

    from mlflow_privacy_gate.evidence.statement import statement_bytes

    with pytest.raises(EvidenceRejected, match="predicateType"):
        verified(sign(statement_bytes(passing_evidence("a" * 64)), SIGNER))
