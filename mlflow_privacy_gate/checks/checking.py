"""One check, from a model URI to what stands in the registry: pull, attack, judge, publish."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.curves import roc_curve, score_histogram
from mlflow_privacy_gate.cards.particulars import AttackCurves, Particulars
from mlflow_privacy_gate.cards.view import card_view
from mlflow_privacy_gate.checks.found_card import CardToCheck, GivenCard, card_to_check
from mlflow_privacy_gate.checks.further import measure_further
from mlflow_privacy_gate.checks.measuring import Extent, Measurement, Progress, measure
from mlflow_privacy_gate.checks.papers import draw_papers, given_card, recorded_particulars
from mlflow_privacy_gate.checks.publishing import publication
from mlflow_privacy_gate.checks.records import check_path, row_records, write_records
from mlflow_privacy_gate.checks.result import CheckResult
from mlflow_privacy_gate.checks.stored_curves import curves_json
from mlflow_privacy_gate.errors import CouldNotJudge
from mlflow_privacy_gate.evidence.envelope import open_envelope, sign
from mlflow_privacy_gate.evidence.facts import Evidence, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.officer_statements import attached, exemptions_in_force
from mlflow_privacy_gate.evidence.statement import statement_bytes
from mlflow_privacy_gate.policy import Verdict, judge, margin_in_force
from mlflow_privacy_gate.splits.catalogue import find_splits
from mlflow_privacy_gate.stats import roc_points
from mlflow_privacy_gate.vocabulary import Isolation

if TYPE_CHECKING:
    from mlflow_privacy_gate.cards.view import CardView
    from mlflow_privacy_gate.checks.papers import Papers
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Publication, Registry
    from mlflow_privacy_gate.splits._interface import SplitSource

TOOL = "mlflow-privacy-gate"


@dataclass(frozen=True)
class Tools:
    """What a check works with; entry points build the real ones.

    ``open_model`` opens a model folder, in the ``isolation`` that the evidence will name. ``split_sources`` gives the places to look for
    the splits, in order, once the model is open. ``signer`` None: the evidence stays unsigned. ``clock`` gives timezone-aware UTC.
    """

    registry: Registry
    open_model: Callable[[Path], AbstractContextManager[LoadedModel]]
    isolation: Isolation
    split_sources: Callable[[LoadedModel], Sequence[SplitSource]]
    signer: Signer | None
    clock: Callable[[], datetime]
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class Wishes:
    """What the caller asks of one check beside the policy.

    ``card``: a card beside the one that is found. ``dry_run``: write nothing anywhere. ``subgroup_columns``: look at these
    beside the classes. ``stop_early``: train no reference models once the verdict can no longer change. ``records``: a local parquet file
    for how exposed each row is. ``evaluator``: who answers for this test, as the report is to name them. ``suggest``: measure what each
    mitigation would do to a model over the margin.
    """

    card: GivenCard | None = None
    evaluator: str | None = None
    dry_run: bool = False
    subgroup_columns: tuple[str, ...] = ()
    stop_early: bool = False
    records: Path | None = None
    suggest: bool = False


def run_check(model_uri: str, policy: Policy, tools: Tools, wishes: Wishes = Wishes()) -> CheckResult:
    """Test one model and record the result.

    Everything is computed before the first write; then the earlier verdict is taken back, and the new one is written last, so that a
    stop at any moment leaves no pass behind. CouldNotJudge and its kin when there is nothing to judge, and then nothing is written.
    """
    if wishes.records is not None:
        check_path(wishes.records)
    model = tools.registry.resolve(model_uri)
    card = card_to_check(tools.registry, model, wishes.card)
    margin = margin_in_force(policy, card.declared.claims).value
    extent = Extent(
        wishes.subgroup_columns,
        stop_over=margin if wishes.stop_early else None,
        claim=card.declared.claims.differential_privacy,
        suggest_over=margin if wishes.suggest else None,
    )
    digest, measured = _measured(model, policy, tools, extent)
    now = tools.clock()
    evidence = _evidence(model, digest, card, measured, _tool(measured, tools.isolation), policy, now)
    evidence, verdict = _judged(evidence, model, policy, now)
    outcome = _Outcome(model, card, evidence, verdict, sign(statement_bytes(evidence), tools.signer))
    view = outcome.view(measured, policy, tools, wishes)
    papers = draw_papers(model, card.published, view, policy)
    result = outcome.result(measured, papers, given=given_card(card, view, policy), tools=tools, wishes=wishes)
    if wishes.records is not None:
        write_records(row_records(measured.pool, measured.scored), wishes.records)
    if not wishes.dry_run:
        tools.progress("recording the result")
        tools.registry.withdraw(model)
        tools.registry.publish(model, outcome.publication(papers, view.particulars))
    return result


@dataclass(frozen=True)
class _Outcome:
    """What one check came to: the evidence, its verdict, and the envelope it is signed in."""

    model: ResolvedModel
    card: CardToCheck
    evidence: Evidence
    verdict: Verdict
    envelope: bytes

    def view(self, measured: Measurement, policy: Policy, tools: Tools, wishes: Wishes) -> CardView:
        """Lay out what card and report say."""
        known = tools.registry.known_tests(self.evidence.model_digest, policy)
        particulars = recorded_particulars(
            self.model,
            self.evidence,
            self.card.declared.words,
            signer=tools.signer.key_id if tools.signer else None,
            envelope_sha256=open_envelope(self.envelope).sha256,
            tests_so_far=None if known is None else known.count + 1,
        )
        return card_view(self.evidence, self.verdict, _with_measured(particulars, measured, wishes))

    def publication(self, papers: Papers, particulars: Particulars) -> Publication:
        """Lay out what is recorded."""
        curves = curves_json(particulars.curves, attestation_sha256=open_envelope(self.envelope).sha256)
        return publication(
            self.evidence, self.verdict, self.envelope, papers, curves=curves, report_uri=particulars.report_uri
        )

    def result(
        self, measured: Measurement, papers: Papers, *, given: str | None, tools: Tools, wishes: Wishes
    ) -> CheckResult:
        """Give it as the caller gets it; ``given``: the caller's own card as it was added to, None where it is the run's."""
        verdict = self.verdict
        return CheckResult(
            model=self.model,
            verdict=verdict.outcome,
            attack=verdict.attack,
            attack_auc=verdict.attack_auc,
            confidence_auc=verdict.confidence_auc,
            margin=verdict.margin,
            headroom=verdict.headroom,
            findings=verdict.findings,
            evidence=self.evidence,
            signed=tools.signer is not None,
            recorded=not wishes.dry_run,
            card=papers.card if given is None else given,
            report=papers.report_html,
            envelope=self.envelope,
            mitigations=measured.mitigations,
            notes=self.card.kept,
        )


def _measured(model: ResolvedModel, policy: Policy, tools: Tools, extent: Extent) -> tuple[str, Measurement]:
    """Measure the model's bytes and give their digest; CouldNotJudge where they did not stay the same meanwhile."""
    with tools.registry.open_model(model) as folder:
        digest = model_digest(folder)
        with tools.open_model(folder) as loaded:
            splits = find_splits(tools.split_sources(loaded), model)
            measured = measure(
                loaded,
                splits,
                policy,
                open_logged=partial(_opened, tools),
                extent=extent,
                progress=tools.progress,
            )
            measured = measure_further(measured, loaded, splits, policy, extent, tools.progress)
        if model_digest(folder) != digest:
            raise CouldNotJudge(f"{model.uri}: the model's files changed while they were tested; check it again")
    return digest, measured


