"""A private key is its owner's alone, and is never overwritten."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.keys import TrustedKey, public_key_id
from mlflow_privacy_gate.evidence.signing import generate_key, load_signer
from mlflow_privacy_gate.vocabulary import KeyRole


def test_a_generated_key_is_0600_and_signs_what_its_public_half_verifies(tmp_path: Path) -> None:
    path = tmp_path / "privacy-gate.key"
    generated = generate_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    loaded = load_signer(path)
    assert loaded.key_id == generated.key_id == public_key_id(loaded.public_pem)
    assert TrustedKey("k", KeyRole.TESTER, generated.public_pem).verifies(loaded.sign(b"m"), b"m")


def test_an_encrypted_key_opens_with_its_password_only(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    signer = generate_key(path, password=b"open")
    path.chmod(0o644)  # encrypted: others may hold a copy
    assert load_signer(path, password=b"open").key_id == signer.key_id
    with pytest.raises(UsageError, match="PRIVACY_GATE_KEY_PASSWORD"):
        load_signer(path)
    with pytest.raises(UsageError, match="does not open"):
        load_signer(path, password=b"shut")


def test_a_password_given_for_an_open_key_does_no_harm(tmp_path: Path) -> None:
    signer = generate_key(tmp_path / "k.key")
    assert load_signer(tmp_path / "k.key", password=b"unneeded").key_id == signer.key_id


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "k.key"
    generate_key(path)
    path.chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        load_signer(path)


def test_an_existing_file_is_never_overwritten_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    path.write_text("precious")
    with pytest.raises(UsageError, match="never overwritten"):
        generate_key(path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="never overwritten"):
        generate_key(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        generate_key(tmp_path / "nowhere" / "k.key")
    with pytest.raises(UsageError, match="cannot read"):
        load_signer(tmp_path / "nowhere" / "k.key")


def test_another_kind_of_private_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(UsageError, match="Ed25519"):
        load_signer(path)


def test_a_file_that_is_no_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    path.write_text("my secret diary")
    path.chmod(0o600)
    with pytest.raises(UsageError, match="PKCS8 PEM") as refused:
        load_signer(path)
    assert "diary" not in refused.value.message


def test_a_signer_does_not_show_its_private_key(tmp_path: Path) -> None:
    signer = generate_key(tmp_path / "k.key")
    assert "PRIVATE" not in repr(signer)
    assert "PRIVATE" not in str(sorted(map(str, vars(signer).values())))
