"""The removal report shows every answer with what it rests on, overclaims in no form, and keeps hostile names inert."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from removal_cases import removal_evidence

from mlflow_privacy_gate.cards.removal_report import (
    RemovalParticulars,
    ema_limits,
    html_removal,
    json_removal,
    ks_words,
    markdown_removal,
    p_value,
    reads_otherwise,
)
from mlflow_privacy_gate.cards.wording import misuses
from mlflow_privacy_gate.evidence.removal import EmaFacts, KsFacts, KsState, RemovalEvidence
from mlflow_privacy_gate.vocabulary import RemovalAnswer

SIGNED = RemovalParticulars("f" * 64, "9" * 64)
UNSIGNED = RemovalParticulars(None, "9" * 64)
EXAMPLE = removal_evidence()
HOSTILE = ("<script>alert(1)</script>", "a|b`c", "[x](javascript:alert(1))", "# heading\n- item", "{{ 7*7 }}")


def with_answer(answer: RemovalAnswer) -> RemovalEvidence:
    return removal_evidence(answer=answer, ema=replace(EXAMPLE.ema, answer=answer))


@pytest.mark.parametrize("answer", RemovalAnswer)
def test_every_answer_is_worded_without_overclaiming(answer: RemovalAnswer) -> None:
    for text in (markdown_removal(with_answer(answer), SIGNED), html_removal(with_answer(answer), SIGNED)):
        assert answer.upper() in text
        assert not misuses(re.sub(r"<style>.*?</style>", "", text, flags=re.S))
        assert not re.search(r"\b(proves|certif\w+|guarantee\w*|erased|compliant)\b", text, re.I)
        said = "cannot tell" if answer is RemovalAnswer.INCONCLUSIVE else "is no proof"
        assert said in text


def test_the_three_methods_stand_side_by_side_with_their_numbers() -> None:
    text = markdown_removal(EXAMPLE, SIGNED)
    for shown in ("0.0069", "7 of 100", "correctness (0.5200)", "confidence (0.5000)", "1.4667", "0.3930"):
        assert shown in text
    assert "below 0.0001" in text  # 1.9e-16 is never printed as zero, nor with an exponent
    assert "e-16" not in text
    assert "16 (clone, seed 0)" in text


def shown_beside(*, ks: float, lira: float) -> RemovalEvidence:
    calibrated = EXAMPLE.calibrated
    beside = replace(calibrated.tests[0], attack="lira_offline", formula="lira_offline/v1", p_value=lira)
    return removal_evidence(
        ks=KsFacts(KsState.FINITE, ks, 0.2, 0.2), calibrated=replace(calibrated, tests=(*calibrated.tests, beside))
    )


@pytest.mark.parametrize(
    ("ks", "lira", "named"),
    [
        (1.0, 0.051, ()),
        (0.99, 0.5, ("rho_KS",)),
        (1.2, 0.05, ("lira_offline",)),
        (0.2, 0.01, ("rho_KS", "lira_offline")),
    ],
)
def test_a_favourable_answer_never_hides_what_was_shown_beside_it_and_reads_otherwise(
    ks: float, lira: float, named: tuple[str, ...]
) -> None:
    found = shown_beside(ks=ks, lira=lira)
    differing = reads_otherwise(found)
    assert [name for name in ("rho_KS", "lira_offline") if name in (differing or "")] == list(named)
    for text in (markdown_removal(found, SIGNED), html_removal(found, SIGNED)):
        assert ("reading otherwise" in text) is bool(named)
        assert "Nothing that was measured" not in text
    assert json.loads(json_removal(found, SIGNED))["reads_otherwise"] == differing


@pytest.mark.parametrize("answer", [RemovalAnswer.NOT_RULED_OUT, RemovalAnswer.INCONCLUSIVE])
def test_an_unfavourable_answer_has_nothing_read_otherwise_against_it(answer: RemovalAnswer) -> None:
    found = replace(shown_beside(ks=0.1, lira=0.01), answer=answer, ema=replace(EXAMPLE.ema, answer=answer))
    assert reads_otherwise(found) is None


def test_emas_blind_spots_are_said_from_the_numbers_at_hand() -> None:
    said = " ".join(ema_limits(EXAMPLE.ema))
    assert "3 of 100 rows that look unseen are enough" in said
    assert "the other 97" in said
    assert "Up to 2 rows" in said
    assert "0.9800" in said
    assert "10 of 143" in said
    assert "0 of 184" in said


def test_without_a_rho_there_are_no_numbers_to_say_blind_spots_from() -> None:
    ema = EmaFacts(RemovalAnswer.INCONCLUSIVE, "Too few.", 0.1, EXAMPLE.ema.metrics, rows=1)
    evidence = removal_evidence(ema=ema, answer=RemovalAnswer.INCONCLUSIVE)
    assert ema_limits(ema) == ()
    assert "it could not be computed" in markdown_removal(evidence, SIGNED)
    assert "it could not be computed" in html_removal(evidence, SIGNED)


@pytest.mark.parametrize(
    ("ks", "said"),
    [
        (KsFacts(KsState.FINITE, 1.0), "1.0000 (1 or more: read as forgotten)"),
        (KsFacts(KsState.FINITE, 0.99999), "0.99999 (below 1: not read as forgotten)"),
        (KsFacts(KsState.INFINITE), "infinite (read as forgotten"),
        (KsFacts(KsState.UNDEFINED), "undefined"),
        (KsFacts(KsState.NOT_RUN, reason="no recipe"), "not run (no recipe)"),
    ],
)
def test_rho_ks_is_said_with_how_it_reads(ks: KsFacts, said: str) -> None:
    assert ks_words(ks).startswith(said)


@given(st.floats(0, 1))
def test_a_probability_is_never_printed_as_zero(value: float) -> None:
    assert p_value(value) == "below 0.0001" or float(p_value(value)) > 0


def test_an_unsigned_report_says_that_it_can_be_forged() -> None:
    for text in (markdown_removal(EXAMPLE, UNSIGNED), html_removal(EXAMPLE, UNSIGNED)):
        assert "can forge this" in text
    assert "can forge this" not in markdown_removal(EXAMPLE, SIGNED)


def test_the_json_holds_every_fact_as_a_number_and_the_exit_code() -> None:
    fields = json.loads(json_removal(EXAMPLE, SIGNED))
    assert (fields["answer"], fields["exit_code"]) == ("not memorised", 0)
    assert fields["ema"]["control"] == {"rows": 184, "zeros": 0, "cleared": 0.0}
    assert fields["audited_at"] == "2026-06-01T12:00:00Z"
    assert fields["envelope_sha256"] == "9" * 64


class Tags(HTMLParser):
    """Collects what a browser would see as elements and as attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(HOSTILE) | st.text(max_size=30))
