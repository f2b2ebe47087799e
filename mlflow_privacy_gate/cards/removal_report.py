"""The removal report: what an audit of data removal says, as HTML, Markdown and JSON, all from the signed facts."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.rows import FieldRow
from mlflow_privacy_gate.cards.templates import one_blank_line, render
from mlflow_privacy_gate.cards.view import moment
from mlflow_privacy_gate.evidence.removal import EmaFacts, KsFacts, KsState, RankFacts, RemovalEvidence
from mlflow_privacy_gate.vocabulary import ATTACKS, REMOVAL_EXIT_CODES, RemovalAnswer

_MEANING = {
    RemovalAnswer.NOT_MEMORISED: (
        "Neither of the two methods that decide sees these rows as rows that the model was trained on, and both do see its known training "
        "rows so. That is no proof that the model holds nothing of them."
    ),
    RemovalAnswer.NOT_RULED_OUT: (
        "What was measured does not rule out that the model remembers these rows. That is no proof that it does. Until it is ruled out, "
        "treat the model as one that still holds them."
    ),
    RemovalAnswer.INCONCLUSIVE: (
        "What was measured cannot tell whether the model remembers these rows, and what cannot be told counts as not removed."
    ),
}
_SMALLEST_SHOWN = 0.0001
_ROLES = {
    "query": "Query (the rows in question)",
    "calibration_train": "Calibration, training rows",
    "calibration_test": "Calibration test rows, held out",
    "control": "Control (known training rows)",
    "held_out": "held-out rows",
}


@dataclass(frozen=True)
class RemovalParticulars:
    """What the report says beside the facts: the key that signed (64 hex digits, None: unsigned) and the envelope's sha256."""

    signer: str | None
    envelope_sha256: str


@dataclass(frozen=True)
class TestRow:
    """One rank test as printed."""

    attack: str
    question: str
    p_value: str
    auc: str
    interval: str


@dataclass(frozen=True)
class RemovalView:
    """What the templates lay out: texts, unescaped; templates escape every value they print."""

    title: str
    answer: str
    css_class: str
    meaning: str
    audited_at: str
    reasons: tuple[str, ...]
    ema: tuple[FieldRow, ...]
    ema_limits: tuple[str, ...]
    ks: tuple[FieldRow, ...]
    calibrated: tuple[FieldRow, ...]
    tests: tuple[TestRow, ...]
    data: tuple[FieldRow, ...]
    provenance: tuple[FieldRow, ...]
    limitations: tuple[str, ...]
    signer: str | None


def html_removal(evidence: RemovalEvidence, particulars: RemovalParticulars, *, templates: Path | None = None) -> str:
    """Render ``report.html``: one file, nothing loaded from elsewhere, fit to be printed."""
    return render("removal_report.html.j2", folder=templates, view=removal_view(evidence, particulars))


def markdown_removal(
    evidence: RemovalEvidence, particulars: RemovalParticulars, *, templates: Path | None = None
) -> str:
    """Render ``report.md``."""
    return one_blank_line(render("removal_report.md.j2", folder=templates, view=removal_view(evidence, particulars)))


def json_removal(evidence: RemovalEvidence, particulars: RemovalParticulars) -> str:
    """Give the facts as one JSON object, numbers as numbers; the signed statement is the envelope, not this."""
    fields = {
        **dataclasses.asdict(evidence),
        "exit_code": REMOVAL_EXIT_CODES[evidence.answer],
        "meaning": _MEANING[evidence.answer],
        "reads_otherwise": reads_otherwise(evidence),
        "signer": particulars.signer,
        "envelope_sha256": particulars.envelope_sha256,
    }
    return json.dumps(fields, indent=2, allow_nan=False, default=_plain)


