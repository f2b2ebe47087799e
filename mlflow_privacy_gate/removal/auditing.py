"""One removal audit, from a model URI and a set of rows to a signed report: pull, retrain beside it, compare, publish."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_privacy_gate.cards.removal_report import RemovalParticulars, html_removal, json_removal, markdown_removal
from mlflow_privacy_gate.errors import CouldNotJudge, SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.envelope import open_envelope, sign
from mlflow_privacy_gate.evidence.facts import DataFacts, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.removal import CalibratedFacts, EmaFacts, KsFacts, RemovalEvidence, least_favourable
from mlflow_privacy_gate.evidence.removal_statement import removal_statement_bytes
from mlflow_privacy_gate.removal.asking import (
    AskedSets,
    Calibration,
    ask_sets,
    given_calibration,
    refitted_calibration,
)
from mlflow_privacy_gate.removal.calibrated_answer import calibrated_facts
from mlflow_privacy_gate.removal.ema_answer import ema_facts
from mlflow_privacy_gate.removal.ks_answer import ks_facts
from mlflow_privacy_gate.removal.result import AuditResult
from mlflow_privacy_gate.removal.row_sets import AuditRows, Record, audit_rows
from mlflow_privacy_gate.splits.catalogue import find_splits
from mlflow_privacy_gate.splits.target import target_column
from mlflow_privacy_gate.vocabulary import REMOVAL_FOLDER, REMOVAL_TAG, Isolation, RemovalAnswer

if TYPE_CHECKING:
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.evidence.subject import ResolvedModel
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.registry._interface import Registry
    from mlflow_privacy_gate.splits._interface import Split, SplitSource

TOOL = "mlflow-privacy-gate"
# As many as the preset `thorough` trains.
REFERENCES = 16
RETRAINING = "How much the result would vary if the model were trained again is outside every number here."
NO_PROOF = "An audit of outputs cannot prove that a model holds nothing of a row, nor that it holds something."


@dataclass(frozen=True)
class Tools:
    """What an audit works with; entry points build the real ones.

    ``open_model`` opens a model folder, in the ``isolation`` that the evidence will name. ``load_rows`` reads a table, path or URI under
    its role. ``record_sources`` gives the places where the model's own training rows may be recorded. ``signer`` None: the evidence
    stays unsigned. ``clock`` gives timezone-aware UTC.
    """

    registry: Registry
    open_model: Callable[[Path], AbstractContextManager[LoadedModel]]
    isolation: Isolation
    load_rows: Callable[[object, str], Split]
    record_sources: Callable[[LoadedModel], Sequence[SplitSource]]
    signer: Signer | None
    clock: Callable[[], datetime]
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Question:
    """What is asked: do these ``query`` rows still show in the model? Each set of rows is a table, a path or a URI.

    ``control``: known training rows; None takes what was logged. ``calibration_model``: URI of a model trained by the same recipe on the
    calibration training rows; None trains one. ``references``: how many reference models. ``dry_run``: write nothing anywhere.
    """

    query: object
    calibration_train: object
    calibration_test: object
    control: object | None = None
    calibration_model: str | None = None
    target: str | None = None
    references: int = REFERENCES
    dry_run: bool = False


@dataclass(frozen=True)
class _Found:
    """Everything that one audit measured."""

    digest: str
    rows: AuditRows
    asked: AskedSets
    calibration: Calibration
    ema: EmaFacts
    ks: KsFacts
    calibrated: CalibratedFacts
    warnings: tuple[str, ...]
    libraries: dict[str, str]


def run_audit(model_uri: str, question: Question, policy: Policy, tools: Tools) -> AuditResult:
    """Audit one model and record the report. CouldNotJudge and its kin where there is nothing to judge, and then nothing is written."""
    model = tools.registry.resolve(model_uri)
    found = _measured(model, question, policy, tools)
    evidence = _evidence(model, found, policy, tools.isolation, tools.clock())
    envelope = sign(removal_statement_bytes(evidence), tools.signer)
    query = evidence.side("query")
    assert query is not None
    folder = f"{REMOVAL_FOLDER}/{query.digest.rpartition(':')[2][:12]}"
    files = _files(evidence, envelope, policy, tools.signer)
    if not question.dry_run:
        tools.progress("recording the result")
        tools.registry.annotate(
            model,
            artifacts={f"{folder}/{name}": content for name, content in files.items()},
            tags={REMOVAL_TAG: _tag(evidence, query)},
        )
    return AuditResult(model, evidence, tools.signer is not None, not question.dry_run, folder, files)


def _measured(model: ResolvedModel, question: Question, policy: Policy, tools: Tools) -> _Found:
    with tools.registry.open_model(model) as folder:
        digest = model_digest(folder)
        with tools.open_model(folder) as loaded:
            found = _compared(model, loaded, digest, question, policy, tools)
        if model_digest(folder) != digest:
            raise CouldNotJudge(f"{model.uri}: the model's files changed while they were audited; audit it again")
    return found


def _compared(
    model: ResolvedModel, loaded: LoadedModel, digest: str, question: Question, policy: Policy, tools: Tools
) -> _Found:
    seed, progress = policy.attacks.seed, tools.progress
    rows = _rows(model, loaded, question, policy, tools)
    progress("asking the model")
    asked = ask_sets(loaded, rows)
    progress("training the calibration model")
    calibration = _calibration(loaded, asked, digest, question, policy, tools)
    calibrated = calibrated_facts(
        loaded,
        asked,
        count=question.references,
        seed=seed,
        origins=policy.attacks.reference_origins,
        progress=progress,
    )
    return _Found(
        digest,
        rows,
        asked,
        calibration,
        ema=ema_facts(asked, calibration, unlogged_control=rows.unlogged_control),
        # Last, for it may fail without harm, and a model in a process of its own answers nothing after a failure.
        ks=ks_facts(loaded, asked, calibration, seed=seed),
        calibrated=calibrated,
        warnings=loaded.notes.warnings,
        libraries=dict(loaded.notes.library_versions or {}),
    )


def _rows(model: ResolvedModel, loaded: LoadedModel, question: Question, policy: Policy, tools: Tools) -> AuditRows:
    query, train, test = (
        tools.load_rows(given, role)
        for given, role in (
            (question.query, "query"),
            (question.calibration_train, "calibration_train"),
            (question.calibration_test, "calibration_test"),
        )
    )
    control = None if question.control is None else tools.load_rows(question.control, "control")
    record = _record(model, loaded, tools)
    named = question.target or record.target
    if named is not None and named not in query.frame.columns:
        raise SplitsUnavailable(f"query: lacks the label's column {named!r}; hand in whole labelled rows")
    target, _ = target_column(
        list(query.frame.columns), asked=question.target, logged=record.target, input_columns=loaded.input_columns
    )
    features = loaded.input_columns or tuple(name for name in query.frame.columns if name != target)
    return audit_rows(
        query,
        train,
        test,
        control,
        record,
        target=target,
        features=features,
        max_rows=policy.sources.max_rows,
        seed=policy.attacks.seed,
    )


def _record(model: ResolvedModel, loaded: LoadedModel, tools: Tools) -> Record:
    """Find the model's own training rows. Where they cannot be had the audit goes on without them, and says so."""
    try:
        splits = find_splits(tools.record_sources(loaded), model)
    except SplitsUnavailable as exc:
        return Record(None, None, f"the model's own training rows could not be had: {exc.message}")
    return Record(splits.members, splits.target, f"the model's own training rows, as found by {splits.origin}")


