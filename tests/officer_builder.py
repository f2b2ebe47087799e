"""Officers' statements and policies that hear them: for tests of the gate, the commands and the server."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from evidence_builder import fresh_signer

from mlflow_privacy_gate.evidence.officer_statements import OfficerStatement, sign_statement
from mlflow_privacy_gate.evidence.officers import Exemption, Scope, ScopeKind, SignOff, Waiver
from mlflow_privacy_gate.evidence.signing import Ed25519Signer
from mlflow_privacy_gate.policy import policy_key_yaml
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode

OFFICER = fresh_signer()
CHAMPION = Scope("credit", ScopeKind.ALIAS, "champion")
SHA256 = "a" * 64


def waiver(*, now: datetime | None = None, **changes: Any) -> Waiver:
    """Return a waiver of PG201 for alias champion of credit, in force from an hour before ``now`` for a week."""
    moment = now or datetime.now(timezone.utc)
    made = Waiver(
        evidence_sha256=SHA256,
        findings=(ReasonCode.PG201,),
        reason="rollback after an outage",
        reference="CHG-4711",
        compensating_controls="answers are rounded and rate-limited",
        requested_by="Ann Author",
        approved_by="Bea Officer",
        scope=CHAMPION,
        effective_on=moment - timedelta(hours=1),
        effective_until=moment + timedelta(days=7),
        stated_at=moment - timedelta(hours=1),
    )
    return replace(made, **changes)


def sign_off(*, now: datetime | None = None, **changes: Any) -> SignOff:
    """Return a sign-off for alias champion of credit."""
    moment = now or datetime.now(timezone.utc)
    made = SignOff(SHA256, CHAMPION, "Bea Officer", moment - timedelta(hours=1), "read on paper")
    return replace(made, **changes)


def exemption(model_digest: str, *, now: datetime | None = None, **changes: Any) -> Exemption:
    """Return an exemption of these bytes."""
    moment = now or datetime.now(timezone.utc)
    return replace(
        Exemption(model_digest, "machine sensors only", "Bea Officer", moment - timedelta(hours=1)), **changes
    )


def signed(statement: OfficerStatement, signer: Ed25519Signer = OFFICER) -> str:
    """Return the tag's value: the signed envelope, base64."""
    return sign_statement(statement, signer).tag_value


def sha256_of(tag_value: str) -> str:
    """Return the sha256 of the envelope in a tag, by which statements name it."""
    return hashlib.sha256(base64.b64decode(tag_value)).hexdigest()


def policy_text(tester: Ed25519Signer, officer: Ed25519Signer = OFFICER, more: str = "") -> str:
    """Return a policy that trusts one tester and one officer, with ``more`` as further lines."""
    keys = policy_key_yaml(tester.public_pem, "tester-1", KeyRole.TESTER)
    keys += policy_key_yaml(officer.public_pem, "dpo", KeyRole.PRIVACY_OFFICER)
    return f"version: 1\n{more}\nkeys:\n{keys}"
