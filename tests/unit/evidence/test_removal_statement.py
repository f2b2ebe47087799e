"""A removal statement says what an audit measured, reads back as nothing else, and cannot say more than its parts."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from removal_cases import removal_evidence

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.removal import (
    CalibratedFacts,
    EmaFacts,
    KsFacts,
    RankFacts,
    RemovalEvidence,
    SetFacts,
    least_favourable,
)
from mlflow_privacy_gate.evidence.removal_statement import (
    PREDICATE_TYPE,
    read_removal_statement,
    removal_statement_bytes,
)
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.vocabulary import ReasonCode, RemovalAnswer

EXAMPLE = removal_evidence()
RATES = st.floats(0, 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.integers(0, 10**9)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(timezone.utc))


@st.composite
def evidence(draw: st.DrawFn) -> RemovalEvidence:
    sets = st.none() | st.builds(SetFacts, COUNTS, COUNTS, st.none() | RATES)
    ema = draw(
        st.builds(
            EmaFacts,
            st.sampled_from(RemovalAnswer),
            TEXTS,
            RATES,
            st.just(EXAMPLE.ema.metrics),
            COUNTS,
            zeros=st.none() | COUNTS,
            rho=st.none() | RATES,
            fewest_zeros=st.none() | COUNTS,
            control=sets,
            held_out=sets,
        )
    )
    tests = st.lists(st.builds(RankFacts, TEXTS, TEXTS, TEXTS, TEXTS, RATES, RATES, RATES, RATES, TEXTS), max_size=3)
    calibrated = draw(
        st.builds(CalibratedFacts, st.sampled_from(RemovalAnswer), TEXTS, RATES, TEXTS, tests.map(tuple), COUNTS)
    )
    among = draw(st.none() | st.integers(0, 3))
    known = RemovalAnswer.NOT_RULED_OUT if among else RemovalAnswer.NOT_MEMORISED
    return replace(
        EXAMPLE,
        audited_at=draw(MOMENTS),
        answer=least_favourable((known, ema.answer, calibrated.answer)),
        reasons=tuple(draw(st.lists(TEXTS, max_size=3))),
        ema=ema,
        ks=draw(st.builds(KsFacts, value=st.none() | st.floats(0, 1e6), reason=st.none() | TEXTS)),
        calibrated=calibrated,
        query_among_members=among,
        run_id=draw(st.none() | TEXTS),
    )


@settings(deadline=None)
@given(evidence())
def test_an_audit_survives_the_statement_unchanged(found: RemovalEvidence) -> None:
    assert read_removal_statement(removal_statement_bytes(found)) == found


def test_the_subject_is_the_models_bytes_under_a_predicate_type_of_its_own() -> None:
    content = json.loads(removal_statement_bytes(EXAMPLE))
    assert content["subject"] == [{"name": "models:/credit/8", "digest": {"sha256": "a" * 64}}]
    assert content["predicateType"] == PREDICATE_TYPE
    assert PREDICATE_TYPE.endswith("/privacy-removal/v1")
    assert "modelDigest" not in content["predicate"]


def test_it_is_no_membership_test_and_opens_no_gate() -> None:
    with pytest.raises(EvidenceRejected, match="predicateType"):
        read_statement(removal_statement_bytes(EXAMPLE))


def changed(change: Any) -> bytes:
    content = copy.deepcopy(json.loads(removal_statement_bytes(EXAMPLE)))
    change(content["predicate"])
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("change", "where", "code"),
    [
        (lambda p: p.update(extra="1"), "extra", ReasonCode.PG002),
        (lambda p: p.update(modelDigest="b" * 64), "modelDigest", ReasonCode.PG002),
        (lambda p: p["ema"].update(rho=0.0069), "decimal string", ReasonCode.PG002),
        (lambda p: p["ema"].update(zeros="07"), "ema.zeros", ReasonCode.PG002),
        (lambda p: p["ema"].update(answer="memorised"), "ema.answer", ReasonCode.PG002),
        (lambda p: p["ema"].pop("answer"), "ema.answer", ReasonCode.PG006),
        (lambda p: p.pop("ks"), "ks", ReasonCode.PG006),
        (lambda p: p["calibrated"]["tests"][0].update(pValue="1e-3"), "pValue", ReasonCode.PG002),
        (lambda p: p["policy"].update(sha256="x"), "policy.sha256", ReasonCode.PG002),
        (lambda p: p.update(queryAmongMembers="5"), "least favourable", ReasonCode.PG002),
        (lambda p: p["ema"].update(answer="inconclusive"), "least favourable", ReasonCode.PG002),
        (lambda p: p.update(data=p["data"][1:]), "a query", ReasonCode.PG002),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: Any, where: str, code: ReasonCode) -> None:
    with pytest.raises(EvidenceRejected, match=where) as caught:
        read_removal_statement(changed(change))
    assert caught.value.code is code


@pytest.mark.parametrize("answer", RemovalAnswer)
def test_no_answer_is_better_than_the_worst_part(answer: RemovalAnswer) -> None:
    ema = replace(EXAMPLE.ema, answer=answer)
    assert removal_evidence(ema=ema, answer=answer).answer is answer
    for other in set(RemovalAnswer) - {answer}:
        with pytest.raises(UsageError, match="least favourable"):
            removal_evidence(ema=ema, answer=other)


def test_a_time_without_a_zone_cannot_be_stated() -> None:
    with pytest.raises(UsageError, match="timezone"):
        removal_statement_bytes(replace(EXAMPLE, audited_at=datetime(2026, 1, 1) + timedelta(days=1)))
