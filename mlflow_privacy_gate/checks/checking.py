"""One check, from a model URI to what stands in the registry: pull, attack, judge, publish."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.card import read_claims, write_card
from mlflow_privacy_gate.cards.curves import roc_curve, score_histogram
from mlflow_privacy_gate.cards.description import description
from mlflow_privacy_gate.cards.particulars import AttackCurves, Particulars
from mlflow_privacy_gate.cards.report import html_report, markdown_report
from mlflow_privacy_gate.cards.view import card_view
from mlflow_privacy_gate.checks.measuring import Extent, Measurement, Progress, measure
from mlflow_privacy_gate.checks.publishing import Papers, publication
from mlflow_privacy_gate.checks.records import check_path, row_records, write_records
from mlflow_privacy_gate.checks.result import CheckResult
from mlflow_privacy_gate.errors import CouldNotJudge, UsageError
from mlflow_privacy_gate.evidence.envelope import open_envelope, sign
from mlflow_privacy_gate.evidence.facts import CardClaims, Evidence, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.policy import Verdict, judge, margin_in_force
from mlflow_privacy_gate.splits.catalogue import find_splits
from mlflow_privacy_gate.stats import roc_points
from mlflow_privacy_gate.vocabulary import ARTIFACT_FOLDER, CARD_PATHS

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry
    from mlflow_privacy_gate.splits._interface import SplitSource

TOOL = "mlflow-privacy-gate"


@dataclass(frozen=True)
class Tools:
    """What a check works with; entry points build the real ones.

    ``load_model`` opens a model folder. ``split_sources`` gives the places to look for the splits, in order, once the model is open.
    ``signer`` None: the evidence stays unsigned. ``clock`` gives timezone-aware UTC.
    """

    registry: Registry
    load_model: Callable[[Path], LoadedModel]
    split_sources: Callable[[LoadedModel], Sequence[SplitSource]]
    signer: Signer | None
    clock: Callable[[], datetime]
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class FoundCard:
    """The author's card as found before the test: its text (None where there is none) and the artifact path it belongs at."""

    text: str | None
    path: str


@dataclass(frozen=True)
class Wishes:
    """What the caller asks of one check beside the policy.

    ``card``: the card's text, instead of the one that is found. ``dry_run``: write nothing anywhere. ``subgroup_columns``: look at these
    beside the classes. ``stop_early``: train no reference models once the verdict can no longer change. ``records``: a local parquet file
    for how exposed each row is.
    """

    card: str | None = None
    dry_run: bool = False
    subgroup_columns: tuple[str, ...] = ()
    stop_early: bool = False
    records: Path | None = None


def run_check(model_uri: str, policy: Policy, tools: Tools, wishes: Wishes = Wishes()) -> CheckResult:
    """Test one model and record the result.

    Everything is computed before the first write; then the earlier verdict is taken back, and the new one is written last, so that a
    stop at any moment leaves no pass behind. CouldNotJudge and its kin when there is nothing to judge, and then nothing is written.
    """
    if wishes.records is not None:
        check_path(wishes.records)
    model = tools.registry.resolve(model_uri)
    found = _card(model, tools, wishes.card)
    claims = read_claims(found.text) if found.text else CardClaims()
    extent = Extent(wishes.subgroup_columns, margin_in_force(policy, claims).value if wishes.stop_early else None)
    with tools.registry.open_model(model) as folder:
        digest = model_digest(folder)
        loaded = tools.load_model(folder)
        splits = find_splits(tools.split_sources(loaded), model)
        measured = measure(loaded, splits, policy, extent=extent, progress=tools.progress)
        if model_digest(folder) != digest:
            raise CouldNotJudge(f"{model.uri}: the model's files changed while they were tested; check it again")
    now = tools.clock()
    evidence, verdict = _judged(_evidence(model, digest, claims, measured, policy, now), policy, now)
    envelope = sign(statement_bytes(evidence), tools.signer)
    papers, report_uri = _papers(model, found, evidence, verdict, envelope, measured, policy, tools)
    if wishes.records is not None:
        write_records(row_records(measured.pool, measured.scored), wishes.records)
    if not wishes.dry_run:
        tools.progress("recording the result")
        tools.registry.withdraw(model)
        tools.registry.publish(model, publication(evidence, verdict, envelope, papers, report_uri=report_uri))
    return CheckResult(
        model=model,
        verdict=verdict.outcome,
        attack=verdict.attack,
        attack_auc=verdict.attack_auc,
        confidence_auc=verdict.confidence_auc,
        margin=verdict.margin,
        headroom=verdict.headroom,
        findings=verdict.findings,
        evidence=evidence,
        signed=tools.signer is not None,
        recorded=not wishes.dry_run,
        card=papers.card,
        report=papers.report_html,
        envelope=envelope,
    )


