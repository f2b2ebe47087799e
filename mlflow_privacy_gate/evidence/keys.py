"""Public keys a policy trusts: what they are called, what they may sign, until when, and whether a signature is theirs.

Ed25519, ECDSA on P-256 (sha256) and P-384 (sha384), and RSA-PSS (sha256, at least 2048 bits), each as SPKI PEM. The key id is
securesystemslib's: the sha256 of the canonical JSON of ``{"keytype", "keyval": {"public"}, "scheme"}``, so that an envelope signed here
verifies there, and the other way round, with no translation. ``public`` is the raw key in hex for Ed25519 and the SPKI PEM otherwise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.vocabulary import KeyRole

PublicKey: TypeAlias = Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey

MINIMUM_RSA_BITS = 2048


@dataclass(frozen=True)
class TrustedKey:
    """A public key that the policy trusts in one role.

    ``id`` is the policy's own name for it; ``public_key`` is SPKI PEM; from ``not_after`` (timezone-aware, None = no end) on it is no
    longer trusted. UsageError when the PEM is no key this project verifies with, or ``not_after`` has no timezone.
    """

    id: str
    role: KeyRole
    public_key: str
    not_after: datetime | None = None

    def __post_init__(self) -> None:
        parse_public_key(self.public_key)
        if self.not_after is not None and self.not_after.tzinfo is None:
            raise UsageError(f"key {self.id}: not_after: expected a time with its timezone, got {self.not_after}")

    @property
    def key_id(self) -> str:
        """The id by which envelopes name this key: a sha256 of the key itself, whatever the policy calls it."""
        return public_key_id(self.public_key)

    def trusted_at(self, now: datetime) -> bool:
        """Whether the key is still trusted at ``now``."""
        return self.not_after is None or now < self.not_after

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether ``signature`` over ``message`` was made with this key."""
        return _verifies(parse_public_key(self.public_key), signature, message)


Trusted: TypeAlias = TrustedKey | TrustedIdentity


@lru_cache(maxsize=256)
def parse_public_key(pem: str) -> PublicKey:
    """Read an SPKI PEM of a kind that this project verifies with; UsageError says what was found instead."""
    try:
        key = load_pem_public_key(pem.encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise UsageError(f"expected a public key as PEM ('-----BEGIN PUBLIC KEY-----'), got none: {exc}") from exc
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        return key
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= MINIMUM_RSA_BITS:
        return key
    raise UsageError(
        f"expected an Ed25519, P-256, P-384 or RSA (from {MINIMUM_RSA_BITS} bits) key, got {_describe(key)}"
    )


def public_key_id(pem: str) -> str:
    """Return the 64 hex digits by which envelopes name the key; the same as securesystemslib gives it."""
    key = parse_public_key(pem)
    # Canonical JSON escapes only the quote and the backslash; neither occurs in hex, PEM or these names.
    public = public_text(key)
    keytype, scheme = _type_and_scheme(key)
    canonical = f'{{"keytype":"{keytype}","keyval":{{"public":"{public}"}},"scheme":"{scheme}"}}'
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def public_pem(key: PublicKey) -> str:
    """Return the key as SPKI PEM, as it stands in a policy."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def public_text(key: PublicKey) -> str:
    """Return what securesystemslib writes under ``keyval.public``: raw hex for Ed25519, SPKI PEM for the others."""
    if isinstance(key, Ed25519PublicKey):
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    return public_pem(key)


def _type_and_scheme(key: PublicKey) -> tuple[str, str]:
    if isinstance(key, Ed25519PublicKey):
        return "ed25519", "ed25519"
    if isinstance(key, rsa.RSAPublicKey):
        return "rsa", "rsassa-pss-sha256"
    return "ecdsa", f"ecdsa-sha2-nistp{key.curve.key_size}"


def _verifies(key: PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, message)
        elif isinstance(key, rsa.RSAPublicKey):
            pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
            key.verify(signature, message, pss, hashes.SHA256())
        else:
            digest = hashes.SHA256() if isinstance(key.curve, ec.SECP256R1) else hashes.SHA384()
            key.verify(signature, message, ec.ECDSA(digest))
    except InvalidSignature:
        return False
    return True


def _describe(key: object) -> str:
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA with {key.key_size} bits"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"a key on the curve {key.curve.name}"
    return type(key).__name__.removesuffix("PublicKey").lstrip("_")
