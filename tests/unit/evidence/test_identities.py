"""A Sigstore identity is believed only by name and issuer, over these bytes, under the policy's trust root, without any network."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import fresh_signer, passing_evidence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_mutations import mutate

pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")

from securesystemslib.signer import SigstoreSigner  # type: ignore[attr-defined] # exported by assignment
from sigstore_fakes import IDENTITY, ISSUER, FakeSigstore, oidc_token

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import open_envelope, pre_authentication_encoding, sign
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keyless_signer import KeylessSigner
from mlflow_privacy_gate.evidence.keys import Trusted, TrustedKey
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence, verify
from mlflow_privacy_gate.vocabulary import ENVELOPE_LIMIT_BYTES, KeyRole, ReasonCode

DIGEST = "e" * 64
EVIDENCE = passing_evidence(DIGEST)
NOW = datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sigstore")


@pytest.fixture(scope="module")
def sigstore() -> FakeSigstore:
    return FakeSigstore()


@pytest.fixture(scope="module")
def pipeline(sigstore: FakeSigstore, folder: Path) -> TrustedIdentity:
    return TrustedIdentity("pipeline", KeyRole.TESTER, IDENTITY, ISSUER, sigstore.trust_root(folder))


@pytest.fixture(scope="module")
def envelope(sigstore: FakeSigstore, pipeline: TrustedIdentity, folder: Path) -> bytes:
    signer = KeylessSigner(pipeline, lambda: sigstore.context(folder), oidc_token)
    return sign(statement_bytes(EVIDENCE), signer)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


def believed(envelope: bytes, *keys: Trusted, now: datetime = NOW, role: KeyRole = KeyRole.TESTER) -> VerifiedEvidence:
    return verify(envelope, keys=keys, allow_unsigned=False, model_digest=DIGEST, now=now, role=role)


def refusal(envelope: bytes, *keys: Trusted, **asked: Any) -> EvidenceRejected:
    with pytest.raises(EvidenceRejected) as refused:
        believed(envelope, *keys, **asked)
    return refused.value


def changed(envelope: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Change the bundle in an envelope and spell it as before."""
    content = json.loads(envelope)
    bundle = json.loads(base64.b64decode(content["signatures"][0]["sig"]))
    change(bundle)
    spelled = json.dumps(bundle, sort_keys=True, separators=(",", ":")).encode()
    content["signatures"][0]["sig"] = base64.b64encode(spelled).decode()
    return json.dumps(content, separators=(",", ":")).encode()


def test_evidence_signed_as_the_policys_identity_is_believed_without_a_network(
    envelope: bytes, pipeline: TrustedIdentity, no_network: None
) -> None:
    verified = believed(envelope, pipeline)
    assert (verified.evidence, verified.key_id, verified.signed) == (EVIDENCE, "pipeline", True)


def test_what_the_signature_adds_leaves_room_for_the_statement(envelope: bytes) -> None:
    assert len(base64.b64encode(open_envelope(envelope).signatures[0].value)) < ENVELOPE_LIMIT_BYTES / 4


def test_keys_and_identities_stand_beside_each_other(envelope: bytes, pipeline: TrustedIdentity) -> None:
    signer = fresh_signer()
    key = TrustedKey("tester-1", KeyRole.TESTER, signer.public_pem)
    assert believed(envelope, key, pipeline).key_id == "pipeline"
    assert believed(sign(statement_bytes(EVIDENCE), signer), pipeline, key).key_id == "tester-1"
    assert refusal(sign(statement_bytes(EVIDENCE), signer), pipeline).code is ReasonCode.PG003


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"identity": IDENTITY.replace("main", "fork")}, "do not match"),
        ({"identity": IDENTITY.upper()}, "do not match"),
        ({"issuer": "https://accounts.google.com"}, "OIDCIssuer does not match"),
    ],
    ids=["another branch", "other letters", "another issuer"],
)
def test_a_certificate_of_another_identity_or_issuer_is_refused(
    envelope: bytes, pipeline: TrustedIdentity, change: dict[str, str], reason: str
) -> None:
    other = TrustedIdentity(**{**vars(pipeline), **change})
    rejected = refusal(envelope, other)
    assert (rejected.code, "does not name" in rejected.message) == (ReasonCode.PG003, True)
    # As the attacker would have it: under the name of the identity that is trusted.
    content = json.loads(envelope)
    content["signatures"][0]["keyid"] = other.key_id
    rejected = refusal(json.dumps(content).encode(), other)
    assert rejected.code is ReasonCode.PG002
    assert reason in rejected.message


