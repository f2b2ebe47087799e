"""Signing with a key that a key management service or a hardware token holds, through securesystemslib's signers.

The key is named by the URI that securesystemslib gives it: ``awskms:…``, ``gcpkms:…``, ``azurekms:…``, ``hv:…`` (HashiCorp Vault),
``hsm:…`` (PKCS #11), or ``file2:…`` (a PEM file). Its public half stands in the policy, where the verifier finds it as well; a fragment
names which one (``awskms:alias/officer#dpo``) where the policy lists several in that role. Installed with
``mlflow-privacy-gate[kms]``. Source: https://python-securesystemslib.readthedocs.io/en/latest/signer.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlflow_privacy_gate.errors import CouldNotLook, UsageError
from mlflow_privacy_gate.evidence.keys import Trusted, TrustedKey, parse_public_key
from mlflow_privacy_gate.vocabulary import KeyRole

# Two letters at least before the colon: C:\keys\tester.key is a file.
_URI = re.compile(r"[a-z][a-z0-9]+:.+")


class KmsSigner:
    """A :class:`~mlflow_privacy_gate.evidence.signing.Signer` whose private key never enters this process (but for ``file2:``)."""

    def __init__(self, service: Any, key: TrustedKey) -> None:
        self._service = service
        self._key = key
        self.key_id: str = key.key_id

    def sign(self, message: bytes) -> bytes:
        """Return the service's signature over ``message``.

        CouldNotLook when the service cannot be reached or says no; UsageError when its key is not the one that the policy names.
        """
        try:
            signature = bytes.fromhex(self._service.sign(message).signature)
        except Exception as exc:  # each service raises errors of its own library
            raise CouldNotLook(f"the key service did not sign: {type(exc).__name__}: {exc}") from exc
        if not self._key.verifies(signature, message):
            raise UsageError(
                f"the key service signed with another key than {self._key.id}, whose public half stands in the policy"
            )
        return signature


def is_key_uri(key: str) -> bool:
    """Whether ``--key`` names a key service's key rather than a file."""
    return _URI.fullmatch(key) is not None and not Path(key).exists()


def kms_signer(uri: str, keys: Sequence[Trusted], *, role: KeyRole, password: str | None = None) -> KmsSigner:
    """Open the signer behind a URI; ``keys`` are the policy's, ``password`` is the PIN or passphrase where one is asked for.

    UsageError when securesystemslib or the service's own library is missing, the URI is none it knows, or it is not clear which of the
    policy's keys of ``role`` is meant. Most services are not asked before the first signature.
    """
    address, _, key_name = uri.partition("#")
    key = _public_half(uri, key_name, [key for key in keys if isinstance(key, TrustedKey) and key.role == role], role)
    try:
        from securesystemslib.exceptions import UnsupportedLibraryError
        from securesystemslib.signer import Signer, SSlibKey  # type: ignore[attr-defined] # exported by assignment
    except ImportError as exc:
        raise UsageError(f"{uri}: signing through a key service needs `pip install mlflow-privacy-gate[kms]`") from exc
    public: Any = SSlibKey.from_crypto(parse_public_key(key.public_key))
    try:
        service = Signer.from_priv_key_uri(address, public, lambda _: password or "")
    except UnsupportedLibraryError as exc:
        raise UsageError(
            f"{uri}: {exc}; `pip install mlflow-privacy-gate[kms]` brings what most services need"
        ) from exc
    except Exception as exc:  # each service raises errors of its own library
        raise UsageError(f"{uri}: cannot be used as {key.id}: {type(exc).__name__}: {exc}") from exc
    return KmsSigner(service, key)


def _public_half(uri: str, name: str, candidates: Sequence[TrustedKey], role: KeyRole) -> TrustedKey:
    meant = [key for key in candidates if not name or key.id == name]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(key.id for key in candidates) or "none"
    raise UsageError(f"{uri}: which of the policy's {role} keys is it? Name one after `#`; the policy lists: {listed}")
