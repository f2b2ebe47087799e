"""Removal audits for tests: evidence built by hand, and audits of real scikit-learn models behind fake ports."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fakes import FakeRegistry, FakeSplits, splits
from sklearn.datasets import load_breast_cancer, load_digits

from mlflow_privacy_gate.evidence.facts import DataFacts, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.removal import (
    CalibratedFacts,
    EmaFacts,
    KsFacts,
    KsState,
    MetricFacts,
    RankFacts,
    RemovalEvidence,
    SetFacts,
)
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.signing import Signer
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.removal import AuditResult
from mlflow_privacy_gate.removal.auditing import Question, Tools, run_audit
from mlflow_privacy_gate.splits._interface import Split
from mlflow_privacy_gate.vocabulary import Isolation, RemovalAnswer

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
TARGET = "target"
QUERY_ROWS = 100
POLICY = parse_policy("version: 1\n", "test")


def removal_evidence(**changes: Any) -> RemovalEvidence:
    """Evidence of a query that is called not memorised; ``changes`` replace whole fields."""
    evidence = RemovalEvidence(
        model_uri="models:/credit/8",
        model_digest="a" * 64,
        audited_at=NOW,
        nonce="0123456789abcdef",
        answer=RemovalAnswer.NOT_MEMORISED,
        reasons=("EMA: not memorised.", "Calibrated: not memorised."),
        ema=EmaFacts(
            RemovalAnswer.NOT_MEMORISED,
            "7 of 100 query rows look unseen.",
            alpha=0.1,
            metrics=(MetricFacts("correctness", 0.52, used=True), MetricFacts("confidence", 0.5, used=False)),
            rows=100,
            zeros=7,
            rho=0.0069,
            fewest_zeros=3,
            control=SetFacts(184, 0, 0.0),
            held_out=SetFacts(143, 10, 0.98),
        ),
        ks=KsFacts(KsState.FINITE, 1.4667, 0.22, 0.15),
        calibrated=CalibratedFacts(
            RemovalAnswer.NOT_MEMORISED,
            "The query rows do not score higher than held-out rows.",
            level=0.05,
            decided_by="calibrated",
            tests=(
                RankFacts("calibrated", "calibrated/v1", "query", "held_out", 0.393, 0.51, 0.435, 0.586, "DeLong"),
                RankFacts("calibrated", "calibrated/v1", "control", "query", 1.9e-16, 0.792, 0.73, 0.85, "DeLong"),
            ),
            references=16,
            references_origin="clone",
            seed=0,
        ),
        data=tuple(
            DataFacts(role, 100, 100, f"rowset-sha256/v1:{digit * 64}")
            for role, digit in zip(("query", "calibration_train", "calibration_test", "control"), "bcde", strict=True)
        ),
        record="the model's own training rows, as found by manifest",
        calibration_model="refitted",
        tool=ToolFacts("mlflow-privacy-gate", "0.1.0", "3.11", mlflow="3.17"),
        policy=PolicyReference("privacy-gate.yaml", "d" * 64),
        query_among_members=0,
        registered_model="credit",
        version="8",
        run_id="run-8",
        limitations=("No proof.",),
    )
    return replace(evidence, **changes)


@dataclass(frozen=True)
class ErasureCase:
    """One data set in the parts of an erasure request: the query was trained on first, ``kept`` are the other training rows."""

    query: pd.DataFrame
    kept: pd.DataFrame
    calibration_train: pd.DataFrame
    calibration_test: pd.DataFrame

    @property
    def before(self) -> pd.DataFrame:
        """The training rows before the request."""
        return pd.concat([self.query, self.kept])


def erasure_case(name: str, seed: int = 0) -> ErasureCase:
    """Cut scikit-learn's ``breast_cancer`` or ``digits``: half of the rows for training, a hundred of them to be forgotten."""
    load = {"breast_cancer": load_breast_cancer, "digits": load_digits}[name]
    frame = load(as_frame=True).frame
    order = np.random.default_rng(seed).permutation(len(frame))
    training, rest = frame.iloc[order[: len(frame) // 2]], frame.iloc[order[len(frame) // 2 :]]
    half = len(rest) // 2
    return ErasureCase(training[:QUERY_ROWS], training[QUERY_ROWS:], rest[:half], rest[half:])


def audited(
    folder: Path,
    estimator: Any,
    case: ErasureCase,
    *,
    trained_on: pd.DataFrame,
    logged: pd.DataFrame | None,
    registry: FakeRegistry | None = None,
    signer: Signer | None = None,
    **question: Any,
) -> AuditResult:
    """Train the estimator and audit it; ``logged`` are the training rows that its run records (None: none)."""
    estimator.fit(trained_on.drop(columns=TARGET), trained_on[TARGET])
    (folder / "model.bin").write_bytes(b"weights")
    found = None if logged is None else splits(logged, case.calibration_test, target=TARGET)
    tools = Tools(
        registry=registry or FakeRegistry(folder),
        open_model=lambda _: nullcontext(SklearnModel(estimator)),
        isolation=Isolation.IN_PROCESS,
        load_rows=lambda given, role: in_memory(given),
        record_sources=lambda _: (FakeSplits(found),),
        signer=signer,
        clock=lambda: NOW,
    )
    asked = Question(
        **{
            "query": case.query,
            "calibration_train": case.calibration_train,
            "calibration_test": case.calibration_test,
            **question,
        }
    )
    return run_audit("models:/credit/1", asked, POLICY, tools)


def in_memory(frame: Any) -> Split:
    """Rows as handed in."""
    return Split(frame, rowset_digest(frame), "memory")