def test_an_identity_counts_in_its_role_and_until_its_end(envelope: bytes, pipeline: TrustedIdentity) -> None:
    officer = TrustedIdentity(**{**vars(pipeline), "role": KeyRole.PRIVACY_OFFICER})
    tester = TrustedKey("tester-1", KeyRole.TESTER, fresh_signer().public_pem)
    assert refusal(envelope, officer, tester).code is ReasonCode.PG003
    ended = TrustedIdentity(**{**vars(pipeline), "not_after": NOW})
    rejected = refusal(envelope, ended)
    assert (rejected.code, "not trusted any more" in rejected.message) == (ReasonCode.PG003, True)
    assert believed(envelope, ended, now=NOW - timedelta(seconds=30)).signed
    with pytest.raises(UsageError, match="timezone"):
        TrustedIdentity("p", KeyRole.TESTER, IDENTITY, ISSUER, not_after=datetime(2027, 1, 1))


def test_another_payload_or_type_under_the_signature_is_refused(envelope: bytes, pipeline: TrustedIdentity) -> None:
    content = json.loads(envelope)
    statement = base64.b64decode(content["payload"]).replace(b'"pass"', b'"fail"')
    tampered = {**content, "payload": base64.b64encode(statement).decode()}
    assert refusal(json.dumps(tampered).encode(), pipeline).code is ReasonCode.PG002
    signature = open_envelope(envelope).signatures[0].value
    payload = open_envelope(envelope).payload
    assert pipeline.verifies(signature, pre_authentication_encoding("application/vnd.in-toto+json", payload))
    assert not pipeline.verifies(signature, pre_authentication_encoding("text/plain", payload))
    assert not pipeline.verifies(signature, payload)


@pytest.mark.parametrize(
    "change",
    [
        lambda bundle: bundle["verificationMaterial"].pop("tlogEntries"),
        lambda bundle: bundle["verificationMaterial"].update(tlogEntries=[]),
        lambda bundle: bundle["verificationMaterial"]["tlogEntries"][0].pop("inclusionProof"),
        lambda bundle: bundle["verificationMaterial"]["tlogEntries"][0].pop("inclusionPromise"),
        lambda bundle: bundle["verificationMaterial"]["tlogEntries"][0].pop("integratedTime"),
        lambda bundle: bundle["verificationMaterial"]["tlogEntries"].append(
            bundle["verificationMaterial"]["tlogEntries"][0]
        ),
        lambda bundle: bundle["verificationMaterial"].pop("certificate"),
        lambda bundle: bundle.pop("messageSignature"),
        lambda bundle: bundle.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.1"),
        lambda bundle: bundle.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.3"),
        lambda bundle: bundle.update(more=1),
        lambda bundle: bundle["messageSignature"].update(messageDigest={"algorithm": "SHA3_256", "digest": "AAAA"}),
        lambda bundle: bundle["verificationMaterial"].update(timestampVerificationData={"rfc3161Timestamps": []}),
        lambda bundle: bundle["verificationMaterial"].update(
            x509CertificateChain={"certificates": [bundle["verificationMaterial"]["certificate"]]}
        ),
    ],
)
def test_a_bundle_without_its_parts_or_with_more_is_refused(
    envelope: bytes, pipeline: TrustedIdentity, change: Callable[[dict[str, Any]], object]
) -> None:
    assert refusal(changed(envelope, change), pipeline).code is ReasonCode.PG002


