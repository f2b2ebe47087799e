"""Keys have the ids that securesystemslib gives them, and only sound ones are trusted."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined] # exported by assignment

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.keys import TrustedKey, public_key_id
from mlflow_privacy_gate.vocabulary import KeyRole

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
MESSAGE = b"evidence"
RSA_2048 = rsa.generate_private_key(public_exponent=65537, key_size=2048)
P256 = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())
ED25519 = Ed25519PrivateKey.generate()
PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
SIGNATURES: dict[str, tuple[Any, bytes]] = {
    "ed25519": (ED25519, ED25519.sign(MESSAGE)),
    "p256": (P256, P256.sign(MESSAGE, ec.ECDSA(hashes.SHA256()))),
    "p384": (P384, P384.sign(MESSAGE, ec.ECDSA(hashes.SHA384()))),
    "rsa": (RSA_2048, RSA_2048.sign(MESSAGE, PSS, hashes.SHA256())),
}


def pem_of(private_key: Any) -> str:
    return str(private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


@pytest.mark.parametrize("name", SIGNATURES)
def test_key_id_is_the_one_of_securesystemslib(name: str) -> None:
    private_key, _ = SIGNATURES[name]
    assert public_key_id(pem_of(private_key)) == SSlibKey.from_crypto(private_key.public_key()).keyid


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_verifies_under_its_own_key_and_message_only(name: str) -> None:
    private_key, signature = SIGNATURES[name]
    key = TrustedKey("k", KeyRole.TESTER, pem_of(private_key))
    assert key.verifies(signature, MESSAGE)
    assert not key.verifies(signature, MESSAGE + b"!")
    assert not key.verifies(signature[:-1] + bytes([signature[-1] ^ 1]), MESSAGE)
    assert not key.verifies(b"", MESSAGE)
    for other in SIGNATURES.values():
        assert TrustedKey("o", KeyRole.TESTER, pem_of(other[0])).verifies(signature, MESSAGE) == (
            other[0] is private_key
        )


def test_rsa_with_the_older_padding_is_not_a_signature() -> None:
    signature = RSA_2048.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256())
    assert not TrustedKey("k", KeyRole.TESTER, pem_of(RSA_2048)).verifies(signature, MESSAGE)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=1024), "RSA with 1024 bits"),
        (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
        (ec.generate_private_key(ec.SECP521R1()), "secp521r1"),
        (Ed448PrivateKey.generate(), "Ed448"),
    ],
    ids=["rsa1024", "k1", "p521", "ed448"],
)
def test_weak_and_foreign_kinds_of_key_are_refused_by_name(key: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        TrustedKey("k", KeyRole.TESTER, pem_of(key))


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "å"])
def test_what_is_no_pem_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="BEGIN PUBLIC KEY"):
        TrustedKey("k", KeyRole.TESTER, text)


def test_a_key_is_trusted_until_not_after_and_no_longer() -> None:
    key = TrustedKey("k", KeyRole.TESTER, pem_of(ED25519), not_after=NOW)
    assert key.trusted_at(NOW - timedelta(microseconds=1))
    assert not key.trusted_at(NOW)
    assert TrustedKey("k", KeyRole.TESTER, pem_of(ED25519)).trusted_at(NOW)


def test_not_after_without_a_timezone_is_refused() -> None:
    with pytest.raises(UsageError, match="timezone"):
        TrustedKey("k", KeyRole.TESTER, pem_of(ED25519), not_after=NOW.replace(tzinfo=None))
