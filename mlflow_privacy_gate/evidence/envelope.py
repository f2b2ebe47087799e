"""The envelope: a statement's exact bytes and the signatures over them (DSSE v1.0.2).

What is signed is the pre-authentication encoding ``DSSEv1 SP len(type) SP type SP len(payload) SP payload`` of the payload and its type,
so a signature binds both. Evidence without a signature keeps the envelope's form; its ``signatures`` list is empty.

Reading is stricter than DSSE asks: one form only. JSON without duplicate keys, NaN or Infinity, exactly the keys this module writes,
base64 in the standard alphabet with its one canonical spelling. A reader that shrugs at any of these lets two readers see
two different statements. Source: https://github.com/secure-systems-lab/dsse/blob/v1.0.2/protocol.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.vocabulary import ENVELOPE_LIMIT_BYTES

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.signing import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MOST_SIGNATURES = 16  # each costs an attempt with every trusted key, and one believed is enough


@dataclass(frozen=True)
class Signature:
    """One signature, and the id of the key it names."""

    key_id: str
    value: bytes


@dataclass(frozen=True)
class Envelope:
    """An envelope as read: nothing in it is believed yet. ``sha256`` (hex) is of the envelope's own bytes."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]
    sha256: str

    def signed_bytes(self) -> bytes:
        """Return the bytes that every signature covers."""
        return pre_authentication_encoding(self.payload_type, self.payload)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's PAE: type and payload, each with its length in bytes, so that neither can be read as part of the other."""
    encoded_type = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(encoded_type), encoded_type, len(payload), payload)


def sign(payload: bytes, signer: Signer | None, *, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Wrap ``payload`` in an envelope signed by ``signer`` (None: unsigned) and return its JSON bytes.

    UsageError when the envelope would not fit into a registry tag; move long tables to an artifact.
    """
    signatures = []
    if signer is not None:
        value = signer.sign(pre_authentication_encoding(payload_type, payload))
        signatures.append({"keyid": signer.key_id, "sig": _base64(value)})
    content = {"payload": _base64(payload), "payloadType": payload_type, "signatures": signatures}
    envelope = json.dumps(content, separators=(",", ":")).encode("ascii")
    if len(envelope) > ENVELOPE_LIMIT_BYTES:
        raise UsageError(
            f"the evidence makes an envelope of {len(envelope)} bytes, and a registry tag holds {ENVELOPE_LIMIT_BYTES}: "
            "test fewer subgroups, or name fewer datasets"
        )
    return envelope


def open_envelope(raw: bytes | str) -> Envelope:
    """Read an envelope from its JSON bytes, or from their base64 text as it stands in a tag; nothing is verified.

    EvidenceRejected (PG002) when it is too large or not in the one accepted form.
    """
    # Base64 makes 4 characters of 3 bytes: the size is known before anything is decoded.
    if len(raw) > (ENVELOPE_LIMIT_BYTES if isinstance(raw, bytes) else -(-ENVELOPE_LIMIT_BYTES // 3) * 4):
        raise EvidenceRejected(f"the envelope is larger than the {ENVELOPE_LIMIT_BYTES} bytes an attestation may have")
    content = strict_base64(raw, "envelope") if isinstance(raw, str) else raw
    fields = _object(strict_json(content, "envelope"), ("payload", "payloadType", "signatures"), "envelope")
    return Envelope(
        payload=strict_base64(fields["payload"], "envelope.payload"),
        payload_type=_text(fields["payloadType"], "envelope.payloadType"),
        signatures=_signatures(fields["signatures"]),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def strict_json(content: bytes, where: str) -> object:
    """Parse UTF-8 JSON that every reader reads alike; EvidenceRejected (PG002) for duplicate keys, NaN, Infinity or a float.

    Floats are refused because statements carry numbers as decimal strings: what one parser rounds another may not.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=lambda pairs: _unique(pairs, where),
            parse_constant=lambda constant: _reject(where, f"{constant} is no JSON number"),
            parse_float=lambda number: _reject(where, f"the number {number[:40]} does not travel as a decimal string"),
        )
    except (ValueError, RecursionError) as exc:
        raise EvidenceRejected(f"{where}: expected JSON in UTF-8: {exc}") from exc


def strict_base64(value: object, where: str) -> bytes:
    """Decode standard base64 in its canonical spelling; EvidenceRejected (PG002) for anything else, junk and line breaks too."""
    text = _text(value, where)
    try:
        encoded = text.encode("ascii")
        decoded = base64.b64decode(encoded, validate=True)
    except (UnicodeEncodeError, binascii.Error) as exc:
        raise EvidenceRejected(f"{where}: expected base64: {exc}") from exc
    if base64.b64encode(decoded) != encoded:
        raise EvidenceRejected(f"{where}: expected base64 in its canonical spelling")
    return decoded


def _signatures(value: object) -> tuple[Signature, ...]:
    if not isinstance(value, list):
        _reject("envelope.signatures", f"expected a list, got {type(value).__name__}")
    if len(value) > MOST_SIGNATURES:
        _reject("envelope.signatures", f"expected at most {MOST_SIGNATURES}, got {len(value)}")
    signatures = []
    for index, item in enumerate(value):
        where = f"envelope.signatures[{index}]"
        fields = _object(item, ("keyid", "sig"), where)
        key_id = _text(fields["keyid"], f"{where}.keyid")
        signatures.append(Signature(key_id, strict_base64(fields["sig"], f"{where}.sig")))
    return tuple(signatures)


def _object(value: object, keys: Sequence[str], where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        _reject(where, f"expected an object, got {type(value).__name__}")
    if set(value) != set(keys):
        _reject(where, f"expected exactly {', '.join(keys)}, got {', '.join(sorted(value)) or 'nothing'}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        _reject(where, f"expected text, got {type(value).__name__}")
    return value


def _unique(pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            _reject(where, f"the key {name[:80]!r} stands twice")
        fields[name] = value
    return fields


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _reject(where: str, what: str) -> NoReturn:
    raise EvidenceRejected(f"{where}: {what}")
