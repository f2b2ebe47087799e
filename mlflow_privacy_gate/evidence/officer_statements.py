"""Officers' statements as signed in-toto statements of our own predicate types, and back; and where they stand beside the evidence.

=============  ================================================  =====================================  ==============================
statement      predicate type                                    subject                                stands in the version's tag
=============  ================================================  =====================================  ==============================
sign-off       ``…/privacy-signoff/v1``                          envelope of the evidence               ``privacy_gate.signoff.<id>``
waiver         ``…/privacy-waiver/v1``                           envelope of the evidence               ``privacy_gate.waiver.<id>``
exemption      ``…/privacy-exemption/v1``                        digest of the model's bytes            ``privacy_gate.exemption.<id>``
=============  ================================================  =====================================  ==============================

``<id>`` is the first twelve digits of the sha256 of the statement's own envelope, so that several stand side by side and none
overwrites another. The same envelope is an artifact of the run: ``privacy_gate/waiver-<id>.dsse.json``.

The predicate holds the statement's other fields under their own names in camelCase, written and read as all facts are
(:mod:`mlflow_privacy_gate.evidence.wire`); an unknown field is refused. Only a privacy officer's key counts, never a missing signature.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import open_envelope, sign, strict_json
from mlflow_privacy_gate.evidence.in_toto import PREDICATE_PATH, About, from_in_toto, to_in_toto
from mlflow_privacy_gate.evidence.keys import Trusted
from mlflow_privacy_gate.evidence.officers import Exemption, SignOff, Waiver
from mlflow_privacy_gate.evidence.signing import Signer
from mlflow_privacy_gate.evidence.verification import CLOCK_SKEW, verify_signatures
from mlflow_privacy_gate.evidence.wire import decode, encode, refuse_unknown
from mlflow_privacy_gate.vocabulary import (
    ARTIFACT_FOLDER,
    ATTESTATION_ARTIFACT,
    DEFAULT_WORKSPACE,
    EXEMPTION_TAG,
    SIGN_OFF_TAG,
    WAIVER_TAG,
    KeyRole,
    ReasonCode,
)

OfficerStatement: TypeAlias = SignOff | Waiver | Exemption
_T = TypeVar("_T", bound=SignOff | Waiver | Exemption)
_ID_DIGITS = 12
MOST_OF_A_KIND = 32  # read of one version, while every other promotion waits
_PREDICATES = "https://github.com/mlflow-privacy-gate/mlflow-privacy-gate"


@dataclass(frozen=True)
class StatementKind:
    """How one kind of statement is written: its predicate type, tag and artifact, the subject's name, and which field its digest is."""

    predicate_type: str
    tag: str
    artifact: str
    subject: str
    digest_key: str


_KINDS: Mapping[type, StatementKind] = MappingProxyType(
    {
        SignOff: StatementKind(
            f"{_PREDICATES}/privacy-signoff/v1", SIGN_OFF_TAG, "signoff", ATTESTATION_ARTIFACT, "evidenceSha256"
        ),
        Waiver: StatementKind(
            f"{_PREDICATES}/privacy-waiver/v1", WAIVER_TAG, "waiver", ATTESTATION_ARTIFACT, "evidenceSha256"
        ),
        Exemption: StatementKind(
            f"{_PREDICATES}/privacy-exemption/v1", EXEMPTION_TAG, "exemption", "model", "modelDigest"
        ),
    }
)


@dataclass(frozen=True)
class VerifiedStatement(Generic[_T]):
    """A statement that is believed: ``key_id`` is the policy's own id of the officer's key, ``envelope_sha256`` hex."""

    statement: _T
    envelope_sha256: str
    key_id: str


@dataclass(frozen=True)
class Attached:
    """The raw, untrusted statements that stand beside a version's evidence: envelopes as JSON bytes, or as base64 of these."""

    waivers: tuple[bytes | str, ...] = ()
    sign_offs: tuple[bytes | str, ...] = ()
    exemptions: tuple[bytes | str, ...] = ()


@dataclass(frozen=True)
class SignedStatement:
    """A statement just signed: its envelope (JSON bytes), the tag it goes into and the artifact path of its copy."""

    envelope: bytes
    tag: str
    artifact: str

    @property
    def tag_value(self) -> str:
        """The envelope as it stands in the tag."""
        return base64.b64encode(self.envelope).decode("ascii")