def _calibration(
    loaded: LoadedModel, asked: AskedSets, digest: str, question: Question, policy: Policy, tools: Tools
) -> Calibration:
    if question.calibration_model is None:
        return refitted_calibration(loaded, asked, seed=policy.attacks.seed)
    given = tools.registry.resolve(question.calibration_model)
    with tools.registry.open_model(given) as folder:
        given_digest = model_digest(folder)
        if given_digest == digest:
            raise UsageError(f"{given.uri}: the calibration model is the audited model itself; name another")
        with tools.open_model(folder) as opened:
            return given_calibration(opened, asked, origin=given.uri, digest=given_digest)


def _evidence(
    model: ResolvedModel, found: _Found, policy: Policy, isolation: Isolation, now: datetime
) -> RemovalEvidence:
    rows = found.rows
    known = RemovalAnswer.NOT_RULED_OUT if rows.query_among_members else RemovalAnswer.NOT_MEMORISED
    return RemovalEvidence(
        model_uri=f"models:/{model.name}/{model.version}" if model.versioned else model.uri,
        model_digest=found.digest,
        audited_at=now,
        nonce=secrets.token_hex(16),
        answer=least_favourable((known, found.ema.answer, found.calibrated.answer)),
        reasons=_reasons(found),
        ema=found.ema,
        ks=found.ks,
        calibrated=found.calibrated,
        data=_data(found.asked),
        record=rows.record.said,
        calibration_model=found.calibration.origin,
        tool=ToolFacts(
            name=TOOL,
            version=version(TOOL),
            python=platform.python_version(),
            mlflow=version("mlflow"),
            libraries=found.libraries,
            isolation=str(isolation),
        ),
        policy=PolicyReference(policy.source_name or "built-in", policy.sha256),
        query_among_members=rows.query_among_members,
        calibration_model_digest=found.calibration.digest,
        registered_model=model.name,
        version=model.version,
        run_id=model.run_id,
        limitations=(NO_PROOF, RETRAINING, *_on_trust(found), *rows.notes, *found.warnings),
    )


