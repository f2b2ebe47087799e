"""A statement says what was measured, exactly, and reads back as nothing else."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import passing_evidence
from evidence_strategies import EVIDENCE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.facts import AttackFacts, Evidence, Metric, ValidityFacts
from mlflow_privacy_gate.evidence.statement import from_statement, read_statement, statement_bytes, to_statement
from mlflow_privacy_gate.vocabulary import ReasonCode

DIGEST = "e" * 64
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def statement(**changes: Any) -> dict[str, Any]:
    times = {"tested_at": NOW, "expires_at": NOW + timedelta(days=90)}
    return to_statement(replace(passing_evidence(DIGEST), **(times | changes)))


def at(content: Any, path: str) -> tuple[Any, Any]:
    """Return the container and the last key of a dotted path; digits are places in a list."""
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in way:
        content = content[step]
    return content, last


def changed(path: str, value: Any) -> dict[str, Any]:
    content = copy.deepcopy(statement(run_id="r1"))
    container, last = at(content, path)
    container[last] = value
    return content


@SLOW
@given(EVIDENCE)
def test_evidence_survives_the_statement_unchanged(evidence: Evidence) -> None:
    assert read_statement(statement_bytes(evidence)) == evidence


@SLOW
@given(EVIDENCE)
def test_every_number_travels_as_text(evidence: Evidence) -> None:
    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [number for item in value.values() for number in numbers(item)]
        if isinstance(value, list):
            return [number for item in value for number in numbers(item)]
        return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []

    assert numbers(json.loads(statement_bytes(evidence))) == []


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_to_the_same_bits(number: float) -> None:
    evidence = passing_evidence(DIGEST, validity=ValidityFacts(blind_auc=number))
    back = read_statement(statement_bytes(evidence)).validity.blind_auc
    assert back is not None
    assert (back, math.copysign(1, back)) == (number, math.copysign(1, number))


def test_the_statement_has_the_shape_that_in_toto_readers_know() -> None:
    content = statement(run_id="r1", reason_codes=("PG106",))
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    assert content["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert content["subject"] == [{"name": "models:/credit/1", "digest": {"sha256": DIGEST}}]
    predicate = content["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["configuration"] == [{"name": "privacy-gate.yaml", "digest": {"sha256": "d" * 64}}]
    assert predicate["url"] == "runs:/r1"
    assert (predicate["warnedTests"], predicate["failedTests"]) == (["PG106"], [])
    assert predicate["passedTests"] == ["PG101", "PG103", "PG104", "PG105", "PG201"]
    extension = predicate["privacyGate"]
    assert extension["schemaVersion"] == "1"
    assert extension["attacks"][0]["formulaVersion"] == "confidence/v1"
    assert extension["attacks"][0]["metrics"][0]["value"] == "0.512"
    assert extension["data"][0]["rowsUsed"] == "2000"
    assert extension["environment"] == {"python": "3.11", "library": {}}
    assert extension["validity"]["unknownLabels"] == "0"


@pytest.mark.parametrize(
    ("outcome", "codes", "result"),
    [
        ("pass", (), "PASSED"),
        ("pass", ("PG106",), "WARNED"),
        ("fail", ("PG201",), "FAILED"),
        ("inconclusive", ("PG105",), "FAILED"),
        ("inconclusive", ("PG106",), "FAILED"),
    ],
)
def test_only_a_pass_is_signed_as_one(outcome: str, codes: tuple[str, ...], result: str) -> None:
    assert statement(outcome=outcome, reason_codes=codes)["predicate"]["result"] == result


def test_a_check_that_was_not_made_is_not_listed_as_passed() -> None:
    passed = statement(validity=ValidityFacts(), attacks=())["predicate"]["passedTests"]
    assert not {"PG101", "PG106", "PG109", "PG201", "PG203"} & set(passed)


def test_times_are_utc_whatever_zone_they_came_in() -> None:
    local = datetime(2026, 1, 31, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert statement(tested_at=local)["predicate"]["privacyGate"]["testedAt"] == "2026-01-30T23:30:00Z"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcome": "waived"}, "outcome"),
        ({"model_digest": "E" * 64}, "model_digest"),
        ({"tested_at": datetime(2026, 1, 1)}, "timezone"),
        ({"validity": ValidityFacts(blind_auc=math.nan)}, "finite"),
        ({"validity": ValidityFacts(blind_auc=math.inf)}, "finite"),
        ({"nonce": "\ud800"}, "surrogate"),
        ({"reason_codes": ("PG106", "PG106")}, "twice"),
        ({"attacks": (AttackFacts("loss", "loss/v1", ()), AttackFacts("loss", "loss/v1", ()))}, "twice"),
        ({"attacks": (AttackFacts("loss", "loss/v1", (Metric("auc", 0.5), Metric("auc", 0.6))),)}, "twice"),
        ({"run_id": ""}, "run_id"),
        ({"limitations": ([],)}, "no place"),
    ],
)
def test_what_cannot_be_stated_is_not_signed(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        statement(**changes)


GATE = "predicate.privacyGate"
MISSING = [
    "_type",
    "subject",
    "predicateType",
    "predicate",
    "subject.0.name",
    "subject.0.digest",
    "subject.0.digest.sha256",
    "predicate.result",
    "predicate.configuration",
    "predicate.configuration.0.digest",
    "predicate.passedTests",
    "predicate.warnedTests",
    "predicate.failedTests",
    GATE,
    *(
        f"{GATE}.{key}"
        for key in (
            *("schemaVersion", "kind", "testedAt", "expiresAt", "nonce", "outcome", "reasonCodes", "attacks", "data"),
            *("splits", "validity", "card", "tool", "environment", "isolation", "gating", "notRun", "limitations"),
            *("tool.name", "tool.version", "environment.python", "environment.library"),
            *("attacks.0.id", "attacks.0.formulaVersion", "attacks.0.metrics", "attacks.0.metrics.0.id"),
            *(
                "data.0.role",
                "data.0.rows",
                "data.0.rowsUsed",
                "data.0.digest",
                "splits.origin",
                "validity.unknownLabels",
            ),
        )
    ),
]


@pytest.mark.parametrize("path", MISSING)
def test_a_required_field_that_is_missing_is_named(path: str) -> None:
    content = statement()
    container, last = at(content, path)
    del container[last]
    with pytest.raises(EvidenceRejected, match="is missing") as refused:
        from_statement(content)
    assert refused.value.code is ReasonCode.PG006
    assert str(last) in refused.value.message


WRONG = {
    "_type": "https://in-toto.io/Statement/v0.1",
    "predicateType": "https://slsa.dev/provenance/v1",
    "subject": [],
    "subject.0.digest.sha256": "E" * 64,
    "predicate": [],
    "predicate.result": "FAILED",
    "predicate.warnedTests": ["PG106"],
    "predicate.failedTests": "PG201",
    "predicate.passedTests": [1],
    "predicate.configuration": [],
    "predicate.url": "https://elsewhere/r1",
    f"{GATE}.schemaVersion": "2",
    f"{GATE}.outcome": "passed",
    f"{GATE}.kind": 1,
    f"{GATE}.nonce": "\ud800",
    f"{GATE}.testedAt": "2026-01-31",
    f"{GATE}.expiresAt": "2026-02-31T00:00:00Z",
    f"{GATE}.reasonCodes": ["PG201"],
    f"{GATE}.attacks": {},
    f"{GATE}.attacks.0.metrics.0.value": 0.5,
    f"{GATE}.attacks.0.metrics.0.ciLow": "nan",
    f"{GATE}.attacks.0.metrics.0.ciHigh": "inf",
    f"{GATE}.attacks.0.metrics.0.upper": "0.50",
    f"{GATE}.attacks.0.metrics.0.note": None,
    f"{GATE}.attacks.0.references": "1.0",
    f"{GATE}.attacks.0.seed": "01",
    f"{GATE}.attacks.0.rowsLeftOut": True,
    f"{GATE}.attacks.1.id": "confidence",
    f"{GATE}.data.0.rows": "1e3",
    f"{GATE}.data.0.rowsUsed": "٣",
    f"{GATE}.data.1.role": "members",
    f"{GATE}.splits.origin": "elsewhere",
    f"{GATE}.splits.asLogged": "true",
    f"{GATE}.validity.unknownLabels": "1",
    f"{GATE}.environment.library": {"numpy": 2},
    f"{GATE}.card.dataCategories": "health",
}


@pytest.mark.parametrize("path", WRONG)
def test_a_field_of_the_wrong_type_or_form_is_refused_by_its_path(path: str) -> None:
    with pytest.raises(EvidenceRejected) as refused:
        from_statement(changed(path, WRONG[path]))
    assert refused.value.code is ReasonCode.PG002


@pytest.mark.parametrize(
    "path",
    ["", ".tool", ".environment", ".validity", ".splits", ".card", ".attacks.0", ".attacks.0.metrics.0", ".data.0"],
)
def test_an_unknown_measurement_is_refused(path: str) -> None:
    with pytest.raises(EvidenceRejected, match="newer version"):
        from_statement(changed(f"{GATE}{path}.leaks", "yes"))


@pytest.mark.parametrize("path", ["extra", "subject.0.annotations", "predicate.extra", "predicate.configuration.0.uri"])
def test_unknown_fields_outside_the_extension_are_ignored_as_in_toto_asks(path: str) -> None:
    assert from_statement(changed(path, {"a": 1})) == from_statement(statement(run_id="r1"))


def test_a_path_in_the_message_leads_to_the_field() -> None:
    with pytest.raises(
        EvidenceRejected, match=r"statement\.predicate\.privacyGate\.attacks\[0\]\.metrics\[0\]\.upper: "
    ):
        from_statement(changed(f"{GATE}.attacks.0.metrics.0.upper", "0.50"))


@pytest.mark.parametrize("key", ["registeredModel", "version", "outcome", "splits", "subgroups"])
def test_a_null_is_refused_since_what_is_unknown_is_left_out(key: str) -> None:
    statement = to_statement(passing_evidence("a" * 64))
    statement["predicate"]["privacyGate"][key] = None
    with pytest.raises(EvidenceRejected, match="null"):
        from_statement(statement)
