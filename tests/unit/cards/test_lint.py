"""Every mistake in a card is found with its line, all at once, and a good card has none."""

from __future__ import annotations

import pytest
from card_cases import failing_view, passing_view
from card_shapes import PLAIN

from mlflow_privacy_gate.cards import write_card
from mlflow_privacy_gate.cards.lint import lint
from mlflow_privacy_gate.cards.markers import BEGIN, END


@pytest.mark.parametrize("card", [PLAIN, write_card(PLAIN, passing_view()), write_card(None, failing_view()), ""])
def test_a_good_card_has_no_mistakes(card: str) -> None:
    assert lint(card) == ()


def test_claims_markers_and_words_are_reported_together_with_their_lines() -> None:
    card = f"---\nprivacy_gate:\n  max_attack_auc: 55\n  cohorts: x\n---\n# M\n{END}\nThe model is anonymous.\n"
    found = lint(card)
    assert [problem.split(":")[0] for problem in found] == ["line 4", "line 3", "line 7", "line 8"]
    assert "unknown key 'cohorts' (did you mean cohort?)" in found[0]
    assert "end marker without a begin" in found[2]
    assert "'anonymous' is never said of a model" in found[3]


def test_two_blocks_are_a_mistake() -> None:
    card = f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"
    assert lint(card) == ("lines 1 and 3: more than one privacy-gate begin marker; keep one block",)


def test_broken_front_matter_is_reported_with_its_line_and_the_rest_is_still_looked_at() -> None:
    found = lint("---\nlicense: mit\ntags: [a\n---\nIt is safe.\n")
    assert found[0].startswith("line ")
    assert "front matter is not YAML" in found[0]
    assert found[1].startswith("line 5: 'safe'")


def test_front_matter_that_is_never_closed_is_one_mistake() -> None:
    assert len(lint("---\nlicense: mit\n")) == 1


def test_settings_in_front_matter_are_not_read_as_claims_about_the_model() -> None:
    assert lint("---\nprivate: true\nlicense: safe\n---\nBody.\n") == ()