@contextmanager
def _opened(tools: Tools, model_uri: str) -> Iterator[LoadedModel]:
    """Open another logged model, as it is opened that is under test."""
    with tools.registry.open_model(tools.registry.resolve(model_uri)) as folder, tools.open_model(folder) as loaded:
        yield loaded


def _tool(measured: Measurement, isolation: Isolation) -> ToolFacts:
    return ToolFacts(
        name=TOOL,
        version=version(TOOL),
        python=platform.python_version(),
        mlflow=_installed("mlflow"),
        libraries=dict(measured.library_versions),
        isolation=str(isolation),
    )


def _evidence(
    model: ResolvedModel,
    digest: str,
    card: CardToCheck,
    measured: Measurement,
    tool: ToolFacts,
    policy: Policy,
    now: datetime,
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
        card=card.declared.claims,
        tool=tool,
        policy=PolicyReference(policy.source_name or "built-in", policy.sha256),
        registered_model=model.name,
        version=model.version,
        run_id=model.run_id,
        gating=measured.gating,
        privacy_budget=measured.privacy_budget,
        subgroups=measured.subgroups,
        not_run=measured.not_run,
        limitations=(*card.kept, *measured.limitations),
    )


def _judged(evidence: Evidence, model: ResolvedModel, policy: Policy, now: datetime) -> tuple[Evidence, Verdict]:
    """Judge what was measured, and write the outcome of this moment into the evidence (information: a gate judges anew).

    An exemption signed earlier is about the bytes, so it still counts; waivers and sign-offs were about another test.
    """
    exempting, _ = exemptions_in_force(
        attached(model.tags).exemptions,
        keys=policy.trusted_keys,
        model_digest=evidence.model_digest,
        workspace=model.workspace,
        now=now,
    )
    verdict = judge(policy, evidence, now=now, exempted=bool(exempting))
    return replace(evidence, outcome=str(verdict.outcome), reason_codes=verdict.reason_codes), verdict


def _with_measured(recorded: Particulars, measured: Measurement, wishes: Wishes) -> Particulars:
    """Add what no evidence holds: who asked, the model's own figures, and what is drawn of the scores."""
    return replace(
        recorded,
        evaluator=wishes.evaluator,
        parameters=measured.parameters,
        accuracy_members=measured.accuracy_members,
        accuracy_non_members=measured.accuracy_non_members,
        mitigations=measured.mitigations,
        curves=tuple(_curves(measured)),
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
