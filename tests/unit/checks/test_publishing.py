from __future__ import annotations

import base64
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, PASSING_AUCS, fresh_signer, passing_evidence

from mlflow_privacy_gate.checks.papers import Papers
from mlflow_privacy_gate.checks.publishing import publication
from mlflow_privacy_gate.evidence.envelope import sign
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.policy import built_in_policy, judge
from mlflow_privacy_gate.registry._interface import Publication
from mlflow_privacy_gate.vocabulary import ATTESTATION_ARTIFACT, ATTESTATION_TAG, REGISTRY_TAG_LIMIT, VERDICT_TAG

PAPERS = Papers(
    card="# card", card_path="README.md", description="text", report_html="<html></html>", report_markdown="# report"
)


def published(evidence: Evidence) -> Publication:
    envelope = sign(statement_bytes(evidence), fresh_signer())
    verdict = judge(built_in_policy(), evidence, now=datetime.now(timezone.utc))
    return publication(
        evidence, verdict, envelope, PAPERS, curves=b"{}", report_uri="runs:/abc/privacy_gate/report.html"
    )


def aucs(value: float) -> dict[str, float]:
    return {**PASSING_AUCS, "confidence": value}


def test_every_tag_of_the_design_is_written_and_the_verdict_apart() -> None:
    written = published(passing_evidence("a" * 64))
    assert {name.removeprefix("privacy_gate.") for name in written.tags} == {
        *("attack_auc", "attack", "confidence_auc", "margin", "headroom", "ci95", "reason_codes"),
        *("checked_at", "expires_at", "model_digest", "report_uri", "attestation"),
    }
    assert VERDICT_TAG not in written.tags
    assert written.verdict == "pass"
    assert list(written.tags)[-1] == ATTESTATION_TAG


@pytest.mark.parametrize(
    ("auc", "shown", "headroom"),
    [
        (0.55, "0.5500", "+0.0000"),
        (0.55004, "0.55004", "-0.00004"),
        (0.5499996, "0.5499996", "+0.0000004"),
        (0.7310123, "0.7310", "-0.1810"),
    ],
)
def test_a_tag_never_hides_on_which_side_of_the_margin_a_number_lies(auc: float, shown: str, headroom: str) -> None:
    tags = published(passing_evidence("a" * 64, aucs=aucs(auc))).tags
    assert tags["privacy_gate.attack_auc"] == tags["privacy_gate.confidence_auc"] == shown
    assert tags["privacy_gate.headroom"] == headroom
    assert tags["privacy_gate.margin"] == "0.55"


def test_run_metrics_hold_the_numbers_whole() -> None:
    metrics = published(passing_evidence("a" * 64, aucs=aucs(0.55004))).metrics
    assert metrics["privacy_gate/attack_auc"] == metrics["privacy_gate/confidence_auc"] == 0.55004
    assert metrics["privacy_gate/margin"] == 0.55
    assert {f"privacy_gate/{name}_auc" for name in PASSING_AUCS} <= set(metrics)


def test_the_attestation_is_the_same_envelope_as_tag_and_as_artifact_and_fits_into_a_tag() -> None:
    written = published(passing_evidence("a" * 64))
    assert base64.b64decode(written.tags[ATTESTATION_TAG]) == written.artifacts[ATTESTATION_ARTIFACT]
    assert all(len(value) <= REGISTRY_TAG_LIMIT for value in written.tags.values())


def test_reason_codes_are_named_and_none_is_a_word_too() -> None:
    failing = published(passing_evidence("a" * 64, aucs=FAILING_AUCS))
    assert failing.verdict == "fail"
    assert "PG201" in failing.tags["privacy_gate.reason_codes"]
    assert published(passing_evidence("a" * 64)).tags["privacy_gate.reason_codes"] == "none"


def test_what_was_not_measured_is_said_unknown_so_that_no_earlier_number_stays() -> None:
    nothing: dict[str, Any] = {"aucs": {}, "kind": "classification"}
    written = published(passing_evidence("a" * 64, **nothing))
    assert written.verdict == "inconclusive"
    for name in ("attack_auc", "attack", "confidence_auc", "headroom", "ci95"):
        assert written.tags[f"privacy_gate.{name}"] == "unknown"
    assert "privacy_gate/attack_auc" not in written.metrics


def test_times_are_written_in_utc_with_their_zone() -> None:
    east = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=2)))
    tags = published(passing_evidence("a" * 64, tested_at=east, expires_at=east + timedelta(days=9000))).tags
    assert tags["privacy_gate.checked_at"] == "2026-03-01T21:30:00Z"
    assert tags["privacy_gate.expires_at"] == "2026-05-30T21:30:00Z"  # the policy's 90 days come first
