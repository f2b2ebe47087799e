"""A check's result as text for people, and as JSON, JUnit XML, SARIF and Markdown for machines and pull requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.escaping import markdown
from mlflow_privacy_gate.cards.mitigations import MitigationRow, mitigation_rows
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.vocabulary import REASONS, RULE_URL, Effect, Finding, Outcome, severity_word

_RECORDED = "Recorded in the model's tags, card and run."
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_RECORDED = "Not recorded (dry run)."
_UNSIGNED = (
    "Unsigned evidence will not open the gate: no signing key was found (--key, PRIVACY_GATE_SIGNING_KEY, "
    "privacy-gate.key beside the policy)."
)


def text(result: CheckResult) -> str:
    """Say it to a person at a terminal: verdict, number, findings, what to do."""
    lines = [f"{_name(result)}: {result.verdict.upper()}", ""]
    if result.attack_auc is not None:
        lines.append(f"  attack AUC      {_auc(result.attack_auc, result)} by {result.attack} ({_severity(result)})")
    if result.confidence_auc is not None:
        lines.append(f"  confidence AUC  {_auc(result.confidence_auc, result)}")
    lines.append(f"  margin          {numbers.exact(result.margin)}")
    if result.headroom is not None and result.attack_auc is not None:
        lines.append(f"  headroom        {numbers.headroom(result.margin, result.attack_auc)}")
    lines.extend(f"  {side.role:<15} {side.rows_used:,} of {side.rows:,} rows used" for side in result.evidence.data)
    for finding in result.findings:
        lines += [
            "",
            f"{finding.code} ({_weight(finding)}): {finding.message}",
            f"  What would help: {finding.remedy}.",
        ]
    lines += [f"\nNote: {note}." for note in result.notes]
    lines += _mitigations(result)
    lines += ["", _RECORDED if result.recorded else _NOT_RECORDED]
    if not result.signed:
        lines.append(_UNSIGNED)
    return "\n".join(lines)


def _mitigations(result: CheckResult) -> list[str]:
    if not result.mitigations:
        return []
    measured = [f"  {row.description}: {row.text}" for row in _tried(result)]
    return ["", "Measured on the tested rows, best first:", *measured]


def _tried(result: CheckResult) -> tuple[MitigationRow, ...]:
    return mitigation_rows(result.mitigations, attack_auc=result.attack_auc, margin=result.margin)


def as_json(result: CheckResult) -> str:
    """Give the result as one JSON object."""
    return json.dumps(result_fields(result), indent=2, allow_nan=False)


def junit(result: CheckResult) -> str:
    """Give the result as a JUnit suite of one test case: failed for a fail, in error when it could not be judged."""
    wrong = result.verdict is not Outcome.PASS
    failed = result.verdict is Outcome.FAIL
    suite = ElementTree.Element(
        "testsuite",
        name="mlflow-privacy-gate",
        tests="1",
        failures=str(int(failed)),
        errors=str(int(wrong and not failed)),
        timestamp=result.evidence.tested_at.isoformat(timespec="seconds"),
    )
    case = ElementTree.SubElement(suite, "testcase", classname="membership_inference", name=_for_xml(_name(result)))
    if wrong:
        problem = ElementTree.SubElement(case, "failure" if failed else "error", message=_for_xml(_headline(result)))
        problem.text = _for_xml("\n".join(f"{finding.code}: {finding.message}" for finding in result.findings))
    ElementTree.SubElement(case, "system-out").text = _for_xml(text(result))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def sarif(result: CheckResult) -> str:
    """Give the findings as SARIF 2.1.0, one rule for each code."""
    codes = dict.fromkeys(finding.code for finding in result.findings)
    rules = [
        {"id": str(code), "shortDescription": {"text": REASONS[code].title}, "helpUri": RULE_URL} for code in codes
    ]
    levels = {Effect.WARN: "warning"}
    results = [
        {
            "ruleId": str(finding.code),
            "level": levels.get(finding.effect, "error"),
            "message": {"text": f"{finding.message} What would help: {finding.remedy}."},
            "locations": [{"logicalLocations": [{"fullyQualifiedName": _name(result), "kind": "resource"}]}],
        }
        for finding in result.findings
    ]
    driver = {"name": "mlflow-privacy-gate", "version": result.evidence.tool.version, "rules": rules}
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results, "properties": result_fields(result)}
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def as_markdown(result: CheckResult) -> str:
    """Give a summary for a pull request or a job's page."""
    rows = [
        ("verdict", f"**{result.verdict}**"),
        (
            "attack AUC",
            f"{_auc(result.attack_auc, result)} ({result.attack})" if result.attack_auc is not None else "none",
        ),
        ("confidence AUC", _auc(result.confidence_auc, result) if result.confidence_auc is not None else "none"),
        ("margin", numbers.exact(result.margin)),
    ]
    lines = [f"### {markdown(_name(result))}", "", "| | |", "|---|---|"]
    lines += [f"| {heading} | {value} |" for heading, value in rows]
    if result.findings:
        lines += ["", "| code | finding | what would help |", "|---|---|---|"]
        lines += [
            f"| {finding.code} | {markdown(finding.message)} | {markdown(finding.remedy)} |"
            for finding in result.findings
        ]
    lines += [f"\n{markdown(note)}." for note in result.notes]
    if result.mitigations:
        lines += ["", "| mitigation | measured |", "|---|---|"]
        lines += [f"| {markdown(row.description)} | {markdown(row.text)} |" for row in _tried(result)]
    return "\n".join(lines)


FORMATS: Mapping[str, Callable[[CheckResult], str]] = {
    "text": text,
    "json": as_json,
    "junit": junit,
    "sarif": sarif,
    "markdown": as_markdown,
}


def result_fields(result: CheckResult) -> dict[str, Any]:
    """Lay out a check for JSON."""
    return {
        "model": _name(result),
        "model_digest": f"sha256:{result.evidence.model_digest}",
        "isolation": result.evidence.tool.isolation,
        "verdict": str(result.verdict),
        "exit_code": result.exit_code,
        "attack": result.attack,
        "attack_auc": result.attack_auc,
        "confidence_auc": result.confidence_auc,
        "margin": result.margin,
        "headroom": result.headroom,
        "signed": result.signed,
        "recorded": result.recorded,
        "notes": list(result.notes),
        "mitigations": [asdict(one) for one in result.mitigations],
        "findings": [finding_fields(finding) for finding in result.findings],
    }


def finding_fields(finding: Finding) -> dict[str, Any]:
    """Lay out one finding for JSON."""
    return {
        "code": str(finding.code),
        "effect": str(finding.effect),
        "attack": finding.attack,
        "value": finding.value,
        "limit": finding.limit,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _for_xml(said: str) -> str:
    """Put a mark where XML 1.0 has no way to write a character, as in a model's name."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", said)


def _name(result: CheckResult) -> str:
    return result.evidence.model_uri


def _headline(result: CheckResult) -> str:
    if result.attack_auc is None:
        return f"{result.verdict}: no gating attack was measured"
    return f"{result.verdict}: attack AUC {_auc(result.attack_auc, result)}, margin {numbers.exact(result.margin)}"


def _auc(value: float, result: CheckResult) -> str:
    return numbers.plain(value, limit=result.margin)


def _severity(result: CheckResult) -> str:
    return severity_word(result.attack_auc or 0.0, result.margin)


def _weight(finding: Finding) -> str:
    return "warning" if finding.effect is Effect.WARN else "blocks"
