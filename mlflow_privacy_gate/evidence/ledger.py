"""The ledger: one chain of rows, each holding the sha256 of the row before, so that none can be changed, taken out or moved unseen.

A row's sha256 is over its canonical JSON: UTF-8, keys sorted, no spaces; the fields of :class:`Entry` as all facts are written
(:mod:`mlflow_privacy_gate.evidence.wire`), with ``sequence``, ``previousSha256`` and ``schemaVersion``. The envelope itself is not among
them: its own sha256 is. Each envelope stands once, in the first row that names it. A row holds no personal data but the account that asked.

The head (the last sequence and its sha256) is kept beside the rows, so that rows cut off at the end are missed too. Whoever may write the
whole store may write the whole chain anew: note the head's sha256 elsewhere, where that matters.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.wire import decode, encode
from mlflow_privacy_gate.vocabulary import StrEnum

SCHEMA_VERSION = "1"
BEFORE_THE_FIRST = "0" * 64


class EntryKind(StrEnum):
    """What a row records."""

    ATTESTATION = "attestation"
    WAIVER = "waiver"
    SIGN_OFF = "sign-off"
    EXEMPTION = "exemption"
    DECISION = "decision"


class Result(StrEnum):
    """What came of it: ``recorded`` for statements, the others for decisions.

    ``would-refuse`` is mode ``warn``, ``not-judged`` mode ``off``; both were allowed. ``not-written``: allowed, and then the
    registry did not write it.
    """

    RECORDED = "recorded"
    ALLOWED = "allowed"
    REFUSED = "refused"
    WAIVED = "waived"
    WOULD_REFUSE = "would-refuse"
    NOT_JUDGED = "not-judged"
    NOT_WRITTEN = "not-written"


@dataclass(frozen=True)
class Entry:
    """What one row says.

    ``at`` is UTC. ``actor`` is the account that asked. ``target`` is the promotion in words (``alias champion``). ``split_digests`` are
    those of members and non-members. ``model_digest``, ``policy_sha256`` and ``envelope_sha256`` are 64 hex digits.
    """

    at: datetime
    kind: EntryKind
    actor: str
    workspace: str
    name: str
    result: Result
    version: str | None = None
    model_digest: str | None = None
    split_digests: tuple[str, ...] = ()
    target: str | None = None
    mode: str | None = None
    policy_sha256: str | None = None
    envelope_sha256: str | None = None
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Head:
    """The end of the chain: the last row's sequence (0: there is none) and its sha256."""

    sequence: int = 0
    sha256: str = BEFORE_THE_FIRST


@dataclass(frozen=True)
class Row:
    """A row as it is stored; ``envelope`` (the envelope's JSON text) only in the first row that names its sha256."""

    sequence: int
    previous_sha256: str
    entry: Entry
    sha256: str
    envelope: str | None = None

    @property
    def head(self) -> Head:
        """The head of a chain that ends with this row."""
        return Head(self.sequence, self.sha256)


@dataclass(frozen=True)
class BrokenAt:
    """The first row at which a chain does not hold, and what is wrong there."""

    sequence: int
    problem: str


@dataclass(frozen=True)
class Chain:
    """What came of walking a chain: the rows seen, its end, and the first fault (None: the chain holds)."""

    rows: int
    head: Head
    broken: BrokenAt | None


@dataclass(frozen=True)
class KnownTests:
    """Every test of one model's bytes that the ledger holds: the envelopes (JSON bytes), in the order in which they became known."""

    envelopes: tuple[bytes, ...] = ()

    @property
    def sha256s(self) -> tuple[str, ...]:
        """The sha256 (hex) of each envelope, by which statements name it."""
        return tuple(hashlib.sha256(envelope).hexdigest() for envelope in self.envelopes)

    @property
    def count(self) -> int:
        """How often these bytes were tested, as far as the ledger knows."""
        return len(self.envelopes)

    def count_with(self, envelope_sha256: str) -> int:
        """How often these bytes were tested, the test in the envelope of that sha256 (hex) included, known to the ledger or not."""
        return len({hashlib.sha256(envelope).hexdigest() for envelope in self.envelopes} | {envelope_sha256})


class UnreadableRow(ValueError):
    """A stored row that can be none that this project wrote; raised while rows are read."""

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(f"row {sequence} of the ledger cannot be read: {problem}")
        self.sequence = sequence
        self.problem = problem


def next_row(head: Head, entry: Entry, envelope: str | None = None) -> Row:
    """Return the row that follows ``head``."""
    sequence = head.sequence + 1
    return Row(sequence, head.sha256, entry, row_sha256(sequence, head.sha256, entry), envelope)


def row_sha256(sequence: int, previous_sha256: str, entry: Entry) -> str:
    """Return the sha256 (hex) of a row's canonical JSON."""
    return hashlib.sha256(_canonical(_fields(sequence, previous_sha256, entry))).hexdigest()


