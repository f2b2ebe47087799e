"""When a removal statement is believed: signed by a trusted tester, read strictly, about these bytes, and not from the future.

It never expires: it says what was measured of one model's bytes on one day, and opens no gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.keys import Trusted
from mlflow_privacy_gate.evidence.removal import RemovalEvidence
from mlflow_privacy_gate.evidence.removal_statement import read_removal_statement
from mlflow_privacy_gate.evidence.verification import CLOCK_SKEW, verify_signatures
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode


@dataclass(frozen=True)
class VerifiedRemoval:
    """A removal audit that is believed, with the sha256 (hex) of its envelope and the policy's own id of the key that signed it."""

    evidence: RemovalEvidence
    envelope_sha256: str
    key_id: str


def verify_removal(
    envelope: bytes,
    *,
    keys: Sequence[Trusted],
    model_digest: str,
    now: datetime,
    query_digest: str | None = None,
) -> VerifiedRemoval:
    """Return the audit in ``envelope`` if it may be believed at ``now``; EvidenceRejected with the first step's code if not.

    ``keys`` are all of the policy's keys; an unsigned statement is never believed. ``model_digest`` is of the model's bytes as they are
    now. ``query_digest``: the row-set digest of the rows in question, None where they are not at hand. PG002 and PG003 for form and
    signature, PG004 for other bytes or other rows, PG005 for an audit after ``now``, PG006 for a missing field.
    """
    opened, signer = verify_signatures(envelope, keys=keys, allow_unsigned=False, role=KeyRole.TESTER, now=now)
    assert signer is not None  # unsigned was not allowed
    evidence = read_removal_statement(opened.payload)
    _check_subject(evidence, model_digest, query_digest)
    if evidence.audited_at > now + CLOCK_SKEW:
        raise EvidenceRejected(
            f"audited at {evidence.audited_at}, which is after now ({now})",
            code=ReasonCode.PG005,
            remedy="compare the clocks of the two machines, and verify again once that time has come",
        )
    return VerifiedRemoval(evidence, opened.sha256, signer.id)


def _check_subject(evidence: RemovalEvidence, model_digest: str, query_digest: str | None) -> None:
    if evidence.model_digest != model_digest:
        raise EvidenceRejected(
            f"the audit is of the bytes {evidence.model_digest[:16]}…, the stored model is {model_digest[:16]}…",
            code=ReasonCode.PG004,
            remedy="name the version that was audited; where it is this one, find out why its bytes changed and audit it again",
        )
    query = evidence.side("query")
    assert query is not None  # no evidence is made without one
    if query_digest is not None and query.digest != query_digest:
        raise EvidenceRejected(
            f"the audit is of the rows {query.digest}, those handed in are {query_digest}",
            code=ReasonCode.PG004,
            remedy="hand in the very rows that were audited, or audit the model on these (`mlflow-privacy-gate audit-removal`)",
        )