def removal_view(evidence: RemovalEvidence, particulars: RemovalParticulars) -> RemovalView:
    """Lay out everything that the report shows."""
    name = evidence.registered_model
    differing = reads_otherwise(evidence)
    return RemovalView(
        title=f"{name} version {evidence.version}" if name else evidence.model_uri,
        answer=str(evidence.answer),
        css_class={
            RemovalAnswer.NOT_MEMORISED: "pass",
            RemovalAnswer.NOT_RULED_OUT: "fail",
            RemovalAnswer.INCONCLUSIVE: "inconclusive",
        }[evidence.answer],
        meaning=_MEANING[evidence.answer],
        audited_at=moment(evidence.audited_at),
        reasons=evidence.reasons if differing is None else (*evidence.reasons, differing),
        ema=_ema(evidence.ema),
        ema_limits=ema_limits(evidence.ema),
        ks=_ks(evidence.ks),
        calibrated=_calibrated(evidence),
        tests=tuple(_test(test) for test in evidence.calibrated.tests),
        data=_data(evidence),
        provenance=_provenance(evidence, particulars),
        limitations=evidence.limitations,
        signer=particulars.signer,
    )


def ema_limits(ema: EmaFacts) -> tuple[str, ...]:
    """Say where EMA is blind, in the numbers of this very audit."""
    if ema.fewest_zeros is None:
        return ()
    rows, enough = ema.rows, ema.fewest_zeros
    said = [
        f"{enough} of {rows:,} rows that look unseen are enough for the rule, whatever the model says of the other {rows - enough:,}: "
        "a query of which most rows are still remembered can be called not memorised.",
        f"Up to {enough - 1} rows that were never trained on can hide in a query without the rule taking notice.",
    ]
    held_out = ema.held_out
    if held_out is not None and held_out.cleared is not None:
        said.append(
            f"Of queries of this size made of held-out rows alone the rule would call a share of {numbers.plain(held_out.cleared)} not "
            f"memorised ({held_out.zeros:,} of {held_out.rows:,} held-out rows look unseen). The rest it would not recognise as unseen."
        )
    if ema.control is not None and ema.control.cleared is not None:
        said.append(
            f"Of queries of this size made of known training rows alone it would call a share of {numbers.plain(ema.control.cleared)} not "
            f"memorised, wrongly ({ema.control.zeros:,} of {ema.control.rows:,} look unseen); above {numbers.exact(ema.alpha)} the control "
            "rejects."
        )
    return tuple(said)


def ks_words(ks: KsFacts) -> str:
    """Give rho_KS with how the rule reads it."""
    if ks.state is KsState.NOT_RUN:
        return f"not run ({ks.reason})"
    if ks.value is not None:
        read = "1 or more: read as forgotten" if ks.value >= 1 else "below 1: not read as forgotten"
        return f"{numbers.plain(ks.value, limit=1.0)} ({read})"
    if ks.state is KsState.INFINITE:
        return "infinite (read as forgotten: the calibration model answers as a model of the query does)"
    return "undefined (the three models answer alike)"


def reads_otherwise(evidence: RemovalEvidence) -> str | None:
    """Name what was shown beside an answer of "not memorised" and reads otherwise; None where nothing does, or for another answer."""
    if evidence.answer is not RemovalAnswer.NOT_MEMORISED:
        return None
    facts, ks = evidence.calibrated, evidence.ks
    named = [
        f"{test.attack} (query above held-out rows, p {p_value(test.p_value)})"
        for test in facts.tests
        if test.attack != facts.decided_by and test.higher == "query" and test.p_value <= facts.level
    ]
    if ks.value is not None and ks.value < 1:
        named.append(f"rho_KS ({numbers.plain(ks.value, limit=1.0)}, below 1)")
    return f"Shown beside these, deciding nothing, and reading otherwise: {'; '.join(named)}." if named else None


def p_value(value: float) -> str:
    """Print a probability; a tiny one is never printed as zero."""
    return numbers.plain(value) if value >= _SMALLEST_SHOWN else "below 0.0001"


