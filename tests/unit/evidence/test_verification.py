"""Evidence is believed only whole, signed by the right key, for these bytes, at this time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from evidence_builder import attestation, fresh_signer, passing_evidence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_mutations import mutate
from securesystemslib.dsse import Envelope as SecureSystemsEnvelope
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined] # exported by assignment

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import pre_authentication_encoding, sign
from mlflow_privacy_gate.evidence.keys import TrustedKey, public_key_id
from mlflow_privacy_gate.evidence.signing import Ed25519Signer, Signer
from mlflow_privacy_gate.evidence.statement import statement_bytes, to_statement
from mlflow_privacy_gate.evidence.verification import CLOCK_SKEW, VerifiedEvidence, verify, verify_signatures
from mlflow_privacy_gate.vocabulary import ENVELOPE_LIMIT_BYTES, KeyRole, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
DIGEST = "e" * 64
SIGNER, OTHER = fresh_signer(), fresh_signer()
EVIDENCE = replace(passing_evidence(DIGEST), tested_at=NOW - timedelta(days=1), expires_at=NOW + timedelta(days=89))
ENVELOPE = sign(statement_bytes(EVIDENCE), SIGNER)


def trusted(signer: Ed25519Signer = SIGNER, role: KeyRole = KeyRole.TESTER, **changes: Any) -> TrustedKey:
    return replace(TrustedKey("tester-1", role, signer.public_pem), **changes)


def believed(envelope: bytes | str = ENVELOPE, **changes: Any) -> VerifiedEvidence:
    asked: dict[str, Any] = {"keys": [trusted()], "allow_unsigned": False, "model_digest": DIGEST, "now": NOW}
    return verify(envelope, **(asked | changes))


def refusal(envelope: bytes | str = ENVELOPE, **changes: Any) -> ReasonCode | None:
    with pytest.raises(EvidenceRejected) as refused:
        believed(envelope, **changes)
    return refused.value.code


def signed(**changes: Any) -> bytes:
    return sign(statement_bytes(replace(EVIDENCE, **changes)), SIGNER)


def test_whole_evidence_under_a_trusted_key_is_believed() -> None:
    verified = believed()
    assert (verified.evidence, verified.key_id, verified.signed) == (EVIDENCE, "tester-1", True)
    assert believed(base64.b64encode(ENVELOPE).decode()) == verified


def test_every_flipped_byte_refuses() -> None:
    accepted = []
    for place in range(len(ENVELOPE)):
        for mask in (0x01, 0x20, 0xFF):
            flipped = bytearray(ENVELOPE)
            flipped[place] ^= mask
            try:
                believed(bytes(flipped))
            except EvidenceRejected:
                continue
            accepted.append((place, mask))
    assert accepted == []


def test_every_flipped_byte_of_the_tag_refuses() -> None:
    tag = base64.b64encode(ENVELOPE)
    accepted = []
    for place in range(len(tag)):
        flipped = bytearray(tag)
        flipped[place] ^= 0x01
        try:
            believed(flipped.decode("ascii"))
        except EvidenceRejected:
            continue
        accepted.append(place)
    assert accepted == []


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_a_cut_or_prolonged_envelope_refuses(cut: int) -> None:
    assert refusal(ENVELOPE[:-cut]) is ReasonCode.PG002
    assert refusal(ENVELOPE[cut:]) is ReasonCode.PG002
    assert refusal(ENVELOPE + b"x" * cut) is ReasonCode.PG002


def _states(whole: Any, part: Any) -> bool:
    """Whether everything in ``part`` stands in ``whole`` as it is; ``whole`` may add fields that have a default."""
    if isinstance(part, dict):
        return all(key in whole and _states(whole[key], item) for key, item in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(_states, whole, part))
    return bool(whole == part)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_mutated_envelope_is_accepted(data: st.DataObject) -> None:
    mutated = mutate(json.loads(ENVELOPE), data)
    if mutated != json.loads(ENVELOPE):
        refusal(json.dumps(mutated, separators=(",", ":")).encode())


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_mutated_statement_is_accepted_under_the_old_signature(data: st.DataObject) -> None:
    content = json.loads(ENVELOPE)
    statement = json.loads(base64.b64decode(content["payload"]))
    mutated = mutate(statement, data)
    if mutated != statement:
        content["payload"] = base64.b64encode(json.dumps(mutated).encode()).decode()
        assert refusal(json.dumps(content).encode()) is ReasonCode.PG002


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_signed_statement_of_another_shape_is_refused_and_never_an_accident(data: st.DataObject) -> None:
    """Even the right key may sign nonsense: it is refused as evidence, or it reads as exactly what it states."""
    statement = to_statement(EVIDENCE)
    mutated = mutate(statement, data)
    envelope = sign(json.dumps(mutated).encode(), SIGNER)
    try:
        verified = believed(envelope)
    except EvidenceRejected:
        return
    assert _states(to_statement(verified.evidence)["predicate"]["privacyGate"], mutated["predicate"]["privacyGate"])


def test_a_signature_of_a_foreign_key_is_refused() -> None:
    foreign = sign(statement_bytes(EVIDENCE), OTHER)
    assert refusal(foreign) is ReasonCode.PG003


def test_a_foreign_signature_under_a_trusted_name_is_refused() -> None:
    content = json.loads(sign(statement_bytes(EVIDENCE), OTHER))
    content["signatures"][0]["keyid"] = SIGNER.key_id
    assert refusal(json.dumps(content).encode()) is ReasonCode.PG002


def test_a_trusted_signature_under_another_trusted_name_is_refused() -> None:
    content = json.loads(ENVELOPE)
    content["signatures"][0]["keyid"] = OTHER.key_id
    keys = [trusted(), trusted(OTHER, id="tester-2")]
    assert refusal(json.dumps(content).encode(), keys=keys) is ReasonCode.PG002


def test_any_trusted_key_of_the_role_will_do() -> None:
    keys = [trusted(OTHER, id="tester-2"), trusted()]
    assert believed(keys=keys).key_id == "tester-1"
    assert believed(sign(statement_bytes(EVIDENCE), OTHER), keys=keys).key_id == "tester-2"


def test_a_key_in_the_wrong_role_is_refused() -> None:
    officer = trusted(role=KeyRole.PRIVACY_OFFICER)
    assert refusal(keys=[officer]) is ReasonCode.PG003
    assert refusal(keys=[officer, trusted(OTHER)]) is ReasonCode.PG003
    assert believed(keys=[officer], role=KeyRole.PRIVACY_OFFICER).key_id == "tester-1"


def test_a_key_is_not_trusted_from_its_not_after_on() -> None:
    assert believed(keys=[trusted(not_after=NOW + timedelta(seconds=1))]).signed
    assert refusal(keys=[trusted(not_after=NOW)]) is ReasonCode.PG003


def test_two_trusted_signatures_are_believed_and_one_foreign_among_them_is_not() -> None:
    first, second = (json.loads(sign(statement_bytes(EVIDENCE), signer)) for signer in (SIGNER, OTHER))
    first["signatures"] += second["signatures"]
    both = json.dumps(first).encode()
    assert believed(both, keys=[trusted(), trusted(OTHER, id="tester-2")]).key_id == "tester-1"
    assert refusal(both) is ReasonCode.PG003


def test_the_same_signature_twice_is_refused() -> None:
    content = json.loads(ENVELOPE)
    content["signatures"] *= 2
    assert refusal(json.dumps(content).encode()) is ReasonCode.PG002


def test_unsigned_evidence_is_refused_unless_the_policy_allows_it() -> None:
    unsigned = sign(statement_bytes(EVIDENCE), None)
    assert refusal(unsigned) is ReasonCode.PG002
    assert refusal(unsigned, keys=[]) is ReasonCode.PG003
    for keys in ([], [trusted()]):
        verified = believed(unsigned, keys=keys, allow_unsigned=True)
        assert (verified.signed, verified.key_id) == (False, None)


def test_allowing_unsigned_evidence_lets_no_bad_signature_through() -> None:
    foreign = sign(statement_bytes(EVIDENCE), OTHER)
    assert refusal(foreign, allow_unsigned=True) is ReasonCode.PG003
    assert not believed(foreign, allow_unsigned=True, keys=[]).signed
    assert believed(allow_unsigned=True).signed


def test_without_any_key_nothing_signed_is_believed() -> None:
    assert refusal(keys=[]) is ReasonCode.PG003


def test_another_payload_type_is_refused_even_when_signed() -> None:
    payload = statement_bytes(EVIDENCE)
    waiver = sign(payload, SIGNER, payload_type="application/vnd.privacy-gate.waiver+json")
    assert refusal(waiver) is ReasonCode.PG002
    assert refusal(sign(payload, SIGNER, payload_type="application/json")) is ReasonCode.PG002


def test_a_signature_over_the_payload_alone_is_refused() -> None:
    class WithoutEncoding(Ed25519Signer):
        def sign(self, message: bytes) -> bytes:
            return super().sign(statement_bytes(EVIDENCE))

    content = sign(statement_bytes(EVIDENCE), WithoutEncoding(SIGNER._private_key))
    assert refusal(content) is ReasonCode.PG002


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b"null", b'{"a":1,"a":2}', b"\xff", b'{"_type":NaN}'])
def test_signed_bytes_that_are_no_statement_are_refused(payload: bytes) -> None:
    assert refusal(sign(payload, SIGNER)) in (ReasonCode.PG002, ReasonCode.PG006)


def test_a_signed_statement_with_a_duplicate_key_is_refused() -> None:
    doubled = statement_bytes(EVIDENCE).replace(b'"outcome":"pass"', b'"outcome":"fail","outcome":"pass"')
    assert refusal(sign(doubled, SIGNER)) is ReasonCode.PG002


def test_an_oversized_envelope_is_refused() -> None:
    padded = ENVELOPE + b" " * (ENVELOPE_LIMIT_BYTES + 1 - len(ENVELOPE))
    assert refusal(padded) is ReasonCode.PG002
    assert believed(padded[:-1]).signed


def test_evidence_for_other_bytes_is_refused() -> None:
    assert refusal(model_digest="f" * 64) is ReasonCode.PG004


@pytest.mark.parametrize(
    ("tested", "expires", "code"),
    [
        (NOW, NOW + timedelta(days=1), None),
        (NOW + CLOCK_SKEW, NOW + timedelta(days=1), None),
        (NOW + CLOCK_SKEW + timedelta(microseconds=1), NOW + timedelta(days=1), ReasonCode.PG005),
        (NOW - timedelta(days=90), NOW - CLOCK_SKEW, None),
        (NOW - timedelta(days=90), NOW - CLOCK_SKEW - timedelta(microseconds=1), ReasonCode.PG005),
        (NOW, NOW, ReasonCode.PG005),
        (NOW, NOW - timedelta(minutes=1), ReasonCode.PG005),
    ],
)
def test_evidence_holds_from_its_test_to_its_expiry_give_or_take_five_minutes(
    tested: datetime, expires: datetime, code: ReasonCode | None
) -> None:
    envelope = signed(tested_at=tested, expires_at=expires)
    assert (believed(envelope).signed if code is None else refusal(envelope)) == (code or True)


def test_a_clock_without_timezone_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="timezone"):
        believed(now=NOW.replace(tzinfo=None))


MEMBERS, NON_MEMBERS = EVIDENCE.data


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ((), ReasonCode.PG006),
        ((MEMBERS,), ReasonCode.PG006),
        ((NON_MEMBERS,), ReasonCode.PG006),
        ((MEMBERS, replace(NON_MEMBERS, digest="")), ReasonCode.PG006),
        ((MEMBERS, replace(NON_MEMBERS, digest="rowset-sha256/v0:" + "1" * 64)), ReasonCode.PG006),
        ((MEMBERS, replace(NON_MEMBERS, digest=NON_MEMBERS.digest + "0")), ReasonCode.PG006),
        ((MEMBERS, replace(NON_MEMBERS, digest=MEMBERS.digest)), ReasonCode.PG103),
    ],
)
def test_both_row_sets_must_be_named_and_differ(data: tuple[Any, ...], code: ReasonCode) -> None:
    assert refusal(signed(data=data)) is code


def test_the_first_failing_step_names_the_code() -> None:
    late = replace(EVIDENCE, expires_at=NOW - timedelta(days=1), data=())
    assert refusal(sign(statement_bytes(late), OTHER), model_digest="f" * 64) is ReasonCode.PG003
    assert refusal(sign(statement_bytes(late), SIGNER), model_digest="f" * 64) is ReasonCode.PG004
    assert refusal(sign(statement_bytes(late), SIGNER)) is ReasonCode.PG005


class _ForeignSigner:
    """A signer of another kind of key, as a key management service would be."""

    def __init__(self, private_key: Any, sign_bytes: Callable[[bytes], bytes]) -> None:
        pem = private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.public_pem: str = pem.decode()
        self.key_id: str = public_key_id(self.public_pem)
        self._sign_bytes = sign_bytes

    def sign(self, message: bytes) -> bytes:
        return self._sign_bytes(message)


_P256, _P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
SIGNERS: dict[str, Ed25519Signer | _ForeignSigner] = {
    "ed25519": SIGNER,
    "p256": _ForeignSigner(_P256, lambda message: _P256.sign(message, ec.ECDSA(hashes.SHA256()))),
    "p384": _ForeignSigner(_P384, lambda message: _P384.sign(message, ec.ECDSA(hashes.SHA384()))),
    "rsa": _ForeignSigner(_RSA, lambda message: _RSA.sign(message, _PSS, hashes.SHA256())),
}


@pytest.mark.parametrize("name", SIGNERS)
def test_an_envelope_of_every_kind_of_key_verifies_here_and_with_securesystemslib(name: str) -> None:
    signer = SIGNERS[name]
    envelope = sign(statement_bytes(EVIDENCE), signer)
    assert believed(envelope, keys=[TrustedKey("k", KeyRole.TESTER, signer.public_pem)]).key_id == "k"
    theirs = SecureSystemsEnvelope.from_dict(json.loads(envelope))
    key = SSlibKey.from_crypto(load_pem_public_key(signer.public_pem.encode()))
    assert list(theirs.verify([key], threshold=1)) == [signer.key_id]
    assert theirs.pae() == pre_authentication_encoding("application/vnd.in-toto+json", statement_bytes(EVIDENCE))


def test_an_envelope_signed_by_securesystemslib_is_believed() -> None:
    signer = CryptoSigner.generate_ed25519()
    theirs = SecureSystemsEnvelope(statement_bytes(EVIDENCE), "application/vnd.in-toto+json", {})
    theirs.sign(signer)
    raw = bytes.fromhex(signer.public_key.keyval["public"])
    # The 12 bytes that make an Ed25519 key SPKI (RFC 8410).
    spki = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + raw).decode()
    key = TrustedKey("theirs", KeyRole.TESTER, f"-----BEGIN PUBLIC KEY-----\n{spki}\n-----END PUBLIC KEY-----\n")
    assert believed(json.dumps(theirs.to_dict()).encode(), keys=[key]).key_id == "theirs"


def test_other_signed_statements_are_verified_by_the_same_steps() -> None:
    kind = "application/vnd.privacy-gate.waiver+json"
    officer = trusted(OTHER, KeyRole.PRIVACY_OFFICER, id="officer")
    opened, signer = verify_signatures(
        sign(b"waived", OTHER, payload_type=kind),
        keys=[trusted(), officer],
        allow_unsigned=False,
        role=KeyRole.PRIVACY_OFFICER,
        now=NOW,
        payload_type=kind,
    )
    assert (opened.payload, signer) == (b"waived", officer)


def test_the_tag_that_a_check_writes_is_believed() -> None:
    assert believed(attestation(EVIDENCE, SIGNER)).evidence == EVIDENCE


def test_every_signer_is_a_signer() -> None:
    signers: list[Signer] = list(SIGNERS.values())
    assert len({signer.key_id for signer in signers}) == 4


def test_expired_evidence_is_given_back_only_where_its_age_is_judged_elsewhere() -> None:
    late = NOW + timedelta(days=365)
    assert refusal(now=late) is ReasonCode.PG005
    assert believed(now=late, allow_expired=True).evidence == EVIDENCE
    early = NOW - timedelta(days=2)
    assert refusal(now=early, allow_expired=True) is ReasonCode.PG005
    inside_out = signed(expires_at=EVIDENCE.tested_at)
    assert refusal(inside_out, allow_expired=True) is ReasonCode.PG005
    assert refusal(now=late, allow_expired=True, model_digest="f" * 64) is ReasonCode.PG004
