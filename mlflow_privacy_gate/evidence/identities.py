"""Identities that a policy trusts in the place of a key: whoever proves to Sigstore, for a moment, to be that account or pipeline.

Such a signature is a Sigstore bundle (JSON) over the bytes: the raw signature, the certificate that Sigstore's authority gave the
identity for ten minutes, and the entry in its log. The bundle stands whole in ``sig`` of the envelope, so the envelope has one form for
every kind of signer. One bundle has one spelling, and what no signature in it covers stands not in it (:func:`bundle_bytes`); another
spelling is refused.

Believing one asks nobody: sigstore's own verifier checks certificate, log entry, time and signature against a trust root in a file.
The id by which envelopes name an identity is securesystemslib's for ``sigstore-oidc``, like those of keys.
Installed with ``mlflow-privacy-gate[keyless]``. Source: https://docs.sigstore.dev/about/bundle/
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode

INSTALL = "pip install 'mlflow-privacy-gate[keyless]'"
_LONGEST_REASON = 300
_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"


@dataclass(frozen=True)
class TrustedIdentity:
    """An account or pipeline that the policy trusts in one role, as Sigstore's certificates name it.

    ``id`` is the policy's own name for it. ``identity`` is the certificate's subject, an e-mail address or a URI, and ``issuer`` who
    vouched for it; both count letter by letter. ``trust_root`` is the file with the keys of the Sigstore instance (None: those of the
    public one, as the installed sigstore keeps them). From ``not_after`` (timezone-aware, None = no end) on it is no longer trusted.
    UsageError when ``not_after`` has no timezone.
    """

    id: str
    role: KeyRole
    identity: str
    issuer: str
    trust_root: Path | None = None
    not_after: datetime | None = None

    def __post_init__(self) -> None:
        if self.not_after is not None and self.not_after.tzinfo is None:
            raise UsageError(f"identity {self.id}: not_after: expected a time with its timezone, got {self.not_after}")

    @property
    def key_id(self) -> str:
        """The id by which envelopes name this identity: 64 hex digits, whatever the policy calls it."""
        named = {"identity": self.identity, "issuer": self.issuer}
        canonical = json.dumps(
            {"keytype": "sigstore-oidc", "keyval": named, "scheme": "Fulcio"}, ensure_ascii=False, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

    def trusted_at(self, now: datetime) -> bool:
        """Whether the identity is still trusted at ``now``."""
        return self.not_after is None or now < self.not_after

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether ``signature`` is a bundle that this identity made over ``message``; errors as for :meth:`fault`."""
        return self.fault(signature, message) is None

    def fault(self, signature: bytes, message: bytes) -> str | None:
        """Say why ``signature`` is not this identity's over ``message``; None: it is.

        EvidenceRejected (PG003) where that cannot be found out here: sigstore is not installed, or its trust root cannot be used.
        """
        if not signature.startswith(b"{"):
            return "it is no Sigstore bundle"
        verifier = _verifier(self)
        from sigstore.models import Bundle
        from sigstore.verify.policy import Identity

        try:
            bundle = Bundle.from_json(signature)
            if bundle_bytes(bundle) != signature:
                return "the Sigstore bundle is not in its one spelling"
            verifier.verify_artifact(message, bundle, Identity(identity=self.identity, issuer=self.issuer))
        # Anyone may write a tag: whatever a bundle makes the parsers beneath raise, it is not believed.
        except Exception as exc:
            return f"{type(exc).__name__}: {exc}"[:_LONGEST_REASON]
        return None


def bundle_bytes(bundle: Any) -> bytes:
    """Spell a ``sigstore.models.Bundle`` the one way in which envelopes carry it: ASCII, keys sorted, no spaces, canonical base64.

    Left out is what the verifier passes over, for anyone could change it: the repeated digest of the message, further certificates, other
    parties' signatures on the log's head, and time stamps where the log itself promised the time. The log's signature goes by the name in
    its head.
    """
    content = json.loads(bundle.to_json())
    material = content["verificationMaterial"]
    [entry] = material["tlogEntries"]
    checkpoint = entry["inclusionProof"]["checkpoint"]
    checkpoint["envelope"] = _signed_by_the_log(checkpoint["envelope"], entry["logId"]["keyId"])
    parts = ["certificate", "tlogEntries", *([] if "inclusionPromise" in entry else ["timestampVerificationData"])]
    spelled = {
        "mediaType": _MEDIA_TYPE,
        "messageSignature": {"signature": content["messageSignature"]["signature"]},
        "verificationMaterial": {part: material[part] for part in parts},
    }
    return json.dumps(spelled, sort_keys=True, separators=(",", ":")).encode("ascii")


def _signed_by_the_log(note: str, log_id: str) -> str:
    """Keep of a log's signed head (a note of https://c2sp.org/signed-note) the log's own signature, found by its key's first four bytes."""
    head, _, signatures = note.partition("\n\n")
    hint = base64.b64decode(log_id)[:4]
    values = [base64.b64decode(line.rpartition(" ")[2]) for line in signatures.splitlines()]
    own = next((base64.b64encode(value).decode("ascii") for value in values if value[:4] == hint), "")
    name = head.partition("\n")[0].partition(" ")[0]
    return f"{head}\n\n\N{EM DASH} {name} {own}\n"


def _verifier(trusted: TrustedIdentity) -> Any:
    try:
        from sigstore.models import TrustedRoot
        from sigstore.verify import Verifier
    except ImportError as exc:
        raise _unknowable(
            f"{trusted.id} is a Sigstore identity, and sigstore is not installed here",
            f"install it where this is decided: `{INSTALL}`",
        ) from exc
    try:
        if trusted.trust_root is None:
            return Verifier.production(offline=True)
        return Verifier(trusted_root=TrustedRoot.from_file(str(trusted.trust_root)))
    except Exception as exc:  # of the file system, of pydantic, of sigstore
        where = (
            f"its trust root {trusted.trust_root.name}" if trusted.trust_root else "the trust root that sigstore keeps"
        )
        reason = exc.strerror if isinstance(exc, OSError) else type(exc).__name__
        raise _unknowable(
            f"{trusted.id} cannot be verified here: {where} cannot be used: {reason}",
            "put the trusted_root.json of the Sigstore instance where the policy's `trust_root` says",
        ) from exc


def _unknowable(message: str, remedy: str) -> EvidenceRejected:
    return EvidenceRejected(message, code=ReasonCode.PG003, remedy=remedy)