def _ema(ema: EmaFacts) -> tuple[FieldRow, ...]:
    used = [f"{one.id} ({numbers.plain(one.balanced_accuracy)})" for one in ema.metrics if one.used]
    left_out = [f"{one.id} ({numbers.plain(one.balanced_accuracy)})" for one in ema.metrics if not one.used]
    zeros = None if ema.zeros is None else f"{ema.zeros:,} of {ema.rows:,}"
    return (
        FieldRow("Answer", str(ema.answer)),
        FieldRow("Why", ema.reason),
        FieldRow("rho", None if ema.rho is None else p_value(ema.rho), "it could not be computed"),
        FieldRow("Held against (alpha)", numbers.exact(ema.alpha)),
        FieldRow("Query rows below every threshold", zeros, "it could not be computed"),
        FieldRow("Metrics used (balanced accuracy)", ", ".join(used) or "none"),
        FieldRow("Metrics left out (balanced accuracy at most one half)", ", ".join(left_out) or "none"),
    )


def _ks(ks: KsFacts) -> tuple[FieldRow, ...]:
    missing = "it was not run"
    return (
        FieldRow("rho_KS", ks_words(ks)),
        FieldRow("Distance of the audited model from a model of the query", _optional(ks.target_to_query), missing),
        FieldRow("Distance of the calibration model from it", _optional(ks.calibration_to_query), missing),
    )


def _calibrated(evidence: RemovalEvidence) -> tuple[FieldRow, ...]:
    facts = evidence.calibrated
    made = f"{facts.references} ({facts.references_origin}, seed {facts.seed})" if facts.references else None
    return (
        FieldRow("Answer", str(facts.answer)),
        FieldRow("Why", facts.reason),
        FieldRow("Decided by", f"{facts.decided_by}: {ATTACKS[facts.decided_by].title}"),
        FieldRow("Held against", numbers.exact(facts.level)),
        FieldRow("Reference models", made, "none were trained"),
        FieldRow("Rows that could not be scored", numbers.count(facts.rows_left_out)),
    )


def _test(test: RankFacts) -> TestRow:
    words = {"query": "query", "control": "known training rows", "held_out": "held-out rows"}
    return TestRow(
        f"{test.attack} ({test.formula})",
        f"{words[test.higher]} above {words[test.lower]}",
        p_value(test.p_value),
        numbers.plain(test.auc),
        f"{numbers.plain(test.ci_low)} to {numbers.plain(test.ci_high)} ({test.ci_method})",
    )


def _data(evidence: RemovalEvidence) -> tuple[FieldRow, ...]:
    sides = tuple(
        FieldRow(
            _ROLES[side.role],
            f"{side.rows_used:,} of {side.rows:,} rows used"
            f"{f', {side.unknown_labels:,} with a label the model does not know' if side.unknown_labels else ''}; {side.digest}",
        )
        for side in evidence.data
    )
    among = evidence.query_among_members
    return (
        *sides,
        FieldRow("Record of the training rows", evidence.record),
        FieldRow(
            "Query rows among the logged training rows", None if among is None else f"{among:,}", "there was no record"
        ),
    )


def _provenance(evidence: RemovalEvidence, particulars: RemovalParticulars) -> tuple[FieldRow, ...]:
    tool, given = evidence.tool, evidence.calibration_model_digest
    calibration = (
        "trained anew by the model's own recipe" if given is None else f"{evidence.calibration_model}, sha256 {given}"
    )
    libraries = ", ".join(f"{name} {number}" for name, number in sorted(tool.libraries.items()))
    return (
        FieldRow("Model URI", evidence.model_uri),
        FieldRow("Model digest (sha256)", evidence.model_digest),
        FieldRow("Training run", evidence.run_id, "the model names no run"),
        FieldRow("Calibration model", calibration),
        FieldRow("Audited", moment(evidence.audited_at)),
        FieldRow("Tool", f"{tool.name} {tool.version}, Python {tool.python}, MLflow {tool.mlflow}"),
        FieldRow("Libraries", libraries or None, "not recorded"),
        FieldRow("Policy", f"{evidence.policy.name}, sha256 {evidence.policy.sha256}"),
        FieldRow("Signed by key", particulars.signer, "unsigned: whoever may edit the run can forge this"),
        FieldRow("Signed statement (sha256 of its envelope)", particulars.envelope_sha256),
    )


def _optional(value: float | None) -> str | None:
    return None if value is None else numbers.plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    raise TypeError(f"no JSON for {type(value).__name__}")
