"""An envelope has one form, and whatever has another is not read."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from evidence_builder import fresh_signer
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import (
    PAYLOAD_TYPE,
    open_envelope,
    pre_authentication_encoding,
    sign,
    strict_json,
)
from mlflow_privacy_gate.vocabulary import ENVELOPE_LIMIT_BYTES, REGISTRY_TAG_LIMIT, ReasonCode

SIGNER = fresh_signer()


def test_pre_authentication_encoding_is_the_example_of_the_dsse_protocol() -> None:
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


@given(st.binary(max_size=200))
def test_signing_and_opening_gives_the_payload_back(payload: bytes) -> None:
    raw = sign(payload, SIGNER)
    opened = open_envelope(raw)
    assert (opened.payload, opened.payload_type) == (payload, PAYLOAD_TYPE)
    assert opened.sha256 == hashlib.sha256(raw).hexdigest()
    assert [signature.key_id for signature in opened.signatures] == [SIGNER.key_id]
    assert open_envelope(base64.b64encode(raw).decode()) == opened


def test_unsigned_is_the_same_envelope_with_no_signatures() -> None:
    assert json.loads(sign(b"{}", None)) == {"payload": "e30=", "payloadType": PAYLOAD_TYPE, "signatures": []}


def test_the_largest_envelope_fits_a_registry_tag_and_one_byte_more_is_refused() -> None:
    room = ENVELOPE_LIMIT_BYTES - len(sign(b"", SIGNER))
    raw = sign(bytes(room // 4 * 3), SIGNER)
    tag = base64.b64encode(raw).decode()
    assert len(tag) <= REGISTRY_TAG_LIMIT
    assert open_envelope(tag).payload == bytes(room // 4 * 3)
    with pytest.raises(UsageError, match="registry tag"):
        sign(bytes(room // 4 * 3 + 4), SIGNER)


@pytest.mark.parametrize("too_large", [b" " * (ENVELOPE_LIMIT_BYTES + 1), "A" * 99_872], ids=["bytes", "tag"])
def test_what_is_too_large_is_refused_before_it_is_read(too_large: bytes | str) -> None:
    with pytest.raises(EvidenceRejected, match="larger than"):
        open_envelope(too_large)


def fields(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(sign(b"{}", SIGNER))
    return content | changes


MALFORMED = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"payload":"\xff"}',
    "a byte order mark": b"\xef\xbb\xbf" + sign(b"{}", SIGNER),
    "a list": b"[]",
    "two documents": sign(b"{}", SIGNER) * 2,
    "a duplicate key": sign(b"{}", SIGNER)[:-1] + b',"payload":"e30="}',
    "a duplicate key spelled with an escape": sign(b"{}", SIGNER)[:-1] + b',"pay\\u006coad":"e30="}',
    "NaN": b'{"payload":NaN,"payloadType":"x","signatures":[]}',
    "Infinity": b'{"payload":-Infinity,"payloadType":"x","signatures":[]}',
    "a huge integer": b'{"payload":' + b"9" * 10_000 + b',"payloadType":"x","signatures":[]}',
    "deep nesting": b"[" * 50_000,
    "a missing key": json.dumps({"payload": "e30=", "signatures": []}).encode(),
    "an unknown key": json.dumps(fields(extra=1)).encode(),
    "a payload that is no text": json.dumps(fields(payload=1)).encode(),
    "junk in base64": json.dumps(fields(payload="e3 0=")).encode(),
    "a line break in base64": json.dumps(fields(payload="e30=\n")).encode(),
    "base64 without padding": json.dumps(fields(payload="e30")).encode(),
    "base64 of another spelling": json.dumps(fields(payload="e31=")).encode(),
    "the URL alphabet": json.dumps(fields(payload="-_-_")).encode(),
    "base64 in other letters": json.dumps(fields(payload="e3å=")).encode(),
    "signatures that are no list": json.dumps(fields(signatures={})).encode(),
    "a signature that is no object": json.dumps(fields(signatures=["x"])).encode(),
    "a signature without key id": json.dumps(fields(signatures=[{"sig": "AA=="}])).encode(),
    "a signature with more": json.dumps(fields(signatures=[{"keyid": "", "sig": "AA==", "cert": ""}])).encode(),
    "more signatures than anyone needs": json.dumps(fields(signatures=[{"keyid": "", "sig": "AA=="}] * 17)).encode(),
    "a null key id": json.dumps(fields(signatures=[{"keyid": None, "sig": "AA=="}])).encode(),
    "a tag that is no base64": "no base64!",
    "a tag with a line break": base64.b64encode(sign(b"{}", SIGNER)).decode() + "\n",
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_an_envelope_of_another_form_is_refused(raw: bytes | str) -> None:
    with pytest.raises(EvidenceRejected) as refused:
        open_envelope(raw)
    assert refused.value.code is ReasonCode.PG002


def test_a_number_with_a_point_is_refused_because_readers_may_round_it() -> None:
    with pytest.raises(EvidenceRejected, match="decimal string"):
        strict_json(b'{"auc":0.55}', "statement")