def test_hostile_names_change_neither_html_nor_markdown(name: str) -> None:
    changes: dict[str, Any] = {
        "registered_model": f"x{name}",
        "reasons": (name,),
        "record": name,
        "limitations": (name,),
    }
    harmless, hostile = (
        removal_evidence(**dict.fromkeys(changes, ("x",)) | {"registered_model": "x", "record": "x"}),
        (removal_evidence(**changes)),
    )
    seen = []
    for evidence in (harmless, hostile):
        tags = Tags()
        tags.feed(html_removal(evidence, SIGNED))
        seen.append((tags.names, tags.attributes))
    assert seen[0] == seen[1]
    lines = markdown_removal(hostile, SIGNED).split("\n")
    assert len(lines) == len(markdown_removal(harmless, SIGNED).split("\n"))


def test_a_report_loads_nothing_and_runs_nothing() -> None:
    tags = Tags()
    tags.feed(html_removal(EXAMPLE, SIGNED))
    assert not {"script", "img", "link", "iframe"} & set(tags.names)
    assert "default-src 'none'" in html_removal(EXAMPLE, SIGNED)


def test_a_template_of_the_policys_own_stands_before_ours(tmp_path: Path) -> None:
    (tmp_path / "removal_report.md.j2").write_text("Ours: {{ view.answer }}\n")
    assert markdown_removal(EXAMPLE, SIGNED, templates=tmp_path) == "Ours: not memorised\n"
