"""Write the envelopes of schema version 1 that every later version must verify; run once, the files are then kept as they are.

The keys are made from fixed words, so that anybody can make these files again: they must never be trusted by a policy.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    DataFacts,
    DifferentialPrivacyClaim,
    Evidence,
    Metric,
    NotRun,
    PolicyReference,
    PrivacyBudgetFacts,
    RecomputedEpsilon,
    SplitFacts,
    SubgroupFacts,
    ToolFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.evidence.keys import public_key_id, public_pem
from mlflow_privacy_gate.evidence.signing import Ed25519Signer, Signer
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.vocabulary import Membership, SplitOrigin

TESTED_AT = datetime(2026, 1, 15, 9, 30, 0, 250_000, tzinfo=timezone.utc)
SEED = hashlib.sha256(b"mlflow-privacy-gate: a key for tests, known to everybody").digest()

FULL = Evidence(
    model_uri="models:/credit/7",
    model_digest="5b" * 32,
    kind="classification",
    tested_at=TESTED_AT,
    expires_at=TESTED_AT + timedelta(days=90),
    nonce="00112233445566778899aabbccddeeff",
    outcome="fail",
    reason_codes=("PG201", "PG106"),
    attacks=(
        AttackFacts(
            id="confidence",
            formula="confidence/v1",
            metrics=(
                Metric("auc", 0.6123456789012345, 0.59, 0.634, 0.631, "delong"),
                Metric("tpr_at_fpr_0.001", None, note="not resolvable: fewer than one non-member in a thousand"),
            ),
            rows_left_out=3,
            notes=("clipped to [1e-6, 1 - 1e-6]",),
        ),
        AttackFacts(
            id="lira_offline",
            formula="lira_offline/v1",
            metrics=(Metric("auc", 0.64, 0.62, 0.66),),
            seed=2**80 + 1,
            references=16,
            references_origin="clone",
        ),
    ),
    data=(
        DataFacts(
            "members", 2000, 1990, "rowset-sha256/v1:" + "1a" * 32, 3, "s3://data/träning.parquet", "train", "a1b2c3d4"
        ),
        DataFacts("non_members", 1900, 1890, "rowset-sha256/v1:" + "2b" * 32),
    ),
    splits=SplitFacts(
        origin=SplitOrigin.MANIFEST,
        membership=Membership.REPRODUCED,
        manifest_sha256="3c" * 32,
        as_logged=True,
        as_logged_note="both digests equal the manifest's",
        group="household",
        group_overlap=0,
        shared_rows=7,
        shared_rows_expected=5.25,
        used_for_tuning=False,
    ),
    validity=ValidityFacts(
        blind_auc=0.503,
        blind_ci_low=0.485,
        blind_columns=("date", "site"),
        tie_share=0.41,
        positive_control_auc=0.97,
        positive_control_ci_low=0.96,
        unstable_rows=0,
        smallest_detectable_auc=0.526,
        holds_training_rows="k-nearest neighbours keep their training rows",
    ),
    card=CardClaims(
        personal_data=True,
        data_categories=("health", "children"),
        max_attack_auc=0.52,
        differential_privacy=DifferentialPrivacyClaim(1.0, 1e-5, "person", "rdp", 0.01, 1.1, 1000),
    ),
    tool=ToolFacts("mlflow-privacy-gate", "0.1.0", "3.11.9", "3.17.2", {"scikit-learn": "1.7.2"}, "child-process"),
    policy=PolicyReference("privacy-gate.yaml", "4d" * 32),
    registered_model="credit",
    version="7",
    run_id="0123456789abcdef0123456789abcdef",
    gating=("confidence", "lira_offline"),
    subgroups=(
        SubgroupFacts("site", "north", 400, 380, 0.55, 0.51, 0.59, 0.04),
        SubgroupFacts("site", "south", 20, 30, None, note="too small"),
    ),
    not_run=(NotRun("extraction", "not part of this test"),),
    limitations=("retraining variance is outside the intervals",),
)
# What a first version leaves out: everything that may be unknown.
SPARSE = replace(
    FULL,
    outcome="pass",
    reason_codes=(),
    attacks=(AttackFacts("confidence", "confidence/v1", (Metric("auc", 0.5),)),),
    data=tuple(DataFacts(side.role, side.rows, side.rows_used, side.digest) for side in FULL.data),
    splits=SplitFacts(SplitOrigin.CALLER),
    validity=ValidityFacts(),
    card=CardClaims(),
    tool=ToolFacts("mlflow-privacy-gate", "0.1.0", "3.10.0"),
    registered_model=None,
    version=None,
    run_id=None,
    subgroups=(),
)


# Since claims of differential privacy are held against the attacks.
CLAIMED = replace(
    FULL,
    reason_codes=("PG201", "PG205", "PG106"),
    privacy_budget=PrivacyBudgetFacts(
        recomputed=(
            RecomputedEpsilon("rdp", 2.1013652716431934, "sampled-gaussian-rdp", "v1"),
            RecomputedEpsilon("prv", None, "dp-accounting", "0.6.0"),
        ),
        epsilon_lower_bound=1.25,
        level=0.95,
        attack="confidence",
        tail="out",
        rows_members=500,
        rows_non_members=499,
        seed=0,
    ),
)


class _EcdsaSigner:
    def __init__(self, private_key: ec.EllipticCurvePrivateKey) -> None:
        self._private_key = private_key
        self.public_pem = public_pem(private_key.public_key())
        self.key_id = public_key_id(self.public_pem)

    def sign(self, message: bytes) -> bytes:
        return self._private_key.sign(message, ec.ECDSA(hashes.SHA256()))


def main(folder: Path) -> None:
    """Write the envelopes, signed by an Ed25519 and a P-256 key, and the public keys."""
    ed25519 = Ed25519Signer(Ed25519PrivateKey.from_private_bytes(SEED))
    ecdsa = _EcdsaSigner(ec.derive_private_key(int.from_bytes(SEED, "big") >> 1, ec.SECP256R1()))
    folder.mkdir(exist_ok=True)
    signers: dict[str, Signer] = {"full": ed25519, "sparse": ecdsa, "claimed": ed25519}
    for name, evidence in (("full", FULL), ("sparse", SPARSE), ("claimed", CLAIMED)):
        (folder / f"{name}.dsse.json").write_bytes(sign(statement_bytes(evidence), signers[name]))
    (folder / "unsigned.dsse.json").write_bytes(sign(statement_bytes(FULL), None))
    (folder / "full.pem").write_text(ed25519.public_pem)
    (folder / "sparse.pem").write_text(ecdsa.public_pem)


if __name__ == "__main__":
    main(Path(__file__).parent / "v1")