def _reasons(found: _Found) -> tuple[str, ...]:
    said = [
        f"EMA: {found.ema.answer}. {found.ema.reason}",
        f"Calibrated: {found.calibrated.answer}. {found.calibrated.reason}",
    ]
    among = found.rows.query_among_members
    if among:
        said.insert(
            0,
            f"{among:,} query rows, or rows equal to them, stand among the logged training rows of this model: it was trained on them.",
        )
    return tuple(said)


def _on_trust(found: _Found) -> tuple[str, ...]:
    """Say what nothing but the word of whoever ran the audit vouches for."""
    taken = []
    if found.calibration.digest is not None:
        taken.append(
            "that the calibration model was trained by the same recipe, on the calibration training rows alone"
        )
    if found.rows.record.members is None:
        taken.append("that the model was not trained on the calibration test rows")
        if found.rows.control is not None:
            taken.append("that it was trained on the control rows")
    return (f"Taken on the word of whoever ran this audit: {'; '.join(taken)}.",) if taken else ()


def _data(asked: AskedSets) -> tuple[DataFacts, ...]:
    return tuple(
        DataFacts(
            role=one.rows.role,
            rows=len(one.rows.found.frame),
            rows_used=one.said.n,
            digest=one.rows.found.digest,
            unknown_labels=one.said.unknown_labels,
            # Whoever asks for erasure may be named in the path of their rows.
            source=None if one.rows.role == "query" else one.rows.found.source,
        )
        for one in asked.every
    )


def _files(evidence: RemovalEvidence, envelope: bytes, policy: Policy, signer: Signer | None) -> dict[str, bytes]:
    particulars = RemovalParticulars(signer.key_id if signer else None, open_envelope(envelope).sha256)
    templates = policy.locate(policy.templates) if policy.templates else None
    texts = {
        "report.md": markdown_removal(evidence, particulars, templates=templates),
        "report.html": html_removal(evidence, particulars, templates=templates),
        "report.json": json_removal(evidence, particulars),
    }
    return {**{name: text.encode("utf-8") for name, text in texts.items()}, "removal.dsse.json": envelope}


def _tag(evidence: RemovalEvidence, query: DataFacts) -> str:
    """Say the answer with what it is about: alone it would be read as one about the whole model."""
    return f"{evidence.answer}: {query.rows_used} rows, {query.digest.rpartition(':')[2][:12]}, {evidence.audited_at:%Y-%m-%d}"
