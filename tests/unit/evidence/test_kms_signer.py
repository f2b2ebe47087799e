"""A key service signs like a key file, for the key that the policy names and no other."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mlflow_privacy_gate.errors import CouldNotLook, UsageError
from mlflow_privacy_gate.evidence.keys import TrustedKey, public_pem
from mlflow_privacy_gate.evidence.kms_signer import KmsSigner, is_key_uri, kms_signer
from mlflow_privacy_gate.vocabulary import KeyRole

PRIVATE: dict[str, Any] = {
    "ed25519": Ed25519PrivateKey.generate(),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
}
KEYS = {
    name: TrustedKey(name, KeyRole.PRIVACY_OFFICER, public_pem(private.public_key()))
    for name, private in PRIVATE.items()
}


def uri_of(name: str, folder: Path) -> str:
    """Keep a key as securesystemslib's file signer does: the one service that needs no network."""
    path = folder / f"{name}.pem"
    path.write_bytes(PRIVATE[name].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return f"file2:{path}"


@pytest.mark.parametrize("name", PRIVATE)
def test_what_a_service_signs_verifies_under_the_policys_key(name: str, tmp_path: Path) -> None:
    signer = kms_signer(uri_of(name, tmp_path), [KEYS[name]], role=KeyRole.PRIVACY_OFFICER)
    assert signer.key_id == KEYS[name].key_id
    assert KEYS[name].verifies(signer.sign(b"statement"), b"statement")


def test_the_fragment_names_the_policys_key_where_there_are_several(tmp_path: Path) -> None:
    uri, keys = uri_of("p256", tmp_path), [KEYS["p256"], KEYS["p384"]]
    assert kms_signer(f"{uri}#p256", keys, role=KeyRole.PRIVACY_OFFICER).key_id == KEYS["p256"].key_id
    with pytest.raises(UsageError, match="p256, p384"):
        kms_signer(uri, keys, role=KeyRole.PRIVACY_OFFICER)
    with pytest.raises(UsageError, match="p256, p384"):
        kms_signer(f"{uri}#nobody", keys, role=KeyRole.PRIVACY_OFFICER)


def test_a_key_in_another_role_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lists: none"):
        kms_signer(uri_of("p256", tmp_path), [KEYS["p256"]], role=KeyRole.TESTER)


@pytest.mark.parametrize("uri", ["file2:/no/such/key.pem", "nokms:key", "file2:"])
def test_a_uri_that_opens_nothing_is_a_usage_error_that_names_it(uri: str) -> None:
    with pytest.raises(UsageError, match=uri.partition(":")[0]):
        kms_signer(uri, [KEYS["p256"]], role=KeyRole.PRIVACY_OFFICER)


def test_a_private_key_that_is_not_the_policys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used as ed25519"):
        kms_signer(uri_of("p256", tmp_path), [KEYS["ed25519"]], role=KeyRole.PRIVACY_OFFICER)


class _Answer:
    def __init__(self, signature: str) -> None:
        self.signature = signature


class _OtherKeysService:
    def sign(self, message: bytes) -> _Answer:
        other = Ed25519PrivateKey.generate()
        return _Answer(other.sign(message).hex())


class _DeadService:
    def sign(self, message: bytes) -> _Answer:
        raise ConnectionError("no route to host")


def test_a_service_that_signs_with_another_key_is_found_out_before_anything_is_written() -> None:
    with pytest.raises(UsageError, match="another key than ed25519"):
        KmsSigner(_OtherKeysService(), KEYS["ed25519"]).sign(b"statement")


def test_a_service_that_does_not_answer_is_could_not_look() -> None:
    with pytest.raises(CouldNotLook, match="no route to host"):
        KmsSigner(_DeadService(), KEYS["ed25519"]).sign(b"statement")


def test_without_securesystemslib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("securesystemslib"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    uri = uri_of("p256", tmp_path)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"mlflow-privacy-gate\[kms\]"):
        kms_signer(uri, [KEYS["p256"]], role=KeyRole.PRIVACY_OFFICER)


def test_a_file_is_a_file_and_a_uri_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for uri in ("awskms:alias/dpo", "gcpkms:projects/p/x", "azurekms://vault/keys/k", "hv:dpo", "file2:/k.pem#dpo"):
        assert is_key_uri(uri)
    for path in ("privacy-gate.key", "./a:b", "/keys/a:b", "C:\\keys\\k.pem", "keys/x"):
        assert not is_key_uri(path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:name").touch()
    assert not is_key_uri("odd:name")
