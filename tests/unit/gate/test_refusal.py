from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.gate import PromotionTarget, Route, refuse
from mlflow_privacy_gate.gate.refusal import LINE
from mlflow_privacy_gate.vocabulary import REASONS, Effect, Finding, ReasonCode

TARGET = PromotionTarget("credit", "7", Route.ALIAS, "champion", "e" * 64, evidence_location="runs:/abc/privacy_gate")
FINDINGS = (
    Finding(ReasonCode.PG201, "The attack loss tells training rows apart with AUC 0.7340, over the margin 0.55."),
    Finding(ReasonCode.PG201, "The attack entropy tells training rows apart with AUC 0.7020, over the margin 0.55."),
    Finding(ReasonCode.PG105, "Only 99 of 2,000 members could be used."),
    Finding(ReasonCode.PG106, "96% of the scores are tied."),
)


def test_every_line_of_a_refusal_ends_so_that_it_can_be_read_run_together_as_in_mlflows_dialog() -> None:
    whole = re.sub(r"\n +", " ", refuse(TARGET, FINDINGS).refusal)
    assert [line for line in whole.splitlines() if line and line[-1] not in ".:"] == []


def test_a_refusal_reads_in_the_order_what_why_remedy_where() -> None:
    found, remedies = refuse(TARGET, FINDINGS).refusal.split("\nWhat would allow it:\n")
    assert found.splitlines() == [
        "Privacy gate refused alias champion for credit version 7: attack AUC over the margin (PG201); too few rows (PG105).",
        "",
        "Found:",
        "- PG201: The attack loss tells training rows apart with AUC 0.7340, over the margin 0.55.",
        "- PG201: The attack entropy tells training rows apart with AUC 0.7020, over the margin 0.55.",
        "- PG105: Only 99 of 2,000 members could be used.",
        "- PG106 (warning): 96% of the scores are tied.",
    ]
    remedy = [" ".join(REASONS[code].remedy.split()) for code in (ReasonCode.PG201, ReasonCode.PG105)]
    assert " ".join(remedies.split()) == f"- {remedy[0]}. - {remedy[1]}. Evidence: runs:/abc/privacy_gate."


@pytest.mark.parametrize(
    ("route", "value", "said"),
    [
        (Route.STAGE, "Production", "refused stage Production for credit version 7:"),
        (Route.ALIAS, "champion", "refused alias champion for credit version 7:"),
        (Route.CREATE, "credit", "refused credit version 7 as a new version of a guarded model:"),
        (Route.COPY, "prod-credit", "refused the copy of a version into the guarded model prod-credit:"),
        (Route.RENAME, "prod-credit", "refused the guarded name prod-credit for credit version 7:"),
    ],
)
def test_the_first_line_says_what_was_refused(route: Route, value: str, said: str) -> None:
    target = replace(TARGET, route=route, value=value)
    assert said in refuse(target, FINDINGS).refusal.splitlines()[0]


@pytest.mark.parametrize("code", list(ReasonCode))
def test_every_blocking_code_tells_what_would_allow_it(code: ReasonCode) -> None:
    text = refuse(TARGET, [Finding(code, "x", effect_override=Effect.REFUSE)]).refusal
    assert " ".join(REASONS[code].remedy.split()) in " ".join(text.split())
    assert REASONS[code].title in text.splitlines()[0]


@given(st.text(max_size=300), st.text(max_size=300))
def test_hostile_names_cannot_add_lines_or_unseen_characters(name: str, value: str) -> None:
    target = replace(TARGET, name=name, value=value)
    plain = refuse(replace(TARGET, name="a", value="b"), FINDINGS).refusal
    text = refuse(target, FINDINGS).refusal
    assert len(text.splitlines()) == len(plain.splitlines())
    assert all(character.isprintable() or character == "\n" for character in text)


def test_lines_are_short_enough_for_a_dialog() -> None:
    long = Finding(ReasonCode.PG101, "Members and non-members differ without the model. " * 8)
    lines = refuse(TARGET, [long]).refusal.splitlines()
    assert all(len(line) <= LINE for line in lines[1:])


def test_without_a_place_for_evidence_the_refusal_says_that_there_is_none() -> None:
    assert "Evidence: none that is believed." in refuse(replace(TARGET, evidence_location=None), FINDINGS).refusal
