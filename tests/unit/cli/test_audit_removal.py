"""What ``audit-removal`` prints: the answer, what it rests on, that it proves nothing, and where the report went."""

from __future__ import annotations

from dataclasses import replace

from removal_cases import removal_evidence

from mlflow_privacy_gate.cards.removal_report import RemovalParticulars, json_removal
from mlflow_privacy_gate.cli.audit_removal import fields, text
from mlflow_privacy_gate.evidence.removal import KsFacts, KsState
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.removal import AuditResult

MODEL = ResolvedModel("models:/credit/8", "file:///model", name="credit", version="8", run_id="run-8")


def result(**changes: object) -> AuditResult:
    evidence = removal_evidence()
    report = json_removal(evidence, RemovalParticulars("f" * 64, "9" * 64)).encode()
    found = AuditResult(MODEL, evidence, True, True, "privacy_gate/removal/bbbb", {"report.json": report})
    return replace(found, **changes)  # type: ignore[arg-type]


def test_the_answer_comes_first_and_nothing_is_called_proven() -> None:
    shown = text(result())
    assert shown.startswith("models:/credit/8: NOT MEMORISED\n")
    assert "- EMA: not memorised." in shown
    assert "- rho_KS, which decides nothing: 1.4667 (1 or more: read as forgotten)" in shown
    assert "This proves neither" in shown
    assert "runs:/run-8/privacy_gate/removal/bbbb" in shown
    assert "unsigned" not in shown


def test_what_reads_otherwise_is_said_beside_a_favourable_answer() -> None:
    differing = replace(removal_evidence(), ks=KsFacts(KsState.FINITE, 0.8125, 0.2, 0.2))
    assert "reading otherwise: rho_KS (0.8125, below 1)" in text(result(evidence=differing))
    assert "reading otherwise" not in text(result())


def test_a_dry_run_and_a_missing_signature_are_said() -> None:
    shown = text(result(signed=False, recorded=False))
    assert "Not recorded (dry run)." in shown
    assert "unsigned" in shown


def test_a_version_without_a_run_is_told_how_to_keep_the_report() -> None:
    assert "--save" in text(result(model=replace(MODEL, run_id=None)))


def test_the_json_is_the_reports_and_says_what_became_of_it() -> None:
    shown = fields(result(recorded=False))
    assert (shown["answer"], shown["exit_code"]) == ("not memorised", 0)
    assert (shown["signed"], shown["recorded"]) == (True, False)
    assert shown["folder"] == "privacy_gate/removal/bbbb"
