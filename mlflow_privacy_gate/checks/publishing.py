"""What a check writes, built whole before anything is written: artifacts, run metrics, description and tags."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.checks.papers import REPORT_HTML, REPORT_MARKDOWN
from mlflow_privacy_gate.checks.stored_curves import CURVES_ARTIFACT
from mlflow_privacy_gate.registry._interface import Publication
from mlflow_privacy_gate.vocabulary import (
    ATTESTATION_ARTIFACT,
    ATTESTATION_TAG,
    METRIC_PREFIX,
    TAG_PREFIX,
)

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.papers import Papers
    from mlflow_privacy_gate.evidence.facts import Evidence
    from mlflow_privacy_gate.policy import Verdict


def publication(
    evidence: Evidence, verdict: Verdict, envelope: bytes, papers: Papers, *, curves: bytes, report_uri: str | None
) -> Publication:
    """Lay out everything one check writes; the attestation is the last tag but the verdict."""
    return Publication(
        artifacts={
            papers.card_path: papers.card.encode("utf-8"),
            REPORT_HTML: papers.report_html.encode("utf-8"),
            REPORT_MARKDOWN: papers.report_markdown.encode("utf-8"),
            CURVES_ARTIFACT: curves,
            ATTESTATION_ARTIFACT: envelope,
        },
        metrics=_metrics(evidence, verdict),
        description=papers.description,
        tags={**_tags(evidence, verdict, report_uri), ATTESTATION_TAG: base64.b64encode(envelope).decode("ascii")},
        verdict=str(verdict.outcome),
    )


def _metrics(evidence: Evidence, verdict: Verdict) -> Mapping[str, float]:
    known = {
        "attack_auc": verdict.attack_auc,
        "confidence_auc": verdict.confidence_auc,
        "margin": verdict.margin,
        "headroom": verdict.headroom,
        **{f"{attack.id}_auc": metric.value for attack in evidence.attacks if (metric := attack.metric("auc"))},
    }
    return {f"{METRIC_PREFIX}{name}": value for name, value in known.items() if value is not None}


def _tags(evidence: Evidence, verdict: Verdict, report_uri: str | None) -> Mapping[str, str]:
    shown = {
        "attack_auc": _shown(verdict.attack_auc, verdict.margin),
        "attack": verdict.attack,
        "confidence_auc": _shown(verdict.confidence_auc, verdict.margin),
        "margin": numbers.exact(verdict.margin),
        "headroom": numbers.headroom(verdict.margin, verdict.attack_auc) if verdict.attack_auc is not None else None,
        "ci95": _interval(evidence, verdict),
        "reason_codes": " ".join(verdict.reason_codes) or "none",
        "checked_at": _instant(evidence.tested_at),
        "expires_at": _instant(verdict.expires_at),
        "model_digest": f"sha256:{evidence.model_digest}",
        "report_uri": report_uri,
    }
    # A tag that cannot be filled says so: the value of an earlier check must not stand beside a new one.
    return {f"{TAG_PREFIX}{name}": value or "unknown" for name, value in shown.items()}


def _shown(value: float | None, margin: float) -> str | None:
    return None if value is None else numbers.plain(value, limit=margin)


def _interval(evidence: Evidence, verdict: Verdict) -> str | None:
    attack = evidence.attack(verdict.attack) if verdict.attack is not None else None
    auc = attack.auc if attack is not None else None
    return numbers.interval(auc.ci_low, auc.ci_high) if auc is not None else None


def _instant(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