def _card(model: ResolvedModel, tools: Tools, given: str | None) -> FoundCard:
    """Find the card: the caller's, the run's ``README.md`` or ``model_card.md``, the version's description, or none."""
    if given is not None:
        return FoundCard(given, CARD_PATHS[0])
    for path in CARD_PATHS:
        content = tools.registry.read_artifact(model, path)
        if content is not None:
            try:
                return FoundCard(content.decode("utf-8"), path)
            except UnicodeDecodeError as exc:
                raise UsageError(f"{model.uri}: {path}: expected UTF-8 text: {exc}") from exc
    return FoundCard(model.description or None, CARD_PATHS[0])


def _evidence(
    model: ResolvedModel, digest: str, claims: CardClaims, measured: Measurement, policy: Policy, now: datetime
) -> Evidence:
    return Evidence(
        model_uri=f"models:/{model.name}/{model.version}" if model.versioned else model.uri,
        model_digest=digest,
        kind=measured.kind,
        tested_at=now,
        expires_at=now + timedelta(days=policy.evidence.max_age_days),
        nonce=secrets.token_hex(16),
        outcome="inconclusive",
        reason_codes=(),
        attacks=measured.attacks,
        data=measured.data,
        splits=measured.splits,
        validity=measured.validity,
        card=claims,
        tool=ToolFacts(
            name=TOOL,
            version=version(TOOL),
            python=platform.python_version(),
            mlflow=_installed("mlflow"),
            libraries=dict(measured.library_versions),
        ),
        policy=PolicyReference(policy.source_name or "built-in", policy.sha256),
        registered_model=model.name,
        version=model.version,
        run_id=model.run_id,
        gating=measured.gating,
        subgroups=measured.subgroups,
        not_run=measured.not_run,
        limitations=measured.limitations,
    )


def _judged(evidence: Evidence, policy: Policy, now: datetime) -> tuple[Evidence, Verdict]:
    """Judge what was measured, and write the outcome of this moment into the evidence (information: a gate judges anew)."""
    verdict = judge(policy, evidence, now=now)
    return replace(evidence, outcome=str(verdict.outcome), reason_codes=verdict.reason_codes), verdict


def _papers(
    model: ResolvedModel,
    found: FoundCard,
    evidence: Evidence,
    verdict: Verdict,
    envelope: bytes,
    measured: Measurement,
    policy: Policy,
    tools: Tools,
) -> tuple[Papers, str | None]:
    report_uri = f"runs:/{model.run_id}/{ARTIFACT_FOLDER}/report.html" if model.run_id else None
    view = card_view(
        evidence,
        verdict,
        Particulars(
            signer=tools.signer.key_id if tools.signer else None,
            attestation_sha256=open_envelope(envelope).sha256,
            report_uri=report_uri,
            verify_command=f"mlflow-privacy-gate verify {evidence.model_uri}",
            parameters=measured.parameters,
            accuracy_members=measured.accuracy_members,
            accuracy_non_members=measured.accuracy_non_members,
            curves=tuple(_curves(measured)),
        ),
    )
    folder = policy.locate(policy.templates) if policy.templates else None
    card = write_card(found.text, view, templates=folder)
    return (
        Papers(
            card=card,
            card_path=found.path,
            description=description(card, view, existing=model.description, templates=folder)
            if model.versioned
            else None,
            report_html=html_report(view, templates=folder),
            report_markdown=markdown_report(view, templates=folder),
        ),
        report_uri,
    )


def _curves(measured: Measurement) -> list[AttackCurves]:
    return [
        AttackCurves(
            name,
            roc_curve(roc_points(scored.members, scored.non_members)),
            score_histogram(scored.members, scored.non_members),
        )
        for name in measured.gating
        if (scored := measured.scored.get(name)) is not None
    ]


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
