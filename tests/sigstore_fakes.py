"""A Sigstore instance of our own, without a network, for sigstore's real signer and verifier: authority, two logs, trust root.

Only what answers over HTTP is replaced: the authority that certifies an identity, and the log that records a signature.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import jwt
import rekor_types
import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from sigstore._internal.fulcio.client import FulcioCertificateSigningResponse
from sigstore._internal.rekor.client import RekorClient
from sigstore.models import TransparencyLogEntry, TrustedRoot
from sigstore.sign import SigningContext

IDENTITY = "https://github.com/clinic/credit/.github/workflows/check.yml@refs/heads/main"
ISSUER = "https://token.actions.githubusercontent.com"
_ISSUER_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_SCT_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


def oidc_token(issuer: str = ISSUER, **claims: Any) -> str:
    """Return a token as a CI platform gives it to a job; nobody but the authority checks its signature."""
    now = int(time.time())
    said = {"aud": "sigstore", "iss": issuer, "sub": "repo:clinic/credit", "iat": now, "exp": now + 600, **claims}
    return str(jwt.encode(said, "k" * 32, algorithm="HS256"))


class _Key:
    """A log's key, as the trust root names it."""

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.der = self.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.id = hashlib.sha256(self.der).digest()

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data, ec.ECDSA(hashes.SHA256()))

    def instance(self) -> dict[str, Any]:
        return {
            "baseUrl": "https://log.test",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": base64.b64encode(self.der).decode(),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": "2020-01-01T00:00:00Z"},
            },
            "logId": {"keyId": base64.b64encode(self.id).decode()},
        }


class FakeSigstore:
    """An instance that certifies whoever asks as ``identity`` of ``issuer``."""

    def __init__(self, identity: str = IDENTITY, issuer: str = ISSUER) -> None:
        self.identity, self.issuer = identity, issuer
        self.rekor, self.ctlog = _Key(), _Key()
        self._authority_key = ec.generate_private_key(ec.SECP256R1())
        self._authority = self._root()
        self.recorded: list[bytes] = []
        self.signing_cert = self  # the client is asked as `fulcio.signing_cert.post(…)`

    def trust_root(self, folder: Path) -> Path:
        """Write the trust root that a policy may name."""
        authority = {
            "subject": {"organization": "test", "commonName": "authority"},
            "uri": "https://authority.test",
            "certChain": {
                "certificates": [{"rawBytes": base64.b64encode(self._authority.public_bytes(Encoding.DER)).decode()}]
            },
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        }
        path = folder / "sigstore-root.json"
        path.write_text(
            json.dumps(
                {
                    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                    "tlogs": [self.rekor.instance()],
                    "certificateAuthorities": [authority],
                    "ctlogs": [self.ctlog.instance()],
                    "timestampAuthorities": [],
                }
            )
        )
        return path

    def context(self, folder: Path) -> SigningContext:
        """Give the context in which sigstore's own signer signs here."""
        authority, log = cast("Any", self), cast("Any", _Log(self))  # stand in for the clients
        return SigningContext(
            fulcio=authority, rekor=log, trusted_root=TrustedRoot.from_file(str(self.trust_root(folder)))
        )

    def post(self, request: x509.CertificateSigningRequest, token: object) -> FulcioCertificateSigningResponse:
        """Certify the key of ``request``, with the promise of a certificate log."""
        key, now = request.public_key(), datetime.now(timezone.utc)
        serial, second = x509.random_serial_number(), now.replace(microsecond=0)
        bare = self._leaf(key, serial, second).sign(self._authority_key, hashes.SHA256())
        promised = self._leaf(key, serial, second).add_extension(
            x509.UnrecognizedExtension(_SCT_EXTENSION, self._sct(bare, second)), critical=False
        )
        return FulcioCertificateSigningResponse(promised.sign(self._authority_key, hashes.SHA256()), [self._authority])

    def _root(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        public, now = self._authority_key.public_key(), datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._authority_key, hashes.SHA256())
        )

    def _leaf(self, key: Any, serial: int, now: datetime) -> x509.CertificateBuilder:
        mail = "@" in self.identity and "://" not in self.identity
        name = x509.RFC822Name(self.identity) if mail else x509.UniformResourceIdentifier(self.identity)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority_key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._authority.subject)
            .public_key(key)
            .serial_number(serial)
            .not_valid_before(now - timedelta(seconds=5))
            .not_valid_after(now + timedelta(minutes=10))
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(authority, critical=False)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_EXTENSION, self.issuer.encode()), critical=False)
        )

    def _sct(self, certificate: x509.Certificate, now: datetime) -> bytes:
        """Return the extension of RFC 6962, section 3.3: one timestamp over the certificate without it."""
        issuer_der = self._authority_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        body, moment = certificate.tbs_certificate_bytes, int(now.timestamp() * 1000)
        entry = hashlib.sha256(issuer_der).digest() + len(body).to_bytes(3, "big") + body
        signature = self.ctlog.sign(struct.pack("!BBQH", 0, 0, moment, 1) + entry + struct.pack("!H", 0))
        one = struct.pack("!B32sQHBBH", 0, self.ctlog.id, moment, 0, 4, 3, len(signature)) + signature
        several = struct.pack("!HH", len(one) + 2, len(one)) + one
        return b"\x04" + (bytes([len(several)]) if len(several) < 128 else bytes([0x81, len(several)])) + several


class _Log:
    """The log: it records a signature beside one earlier entry, and promises and proves it."""

    _build_hashed_rekord_request = RekorClient._build_hashed_rekord_request

    def __init__(self, sigstore: FakeSigstore) -> None:
        self._sigstore = sigstore

    def create_entry(self, request: Any) -> TransparencyLogEntry:
        key, body = self._sigstore.rekor, rfc8785.dumps(dict(request))
        rekor_types.Hashedrekord.model_validate_json(body)
        self._sigstore.recorded.append(body)
        earlier = hashlib.sha256(b"\0earlier").digest()
        root = hashlib.sha256(b"\1" + earlier + hashlib.sha256(b"\0" + body).digest()).digest()
        note = f"log.test - 1\n2\n{base64.b64encode(root).decode()}\n"
        signed = base64.b64encode(key.id[:4] + key.sign(note.encode())).decode()
        said: dict[str, Any] = {
            "body": base64.b64encode(body).decode(),
            "integratedTime": int(time.time()),
            "logID": key.id.hex(),
            "logIndex": 1,
        }
        verification = {
            "inclusionProof": {
                "logIndex": 1,
                "rootHash": root.hex(),
                "treeSize": 2,
                "hashes": [earlier.hex()],
                "checkpoint": f"{note}\n— log.test {signed}\n",
            },
            "signedEntryTimestamp": base64.b64encode(key.sign(rfc8785.dumps(said))).decode(),
        }
        return TransparencyLogEntry._from_v1_response({"entry": {**said, "verification": verification}})


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