def sign_statement(statement: OfficerStatement, signer: Signer) -> SignedStatement:
    """Sign a statement and say where it goes; UsageError when it is too long for a tag."""
    envelope = sign(officer_statement_bytes(statement), signer)
    name = open_envelope(envelope).sha256[:_ID_DIGITS]
    kind = _KINDS[type(statement)]
    return SignedStatement(envelope, f"{kind.tag}.{name}", f"{ARTIFACT_FOLDER}/{kind.artifact}-{name}.dsse.json")


def attached(tags: Mapping[str, str] | None) -> Attached:
    """Find the statements among a version's tags, in the order of the tags' names; of each kind the first 32.

    Whoever crowds out a statement that way could as well have deleted it.
    """

    def values(tag: str) -> tuple[str, ...]:
        return tuple(value for key, value in sorted((tags or {}).items()) if key.startswith(f"{tag}."))[:MOST_OF_A_KIND]

    return Attached(values(WAIVER_TAG), values(SIGN_OFF_TAG), values(EXEMPTION_TAG))


def officer_statement_bytes(statement: OfficerStatement) -> bytes:
    """Return the in-toto statement as the UTF-8 JSON bytes that are signed."""
    kind = _KINDS[type(statement)]
    predicate: dict[str, Any] = encode(statement)
    digest = predicate.pop(kind.digest_key)
    content = to_in_toto(kind.predicate_type, About(kind.subject, digest), predicate)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_officer_statement(kind: type[_T], payload: bytes) -> _T:
    """Read a statement of that kind from the very bytes that were verified; EvidenceRejected names what does not fit."""
    how = _KINDS[kind]
    about, predicate = from_in_toto(strict_json(payload, "statement"), how.predicate_type)
    refuse_unknown({key: value for key, value in predicate.items() if key == how.digest_key}, PREDICATE_PATH)
    try:
        return decode(kind, {**predicate, how.digest_key: about.sha256}, PREDICATE_PATH)
    except UsageError as exc:
        raise EvidenceRejected(f"{PREDICATE_PATH}: {exc.message}") from exc


def verify_statement(
    kind: type[_T], envelope: bytes | str, *, keys: Sequence[Trusted], now: datetime
) -> VerifiedStatement[_T]:
    """Believe a statement of that kind signed with a privacy officer's key; EvidenceRejected says at which step it is not.

    Codes as for evidence: PG002 for a bad form, a bad or missing signature, PG003 where no trusted officer's key made it, PG006 for a
    missing field; a statement dated in the future (past five minutes for clocks that differ) is PG302.
    """
    opened, key = verify_signatures(envelope, keys=keys, allow_unsigned=False, role=KeyRole.PRIVACY_OFFICER, now=now)
    assert key is not None  # unsigned is never allowed here
    statement = read_officer_statement(kind, opened.payload)
    if statement.stated_at > now + CLOCK_SKEW:
        raise EvidenceRejected(f"it is dated {statement.stated_at}, which is after now ({now})", code=ReasonCode.PG302)
    return VerifiedStatement(statement, opened.sha256, key.id)


def exemptions_in_force(
    envelopes: Sequence[bytes | str], *, keys: Sequence[Trusted], model_digest: str, workspace: str, now: datetime
) -> tuple[tuple[VerifiedStatement[Exemption], ...], tuple[str, ...]]:
    """Give the exemptions that count for these bytes in this workspace, and why each of the others does not."""
    counting, others = [], []
    for envelope in dict.fromkeys(envelopes):
        try:
            verified = verify_statement(Exemption, envelope, keys=keys, now=now)
        except EvidenceRejected as rejection:
            others.append(f"an exemption is not believed: {rejection.message}")
            continue
        name, stated = verified.envelope_sha256[:_ID_DIGITS], verified.statement
        if stated.model_digest != model_digest:
            others.append(f"the exemption {name} is for other bytes")
        elif (stated.workspace or DEFAULT_WORKSPACE) != workspace:
            others.append(f"the exemption {name} is for workspace {stated.workspace or DEFAULT_WORKSPACE}")
        else:
            counting.append(verified)
    return tuple(counting), tuple(others)