def test_the_log_entry_of_another_signature_is_refused(
    envelope: bytes, sigstore: FakeSigstore, pipeline: TrustedIdentity, folder: Path
) -> None:
    signer = KeylessSigner(pipeline, lambda: sigstore.context(folder), oidc_token)
    other = json.loads(signer.sign(b"another statement"))
    entries = other["verificationMaterial"]["tlogEntries"]
    swapped = changed(envelope, lambda bundle: bundle["verificationMaterial"].update(tlogEntries=entries))
    assert refusal(swapped, pipeline).code is ReasonCode.PG002


def test_every_flipped_byte_refuses(envelope: bytes, pipeline: TrustedIdentity) -> None:
    opened = open_envelope(envelope)
    bundle, message = opened.signatures[0].value, opened.signed_bytes()
    accepted = []
    for place in range(len(bundle)):
        for mask in (0x01, 0x20):
            flipped = bytearray(bundle)
            flipped[place] ^= mask
            if pipeline.verifies(bytes(flipped), message):
                accepted.append((place, mask))
    assert accepted == []


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_mutated_bundle_is_accepted(envelope: bytes, pipeline: TrustedIdentity, data: st.DataObject) -> None:
    opened = open_envelope(envelope)
    bundle = json.loads(opened.signatures[0].value)
    mutated = mutate(bundle, data)
    if mutated != bundle:
        spelled = json.dumps(mutated, sort_keys=True, separators=(",", ":")).encode()
        assert pipeline.fault(spelled, opened.signed_bytes()) is not None


def test_a_bundle_of_another_spelling_is_refused(envelope: bytes, pipeline: TrustedIdentity) -> None:
    opened = open_envelope(envelope)
    bundle, message = opened.signatures[0].value, opened.signed_bytes()
    twice = bundle.replace(b'{"mediaType"', b'{"mediaType":"x","mediaType"', 1)
    for spelled in (json.dumps(json.loads(bundle)).encode(), bundle + b"\n", twice):
        assert "spelling" in str(pipeline.fault(spelled, message))
    for junk in (b"{", b"{}", b"[]", b"", b"\xff", b'{"mediaType":null}', bundle[:-1]):
        assert pipeline.fault(junk, message) is not None


def test_a_signature_under_another_instances_keys_is_refused(
    envelope: bytes, pipeline: TrustedIdentity, tmp_path: Path
) -> None:
    elsewhere = FakeSigstore().trust_root(tmp_path)
    assert refusal(envelope, TrustedIdentity(**{**vars(pipeline), "trust_root": elsewhere})).code is ReasonCode.PG002


def test_without_a_named_trust_root_the_public_instances_is_taken_without_a_network(
    envelope: bytes, pipeline: TrustedIdentity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    rejected = refusal(envelope, TrustedIdentity(**{**vars(pipeline), "trust_root": None}))
    assert rejected.code is ReasonCode.PG002
    assert "CertValidationError" in rejected.message


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b'{"mediaType": "other"}'])
def test_a_trust_root_that_cannot_be_used_refuses_and_is_named_without_its_folder(
    envelope: bytes, pipeline: TrustedIdentity, tmp_path: Path, content: bytes | None
) -> None:
    root = tmp_path / "root.json"
    if content is not None:
        root.write_bytes(content)
    rejected = refusal(envelope, TrustedIdentity(**{**vars(pipeline), "trust_root": root}))
    assert rejected.code is ReasonCode.PG003
    assert "its trust root root.json cannot be used" in rejected.message
    assert "trusted_root.json" in str(rejected.remedy)
    assert str(tmp_path) not in rejected.message


@pytest.mark.parametrize("name", [IDENTITY, "träger@klinik.example", 'a"b\\c@x'])
def test_an_identitys_id_is_securesystemslibs(name: str) -> None:
    _, key = SigstoreSigner.import_(name, ISSUER)
    assert TrustedIdentity("p", KeyRole.TESTER, name, ISSUER).key_id == key.keyid
