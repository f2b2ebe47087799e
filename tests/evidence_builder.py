"""Valid passing evidence for any model digest, signed with any key: for tests of what happens after the check."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    DataFacts,
    Evidence,
    Metric,
    NotRun,
    PolicyReference,
    SplitFacts,
    ToolFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.evidence.signing import Ed25519Signer, Signer
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.vocabulary import ATTACKS, NOT_RUN_EVER, SplitOrigin

PASSING_AUCS: Mapping[str, float] = {"confidence": 0.512, "loss": 0.512, "entropy": 0.508, "modified_entropy": 0.51}
FAILING_AUCS: Mapping[str, float] = {"confidence": 0.731, "loss": 0.734, "entropy": 0.702, "modified_entropy": 0.729}


def passing_evidence(
    model_digest: str, *, aucs: Mapping[str, float] = PASSING_AUCS, rows: int = 2000, **changes: Any
) -> Evidence:
    """Return evidence that the built-in policy passes (with a trusted key); ``changes`` replace whole fields."""
    now = datetime.now(timezone.utc)
    evidence = Evidence(
        model_uri="models:/credit/1",
        model_digest=model_digest,
        kind="classification",
        tested_at=now - timedelta(minutes=1),
        expires_at=now + timedelta(days=90),
        nonce="0123456789abcdef",
        outcome="pass",
        reason_codes=(),
        attacks=tuple(_attack(name, auc, rows) for name, auc in aucs.items()),
        data=tuple(
            DataFacts(role=role, rows=rows, rows_used=rows, digest=f"rowset-sha256/v1:{digit * 64}")
            for role, digit in (("members", "a"), ("non_members", "b"))
        ),
        splits=SplitFacts(origin=SplitOrigin.MANIFEST, manifest_sha256="c" * 64, as_logged=True),
        validity=ValidityFacts(blind_auc=0.502, blind_ci_low=0.49, tie_share=0.0, smallest_detectable_auc=0.53),
        card=CardClaims(),
        tool=ToolFacts(name="mlflow-privacy-gate", version="0.1.0", python="3.11"),
        policy=PolicyReference(name="privacy-gate.yaml", sha256="d" * 64),
        registered_model="credit",
        version="1",
        gating=tuple(aucs),
        not_run=tuple(NotRun(name, "not part of this test") for name in NOT_RUN_EVER),
        limitations=("retraining variance is outside the intervals",),
    )
    return replace(evidence, **changes)


def _attack(name: str, auc: float, rows: int) -> AttackFacts:
    half_width = 1.96 * (1 / (6 * rows)) ** 0.5
    metrics = (
        Metric("auc", auc, auc - half_width, auc + half_width, auc + half_width * 1.645 / 1.96, "delong"),
        Metric("tpr_at_fpr_0.01", 0.01, 0.005, 0.02, 0.02, "clopper-pearson"),
        Metric("tpr_at_fpr_0.001", 0.001, 0.0, 0.005, 0.005, "clopper-pearson"),
    )
    return AttackFacts(id=name, formula=ATTACKS[name].formula, metrics=metrics)


def fresh_signer() -> Ed25519Signer:
    """Return a signer with a key of its own, never seen before."""
    return Ed25519Signer(Ed25519PrivateKey.generate())


def attestation(evidence: Evidence, signer: Signer | None) -> str:
    """Return the registry tag's value: the envelope over ``evidence``, base64; unsigned without a signer."""
    return base64.b64encode(sign(statement_bytes(evidence), signer)).decode("ascii")


def write_policy(path: Path, signer: Ed25519Signer | None, text: str = "") -> Path:
    """Write a policy that trusts the signer as tester (if given), with ``text`` as further lines."""
    lines = ["version: 1", text]
    if signer is not None:
        pem = "\n".join(f"      {line}" for line in signer.public_pem.strip().splitlines())
        lines.append(f"keys:\n  - id: tester-1\n    role: tester\n    public_key: |\n{pem}\n")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
