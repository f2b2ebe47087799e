"""Private keys: whoever holds one can make evidence that the gate believes.

A key file is PKCS8 PEM, either encrypted or readable by its owner alone. Other signers (a key management service, Sigstore) fit the same
small :class:`Signer` protocol. Nothing in here logs, prints or returns a private key.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.keys import public_key_id, public_pem


class Signer(Protocol):
    """Something that signs bytes under a key or an identity that others know by ``key_id``."""

    @property
    def key_id(self) -> str:
        """The id by which the policy's :data:`mlflow_privacy_gate.evidence.keys.Trusted` knows whoever signs."""

    def sign(self, message: bytes) -> bytes:
        """Return the signature over ``message``: the raw one of a key, a Sigstore bundle of an identity."""


class Ed25519Signer:
    """A signer with an Ed25519 key in this process."""

    def __init__(self, private_key: Ed25519PrivateKey) -> None:
        self._private_key = private_key
        self.public_pem: str = public_pem(private_key.public_key())
        self.key_id: str = public_key_id(self.public_pem)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over ``message``."""
        return self._private_key.sign(message)


def load_signer(path: Path, *, password: bytes | None = None) -> Ed25519Signer:
    """Read a signing key from a PKCS8 PEM file.

    An unencrypted file must belong to its owner alone (mode 0600 or stricter). UsageError when it cannot be read, is open to
    others, is encrypted and ``password`` is missing or wrong, or is no Ed25519 key.
    """
    try:
        with path.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            pem = stream.read()
    except OSError as exc:
        raise UsageError(f"{path}: cannot read the signing key: {exc.strerror or exc}") from exc
    encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in pem
    if not encrypted and os.name == "posix" and mode & 0o077:
        raise UsageError(f"{path}: mode {mode:04o} lets others use this signing key; run `chmod 600 {path}`")
    if encrypted and not password:
        raise UsageError(f"{path}: the signing key is encrypted; give its password in PRIVACY_GATE_KEY_PASSWORD")
    try:
        key = load_pem_private_key(pem, password if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        what = "the password does not open this signing key" if encrypted else "expected a private key as PKCS8 PEM"
        raise UsageError(f"{path}: {what}") from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path}: expected an Ed25519 private key, got another kind; `mlflow-privacy-gate init` makes one"
        )
    return Ed25519Signer(key)


def generate_key(path: Path, *, password: bytes | None = None) -> Ed25519Signer:
    """Make a new Ed25519 key and write it to ``path`` (PKCS8 PEM, mode 0600), whole or not at all.

    An existing file is never replaced. UsageError when ``path`` exists or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    encryption: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
    _write_new(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return Ed25519Signer(key)


def _write_new(path: Path, content: bytes) -> None:
    """Write under a temporary name (mkstemp: 0600 from the start), then link it to ``path``, which fails where something stands."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()
    except FileExistsError as exc:
        raise UsageError(f"{path}: exists already; a signing key is never overwritten") from exc
    except OSError as exc:
        raise UsageError(f"{path}: cannot write the signing key: {exc.strerror or exc}") from exc