def verify_chain(rows: Iterable[Row], head: Head) -> Chain:
    """Walk a chain from its first row and find the first that was changed, is missing or was moved; ``head`` is the stored end."""
    last, seen, envelopes = Head(), 0, set[str]()
    try:
        for row in rows:
            problem = fault_of(row, last, envelopes)
            if problem is not None:
                return Chain(seen, last, BrokenAt(min(row.sequence, last.sequence + 1), problem))
            last, seen = row.head, seen + 1
    except UnreadableRow as exc:
        return Chain(seen, last, BrokenAt(exc.sequence, f"it cannot be read: {exc.problem}"))
    if last != head:
        missing = f"the last row is {last.sequence}, and the ledger ended with row {head.sequence} (sha256 {head.sha256[:16]})"
        return Chain(seen, last, BrokenAt(min(last.sequence, head.sequence) + 1, missing))
    return Chain(seen, last, None)


def fault_of(row: Row, last: Head, envelopes: set[str]) -> str | None:
    """Say what is wrong with a row after ``last`` (None: nothing); ``envelopes`` collects the sha256s whose envelopes were seen."""
    if row.sequence != last.sequence + 1:
        return f"row {last.sequence + 1} was expected, and row {row.sequence} follows"
    if row.previous_sha256 != last.sha256:
        return "it does not follow from the row before (previous sha256 differs)"
    changed = change_in(row)
    if changed is not None:
        return changed
    named = row.entry.envelope_sha256
    if row.envelope is not None and named is not None:
        envelopes.add(named)
    elif named is not None and named not in envelopes:
        return "the envelope that it names is missing"
    return None


def change_in(row: Row) -> str | None:
    """Say how a row by itself was changed (None: it was not); whether it stands where it was written is for the chain."""
    if row.sha256 != row_sha256(row.sequence, row.previous_sha256, row.entry):
        return "its content was changed (its sha256 does not fit)"
    if (
        row.envelope is not None
        and hashlib.sha256(row.envelope.encode("utf-8")).hexdigest() != row.entry.envelope_sha256
    ):
        return "its envelope was changed (its sha256 does not fit)"
    return None


def to_line(row: Row) -> bytes:
    """Return a row as one line of JSON, with its sha256 and, where it has one, its envelope."""
    fields = {**_fields(row.sequence, row.previous_sha256, row.entry), "sha256": row.sha256}
    if row.envelope is not None:
        fields["envelope"] = base64.b64encode(row.envelope.encode("utf-8")).decode("ascii")
    return _canonical(fields) + b"\n"


def from_line(line: bytes) -> Row:
    """Read a row from its line; ValueError says what does not fit."""
    try:
        fields = json.loads(line.decode("utf-8"))
        if not isinstance(fields, dict):
            raise ValueError("expected a JSON object")
        envelope = fields.pop("envelope", None)
        sha256, previous = str(fields.pop("sha256")), str(fields.pop("previousSha256"))
        sequence, schema = int(fields.pop("sequence")), fields.pop("schemaVersion")
        if schema != SCHEMA_VERSION:
            raise ValueError(f"written by another version of the gate (schema {schema!r})")
        entry = decode(Entry, fields, "row")
        text = None if envelope is None else base64.b64decode(envelope, validate=True).decode("utf-8")
    except (KeyError, TypeError) as exc:
        raise ValueError(f"not a row of a ledger: {exc!r}") from exc
    except EvidenceRejected as exc:
        raise ValueError(exc.message) from exc
    return Row(sequence, previous, entry, sha256, text)


def shown(row: Row) -> dict[str, Any]:
    """Lay a row out for people and programs; a decision also under the field names of SLSA's Verification Summary Attestation v1."""
    entry = row.entry
    fields: dict[str, Any] = {"sequence": row.sequence, "sha256": row.sha256, **encode(entry)}
    if entry.kind is EntryKind.DECISION:
        fields["verificationSummary"] = _verification_summary(entry)
    return fields


def _verification_summary(entry: Entry) -> Mapping[str, Any]:
    """Source: https://slsa.dev/spec/v1.0/verification_summary"""
    passed = entry.result in (Result.ALLOWED, Result.WAIVED)
    evidence = [{"digest": {"sha256": entry.envelope_sha256}}] if entry.envelope_sha256 else []
    return {
        "verifier": {"id": "https://github.com/mlflow-privacy-gate/mlflow-privacy-gate"},
        "timeVerified": encode(entry.at),
        "resourceUri": f"models:/{entry.name}/{entry.version}" if entry.version else f"models:/{entry.name}",
        "policy": {"digest": {"sha256": entry.policy_sha256}} if entry.policy_sha256 else {},
        "inputAttestations": evidence,
        "verificationResult": "PASSED" if passed else "FAILED",
        "verifiedLevels": ["PRIVACY_GATE_WAIVED" if entry.result is Result.WAIVED else "PRIVACY_GATE"]
        if passed
        else [],
    }


def _fields(sequence: int, previous_sha256: str, entry: Entry) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "sequence": sequence,
        "previousSha256": previous_sha256,
        **encode(entry),
    }


def _canonical(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")
