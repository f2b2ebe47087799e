from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from evidence_builder import FAILING_AUCS, PASSING_AUCS, passing_evidence

from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.cli.check_formats import FORMATS
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.policy import built_in_policy, judge
from mlflow_privacy_gate.vocabulary import Outcome

HOSTILE = "models:/<script>alert(1)</script>|`x`&\"'\n\u202e]]>\x0b\x00/1"


def result(**changes: Any) -> CheckResult:
    evidence = passing_evidence("a" * 64, **changes)
    verdict = judge(built_in_policy(), evidence, now=evidence.tested_at)
    return CheckResult(
        model=ResolvedModel(uri=evidence.model_uri, artifact_uri="file:///m", name="credit", version="1"),
        verdict=verdict.outcome,
        attack=verdict.attack,
        attack_auc=verdict.attack_auc,
        confidence_auc=verdict.confidence_auc,
        margin=verdict.margin,
        headroom=verdict.headroom,
        findings=verdict.findings,
        evidence=evidence,
        signed=True,
        recorded=True,
        card="",
        report="",
        envelope=b"",
    )


PASSED, FAILED = result(), result(aucs=FAILING_AUCS)
UNJUDGED = result(rows=50)
NOTHING = result(aucs={})
ALL = {"pass": PASSED, "fail": FAILED, "inconclusive": UNJUDGED, "nothing measured": NOTHING}


def strictly(text: str) -> Any:
    """Parse JSON as a strict parser does: no NaN, no Infinity, no key twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(text, parse_constant=pytest.fail, object_pairs_hook=once)


@pytest.mark.parametrize("given", ALL.values(), ids=ALL)
def test_json_is_strict_and_says_verdict_numbers_and_findings(given: CheckResult) -> None:
    told = strictly(FORMATS["json"](given))
    assert told["verdict"] == str(given.verdict)
    assert told["exit_code"] == given.exit_code
    assert (told["attack_auc"], told["confidence_auc"], told["margin"]) == (
        given.attack_auc,
        given.confidence_auc,
        given.margin,
    )
    assert [one["code"] for one in told["findings"]] == [str(finding.code) for finding in given.findings]
    assert told["model_digest"] == "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("given", "failures", "errors", "child"),
    [
        (PASSED, "0", "0", None),
        (FAILED, "1", "0", "failure"),
        (UNJUDGED, "0", "1", "error"),
        (NOTHING, "0", "1", "error"),
    ],
    ids=ALL,
)
def test_junit_counts_a_fail_as_failure_and_what_could_not_be_judged_as_error(
    given: CheckResult, failures: str, errors: str, child: str | None
) -> None:
    suite = ElementTree.fromstring(FORMATS["junit"](given))
    assert (suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        *("testsuite", "1"),
        failures,
        errors,
    )
    (case,) = suite.findall("testcase")
    assert {one.tag for one in case} == {"system-out"} | ({child} if child else set())


@pytest.mark.parametrize("given", ALL.values(), ids=ALL)
def test_sarif_has_the_keys_that_its_readers_need(given: CheckResult) -> None:
    document = strictly(FORMATS["sarif"](given))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "mlflow-privacy-gate"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules))
    assert len(run["results"]) == len(given.findings)
    for one in run["results"]:
        assert one["ruleId"] in rules
        assert one["level"] in {"error", "warning"}
        assert one["message"]["text"]
        assert one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == given.evidence.model_uri


def test_a_warning_is_a_warning_in_sarif() -> None:
    tuned = result(splits=replace(PASSED.evidence.splits, used_for_tuning=True))
    assert tuned.verdict is Outcome.PASS
    (one,) = strictly(FORMATS["sarif"](tuned))["runs"][0]["results"]
    assert (one["ruleId"], one["level"]) == ("PG107", "warning")


@pytest.mark.parametrize("name", FORMATS)
def test_a_hostile_name_stays_inert_in_every_format(name: str) -> None:
    told = FORMATS[name](result(model_uri=HOSTILE, aucs=FAILING_AUCS))
    if name == "json":
        assert strictly(told)["model"] == HOSTILE
    elif name == "sarif":
        strictly(told)
    elif name == "junit":
        ElementTree.fromstring(told)
        assert "<script>" not in told
    elif name == "markdown":
        assert "<script>" not in told
        assert told.splitlines()[1] == ""  # the name makes no line of its own


@pytest.mark.parametrize("given", ALL.values(), ids=ALL)
def test_text_and_markdown_say_verdict_margin_and_each_finding(given: CheckResult) -> None:
    for name in ("text", "markdown"):
        told = FORMATS[name](given)
        assert str(given.verdict) in told.lower()
        assert "0.55" in told
        assert all(str(finding.code) in told for finding in given.findings)


def test_text_says_what_would_help_and_whether_it_was_recorded_and_signed() -> None:
    told = FORMATS["text"](replace(FAILED, recorded=False, signed=False))
    assert told.count("What would help:") == len(FAILED.findings)
    assert "not recorded" in told.lower()
    assert "will not open the gate" in told
    assert "PRIVACY_GATE_SIGNING_KEY" in told


def test_a_number_at_the_margin_is_shown_on_its_side_of_it() -> None:
    above = result(aucs={**PASSING_AUCS, "confidence": 0.55004})
    assert above.verdict is Outcome.FAIL
    for name in ("text", "markdown", "junit"):
        assert "0.55004" in FORMATS[name](above)
