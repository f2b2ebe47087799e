"""When evidence is believed: every step from untrusted bytes to facts, in one order, each with its own reason code.

==  ============================================================================  ==============
1   size, strict JSON, strict base64, payload type                                PG002
2   signatures, by trusted keys of the role                                       PG002, PG003
3   the very bytes that were verified are parsed, types and all                   PG002, PG006
4   the subject is the digest that was recomputed from the artifact just now      PG004
5   tested not in the future, not expired (5 minutes for clocks that differ)      PG005
6   members and non-members present with their digests, and not the same rows     PG006, PG103
==  ============================================================================  ==============

What the evidence says about the model is not judged here; neither is its place in the ledger.

Signatures: every trusted key of the role is tried, whichever key the envelope names. Each signature must then verify and name the key
that made it. DSSE calls the name a hint; here an envelope has one form, and no byte of it can be changed unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import PAYLOAD_TYPE, Envelope, Signature, open_envelope
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keys import Trusted
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode

CLOCK_SKEW = timedelta(minutes=5)
_ROWSET_DIGEST = re.compile(r"rowset-sha256/v1:[0-9a-f]{64}")


@dataclass(frozen=True)
class VerifiedEvidence:
    """Evidence that is believed, with the sha256 (hex) of its envelope.

    ``key_id`` is the policy's own id of the key that signed it, None where it is unsigned (``signed`` False): then anyone who may edit the
    version could have written it.
    """

    evidence: Evidence
    envelope_sha256: str
    key_id: str | None
    signed: bool


def verify(
    envelope: bytes | str,
    *,
    keys: Sequence[Trusted],
    allow_unsigned: bool,
    model_digest: str,
    now: datetime,
    role: KeyRole = KeyRole.TESTER,
    allow_expired: bool = False,
) -> VerifiedEvidence:
    """Return the evidence in ``envelope`` if it may be believed at ``now``; EvidenceRejected with the first step's code if not.

    ``envelope`` is the envelope's JSON bytes, or their base64 text as in the registry tag. ``keys`` are all of the policy's keys.
    ``model_digest`` is the digest of the artifact's bytes as they are now. ``now`` is timezone-aware. With ``allow_expired`` evidence whose
    end has passed is given back all the same, for a judgement that finds its age itself.
    """
    opened, signer = verify_signatures(envelope, keys=keys, allow_unsigned=allow_unsigned, role=role, now=now)
    evidence = read_statement(opened.payload)
    _check_subject(evidence, model_digest)
    _check_times(evidence, now, allow_expired=allow_expired)
    _check_data(evidence)
    return VerifiedEvidence(evidence, opened.sha256, None if signer is None else signer.id, signer is not None)


def verify_signatures(
    envelope: bytes | str,
    *,
    keys: Sequence[Trusted],
    allow_unsigned: bool,
    role: KeyRole,
    now: datetime,
    payload_type: str = PAYLOAD_TYPE,
) -> tuple[Envelope, Trusted | None]:
    """Return the opened envelope and the first key that signed it (None: unsigned, and that is allowed).

    For every kind of signed statement. EvidenceRejected: PG002 for a bad form, a bad or a missing signature, PG003 where no trusted
    key of ``role`` made it.
    """
    if now.tzinfo is None:
        raise UsageError(f"now: expected a time with its timezone, got {now}")
    opened = open_envelope(envelope)
    if opened.payload_type != payload_type:
        raise EvidenceRejected(f"envelope.payloadType: expected {payload_type}, got {opened.payload_type[:80]!r}")
    of_role = [key for key in keys if key.role == role]
    # Without any key nothing can be verified, and whoever wrote a signature could as well have left it out.
    if allow_unsigned and not (opened.signatures and of_role):
        return opened, None
    if not of_role:
        raise EvidenceRejected(
            f"the policy trusts no {role} key", code=ReasonCode.PG003, remedy=no_key_remedy(keys, role)
        )
    if not opened.signatures:
        raise EvidenceRejected(
            "it is not signed, so whoever may edit this version can forge it",
            remedy=f"have it signed with {_theirs(of_role, now)}",
        )
    signers = [_signer(opened, signature, of_role, keys, now) for signature in opened.signatures]
    if len({signer.key_id for signer in signers}) != len(signers):
        raise EvidenceRejected("envelope.signatures: one key signed twice")
    return opened, signers[0]


def _signer(
    opened: Envelope, signature: Signature, of_role: Sequence[Trusted], keys: Sequence[Trusted], now: datetime
) -> Trusted:
    signed_bytes = opened.signed_bytes()
    made_by = [key for key in of_role if key.verifies(signature.value, signed_bytes)]
    trusted = [key for key in made_by if key.trusted_at(now)]
    if trusted:
        if signature.key_id != trusted[0].key_id:
            raise EvidenceRejected(f"the signature was made by {trusted[0].id} and names another key")
        return trusted[0]
    if made_by:
        raise EvidenceRejected(
            f"the key {made_by[0].id} is not trusted any more (not_after {made_by[0].not_after})",
            code=ReasonCode.PG003,
            remedy=f"have it signed anew with {_theirs(of_role, now)}",
        )
    named = next((key for key in keys if key.key_id == signature.key_id), None)
    if named is None:
        raise EvidenceRejected(
            f"signed by a key that the policy does not name ({signature.key_id[:16]!r})",
            code=ReasonCode.PG003,
            remedy=f"have it signed with {_theirs(of_role, now)}, or list the public half of the key that signed it under the "
            "policy's `keys`",
        )
    if named.role != of_role[0].role:
        raise EvidenceRejected(
            f"the key {named.id} has the role {named.role}, not {of_role[0].role}",
            code=ReasonCode.PG003,
            remedy=f"have it signed with {_theirs(of_role, now)}; a key has one role",
        )
    reason = named.fault(signature.value, signed_bytes) if isinstance(named, TrustedIdentity) else None
    raise EvidenceRejected(
        f"the signature is not what {named.id} would have made over these bytes{f' ({reason})' if reason else ''}",
        remedy="have it signed anew: what was signed, or the signature, was changed afterwards",
    )


def no_key_remedy(keys: Sequence[Trusted], role: KeyRole) -> str | None:
    """Say what helps where a policy lists no key of a role; None where it lists no key at all, since `init` is meant for that."""
    return (
        f"list the public key of a {str(role).replace('-', ' ')} under the policy's `keys` (`mlflow-privacy-gate keys generate` makes one)"
        if keys
        else None
    )


def _theirs(of_role: Sequence[Trusted], now: datetime) -> str:
    """Name the keys that would do."""
    word = str(of_role[0].role).replace("-", " ")
    names = [key.id for key in of_role if key.trusted_at(now)]
    if not names:
        return f"a new {word} key, listed under the policy's `keys`: none there is trusted any more"
    return f"a {word} key of the policy ({', '.join(names)})"


def _check_subject(evidence: Evidence, model_digest: str) -> None:
    if evidence.model_digest != model_digest:
        raise EvidenceRejected(
            f"the evidence is for the bytes {evidence.model_digest[:16]}…, the stored model is {model_digest[:16]}…",
            code=ReasonCode.PG004,
        )


def _check_times(evidence: Evidence, now: datetime, *, allow_expired: bool) -> None:
    tested, expires = evidence.tested_at, evidence.expires_at
    if tested > now + CLOCK_SKEW:
        raise EvidenceRejected(f"tested at {tested}, which is after now ({now})", code=ReasonCode.PG005)
    if expires <= tested or (now > expires + CLOCK_SKEW and not allow_expired):
        raise EvidenceRejected(f"expired at {expires}; it is {now}", code=ReasonCode.PG005)


def _check_data(evidence: Evidence) -> None:
    digests = {}
    for role in ("members", "non_members"):
        side = evidence.side(role)
        if side is None or not _ROWSET_DIGEST.fullmatch(side.digest):
            raise EvidenceRejected(f"the evidence lacks the row-set digest of the {role}", code=ReasonCode.PG006)
        digests[role] = side.digest
    if digests["members"] == digests["non_members"]:
        raise EvidenceRejected("members and non-members are the same rows", code=ReasonCode.PG103)
