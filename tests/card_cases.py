"""Evidence, verdicts and views for the tests of cards, built whole and changed in one place each."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from mlflow_privacy_gate.cards.curves import roc_curve, score_histogram
from mlflow_privacy_gate.cards.particulars import (
    AttackCurves,
    AuthorsWords,
    Mitigation,
    Particulars,
    SignOff,
    WaiverInForce,
)
from mlflow_privacy_gate.cards.view import CardView, card_view
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    DataFacts,
    DifferentialPrivacyClaim,
    Evidence,
    Metric,
    NotRun,
    PolicyReference,
    SplitFacts,
    SubgroupFacts,
    ToolFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.policy import Verdict
from mlflow_privacy_gate.stats import roc_points
from mlflow_privacy_gate.vocabulary import ATTACKS, Finding, Membership, Outcome, ReasonCode, SplitOrigin

TESTED_AT = datetime(2026, 3, 1, 14, 5, tzinfo=timezone.utc)
EXPIRES_AT = TESTED_AT + timedelta(days=90)
GATING = ("confidence", "loss", "entropy", "modified_entropy")
PASSING_AUCS = {"confidence": 0.5312, "loss": 0.5312, "entropy": 0.5077, "modified_entropy": 0.5298}
FAILING_AUCS = {"confidence": 0.7814, "loss": 0.7814, "entropy": 0.6120, "modified_entropy": 0.7702}


def attack_facts(name: str, auc: float | None, **changes: Any) -> AttackFacts:
    """One attack with an AUC and TPRs at 1 % and 0.1 % FPR."""
    low = None if auc is None else round(auc - 0.02, 4)
    high = None if auc is None else round(min(auc + 0.02, 1.0), 4)
    metrics = (
        Metric("auc", auc, low, high, ci_method="delong"),
        Metric("tpr_at_fpr_0.01", 0.0142, 0.0075, 0.0233),
        Metric("tpr_at_fpr_0.001", None, note="not resolvable (smallest FPR 0.0017)"),
    )
    return AttackFacts(name, ATTACKS[name].formula, metrics, **changes)


def evidence(aucs: dict[str, float] | None = None, **changes: Any) -> Evidence:
    """Evidence of one registered model, passing unless told otherwise."""
    built = Evidence(
        model_uri="models:/credit/7",
        model_digest="3f" * 32,
        kind="classification",
        tested_at=TESTED_AT,
        expires_at=EXPIRES_AT,
        nonce="00" * 16,
        outcome="pass",
        reason_codes=(),
        attacks=tuple(attack_facts(name, auc) for name, auc in (aucs or PASSING_AUCS).items()),
        data=(
            DataFacts("members", 1210, 1204, "rowset-sha256/v1:" + "ab" * 32, 0, "s3://bank/train.parquet", "train"),
            DataFacts("non_members", 1203, 1200, "rowset-sha256/v1:" + "cd" * 32, 0, "s3://bank/holdout.parquet"),
        ),
        splits=SplitFacts(SplitOrigin.MANIFEST, Membership.REPRODUCED, as_logged=True, shared_rows=3),
        validity=ValidityFacts(
            blind_auc=0.5031, blind_ci_low=0.4812, tie_share=0.0012, smallest_detectable_auc=0.5293, unstable_rows=0
        ),
        card=CardClaims(personal_data=True),
        tool=ToolFacts("mlflow-privacy-gate", "0.1.0", "3.11.4", "3.17.2", {"scikit-learn": "1.9.1"}, "child-process"),
        policy=PolicyReference("privacy-gate.yaml", "9a" * 32),
        registered_model="credit",
        version="7",
        run_id="5d2c5f7a7c2e4f0d9f0c2a6e1b3d4c5f",
        gating=GATING,
        subgroups=SUBGROUPS,
        not_run=(
            NotRun("extraction", "not built into this tool"),
            NotRun("lira_offline", "the policy asks for no reference models"),
        ),
        limitations=("retraining variance is outside the intervals",),
    )
    return replace(built, **changes)


SUBGROUPS = (
    SubgroupFacts("class", "repaid", 900, 905, 0.5241, 0.4977, 0.5505, 0.4012),
    SubgroupFacts("class", "default", 304, 295, 0.5402, 0.4951, 0.5853, 0.4012),
    SubgroupFacts("region", "north", 1101, 1090, 0.5290, 0.5011, 0.5569, 0.4012),
    SubgroupFacts("region", "east", 100, 107, 0.5511, 0.4702, 0.6320, 0.4012),
    SubgroupFacts("region", "islands", 3, 3, None, note="too small"),
)


def verdict(outcome: Outcome = Outcome.PASS, **changes: Any) -> Verdict:
    """A verdict to go with :func:`evidence`; a failing one carries the finding that made it fail."""
    aucs = FAILING_AUCS if outcome is Outcome.FAIL else PASSING_AUCS
    attack = max(aucs, key=lambda name: aucs[name])
    auc = aucs[attack]
    findings: tuple[Finding, ...] = ()
    if outcome is Outcome.FAIL:
        findings = tuple(
            Finding(
                ReasonCode.PG201,
                f"The attack {name} tells training rows apart with AUC {value:.4f}, over the margin 0.55.",
                name,
                value,
                0.55,
            )
            for name, value in aucs.items()
        )
    built = Verdict(
        outcome, findings, attack, auc, aucs["confidence"], 0.55, "privacy-gate.yaml", 0.55 - auc, EXPIRES_AT
    )
    return replace(built, **changes)


def particulars(**changes: Any) -> Particulars:
    """Everything that can be said beside a test, said."""
    built = Particulars(
        signer="c1" * 32,
        attestation_sha256="e7" * 32,
        tests_so_far=2,
        report_uri="https://mlflow.example.org/#/experiments/1/runs/5d2c/artifacts/privacy_gate/report.html",
        verify_command="mlflow-privacy-gate verify models:/credit/7",
        author=AuthorsWords(
            "Consumer loans 2019-2024", "adult customers with one loan or more", "DPA-2024-17", "internal"
        ),
        evaluator="Model risk, team B",
        parameters=1840,
        accuracy_members=0.8911,
        accuracy_non_members=0.8702,
        sign_offs=(SignOff("privacy-officer key a4a4", TESTED_AT + timedelta(days=1), "b7" * 32),),
        curves=(curves("loss", 0.1),),
    )
    return replace(built, **changes)


MITIGATIONS = (
    Mitigation("at least 20 rows a leaf", 0.5411, -0.0104),
    Mitigation("answer with the label alone", 0.6123, 0.0, "attacks that need the label alone remain"),
)


def curves(attack: str, shift: float) -> AttackCurves:
    """Curves of drawn scores whose members lie ``shift`` standard deviations higher."""
    rng = np.random.default_rng(5)
    members, non_members = rng.normal(shift, 1.0, 1204), rng.normal(0.0, 1.0, 1200)
    return AttackCurves(attack, roc_curve(roc_points(members, non_members)), score_histogram(members, non_members))


def passing_view(**changes: Any) -> CardView:
    """The view of a model that passed; ``changes`` go to its evidence."""
    return card_view(evidence(**changes), verdict(), particulars())


def failing_view() -> CardView:
    """The view of a model that failed, with what was measured to help."""
    extra = particulars(mitigations=MITIGATIONS, sign_offs=(), curves=(curves("loss", 1.1), curves("entropy", 0.4)))
    return card_view(evidence(FAILING_AUCS, outcome="fail"), verdict(Outcome.FAIL), extra)


def dark_corners() -> dict[str, CardView]:
    """Views that are hard to lay out, by name: much text, many rows, many lines in one plot, next to nothing."""
    long = "A" * 120 + " <b>|`x`[y](javascript:1) " + "a_name_without_a_break_" * 12
    claim = CardClaims(True, differential_privacy=DifferentialPrivacyClaim(1234.56789, 1e-5, "person", "rdp"))
    groups = tuple(
        SubgroupFacts(
            f"column_{n // 12}_with_a_long_name",
            f"group {n} in the far north",
            60 + n,
            61 + n,
            0.51,
            0.45,
            0.58,
            0.4,
            tpr=0.01,
        )
        for n in range(40)
    )
    waiver = WaiverInForce(("PG201", "PG203"), "Rollback", "ann", "bea", EXPIRES_AT, "TICKET-9", "rate limits")
    words = AuthorsWords("word " * 1000, long, long, "internal")
    labels = AttackFacts("correctness", ATTACKS["correctness"].formula, (Metric("auc", 0.5412, 0.53, 0.5523),))
    broken = verdict(Outcome.INCONCLUSIVE, findings=(Finding(ReasonCode.PG101, "The splits differ."),))
    fail, aucs = verdict(Outcome.FAIL), {**FAILING_AUCS, "lira_offline": 0.9912, "rmia": 0.9988}
    tight = verdict(margin=0.5012, headroom=0.5012 - 0.5312)
    unsigned = particulars(sign_offs=(), mitigations=MITIGATIONS)
    return {
        "pass, signed off": passing_view(),
        "fail": failing_view(),
        "many subgroups": passing_view(subgroups=groups),
        "waived": card_view(evidence(FAILING_AUCS), fail, replace(unsigned, waivers=(waiver,))),
        "inconclusive": card_view(evidence(), broken, unsigned),
        "labels only": card_view(evidence(attacks=(labels,), kind="label_only"), broken, replace(unsigned, curves=())),
        "long names": card_view(
            evidence(FAILING_AUCS, registered_model=long), fail, replace(unsigned, author=words, evaluator=long)
        ),
        "six attacks and a claim": card_view(
            evidence(aucs, card=claim), fail, replace(unsigned, curves=tuple(curves(name, 0.5) for name in aucs))
        ),
        "margin beside chance": card_view(evidence(), tight, unsigned),
        "from the record": card_view(evidence(), verdict(), Particulars(from_record=True)),
    }
