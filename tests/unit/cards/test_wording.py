"""No card, report or template of ours says of a model what no test shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from card_cases import failing_view, passing_view

from mlflow_privacy_gate.cards import CardView, html_report, markdown_report, write_card
from mlflow_privacy_gate.cards.card import write_untested
from mlflow_privacy_gate.cards.rows import FieldRow
from mlflow_privacy_gate.cards.templates import own_folder
from mlflow_privacy_gate.cards.untested import untested_view
from mlflow_privacy_gate.cards.wording import misuses
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.vocabulary import REASONS, Finding, ReasonCode

TEMPLATES = sorted(own_folder().iterdir())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_our_templates_say_nothing_of_the_kind(path: Path) -> None:
    assert misuses(path.read_text(encoding="utf-8")) == ()


@pytest.mark.parametrize("view", [passing_view(), failing_view()], ids=["pass", "fail"])
def test_nothing_we_print_says_anything_of_the_kind(view: CardView) -> None:
    for text in (write_card(None, view), html_report(view), markdown_report(view)):
        assert misuses(text) == ()


def test_an_untested_card_says_nothing_of_the_kind() -> None:
    model = ResolvedModel("models:/m-1", "file:///m")
    reason = Finding(ReasonCode.PG001, REASONS[ReasonCode.PG001].title)
    view = untested_view(model, reason, datasets=(), signature=FieldRow("Inputs (signature)", None, "none"))
    assert misuses(write_untested(None, view)) == ()


def test_no_reason_or_remedy_says_anything_of_the_kind() -> None:
    assert misuses("\n".join(f"{reason.title} {reason.remedy}" for reason in REASONS.values())) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The model is anonymous.", "anonymous"),
        ("Our Private model", "Private"),
        ("is safe to share", "safe"),
        ("fully GDPR-compliant", "GDPR-compliant"),
        ("there is no\nleakage here", "no leakage"),
        ("anonymised weights", "anonymised"),
    ],
)
def test_each_such_word_is_found_with_its_line(text: str, words: str) -> None:
    (found,) = misuses(f"First line.\n{text}")
    assert (found.line, found.words) == (2, words)


def test_words_that_merely_contain_one_are_left_alone() -> None:
    assert misuses("unsafe_allow_unsigned, privacy, safety factor, pseudonymous rows, leakage was found") == ()
