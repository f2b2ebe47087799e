"""Write the officers' statements of version 1 that every later version must verify; run once, the files are then kept as they are.

The key is made from fixed words, so that anybody can make these files again: it must never be trusted by a policy.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mlflow_privacy_gate.evidence.officer_statements import OfficerStatement, sign_statement
from mlflow_privacy_gate.evidence.officers import Exemption, Scope, ScopeKind, SignOff, Waiver
from mlflow_privacy_gate.evidence.signing import Ed25519Signer
from mlflow_privacy_gate.vocabulary import ReasonCode

STATED_AT = datetime(2026, 1, 16, 8, 0, tzinfo=timezone.utc)
SEED = hashlib.sha256(b"mlflow-privacy-gate: an officer's key for tests, known to everybody").digest()
# The envelope full.dsse.json, and the model it is about.
EVIDENCE = "ddd35ab3356a337d4bb19c0d7e0c5e4dbd49db530d7f2fedbb954c4905cac136"
MODEL = "5b" * 32

STATEMENTS: dict[str, OfficerStatement] = {
    "waiver": Waiver(
        evidence_sha256=EVIDENCE,
        findings=(ReasonCode.PG201, ReasonCode.PG106),
        reason="rollback nach Störung",
        reference="CHG-4711",
        compensating_controls="answers are rounded",
        requested_by="Ann Author",
        approved_by="Bea Officer",
        scope=Scope("credit", ScopeKind.ALIAS, "champion"),
        effective_on=STATED_AT,
        effective_until=STATED_AT + timedelta(days=30),
        stated_at=STATED_AT,
    ),
    "signoff": SignOff(EVIDENCE, Scope("credit", ScopeKind.STAGE, "Production"), "Bea Officer", STATED_AT, "on paper"),
    "exemption": Exemption(MODEL, "machine sensors only", "Bea Officer", STATED_AT),
}


def main(folder: Path) -> None:
    """Write the three envelopes and the public key."""
    officer = Ed25519Signer(Ed25519PrivateKey.from_private_bytes(SEED))
    for name, statement in STATEMENTS.items():
        (folder / f"{name}.dsse.json").write_bytes(sign_statement(statement, officer).envelope)
    (folder / "officer.pem").write_text(officer.public_pem)


if __name__ == "__main__":
    main(Path(__file__).parent / "v1")
