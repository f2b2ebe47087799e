"""A registered version's description fits its column, with the author's text whole."""

from __future__ import annotations

import pytest
from card_cases import failing_view, passing_view
from card_shapes import LARGE, PLAIN

from mlflow_privacy_gate.cards import description, write_card
from mlflow_privacy_gate.cards.markers import BEGIN, END

BODY = PLAIN.rpartition("---\n")[2]


def test_an_empty_description_becomes_the_cards_body_without_front_matter() -> None:
    card = write_card(PLAIN, passing_view())
    written = description(card, passing_view(), existing="  \n", limit=100_000)
    assert written.startswith(BODY.rstrip())
    assert "license: mit" not in written
    assert written.rstrip() == card.rpartition("---\n")[2].rstrip()


@pytest.mark.parametrize("existing", [None, "", "Words of the author.", "Words.\r\nMore.\r\n"])
@pytest.mark.parametrize("card", [PLAIN, LARGE], ids=["plain", "large"])
def test_a_description_is_never_longer_than_its_column(card: str, existing: str | None) -> None:
    written = description(write_card(card, failing_view()), failing_view(), existing=existing)
    assert len(written) <= 5000
    assert "**FAIL**" in written
    assert written.startswith((existing or "").rstrip())


def test_writing_twice_gives_the_same_description() -> None:
    for existing in (None, "Words of the author."):
        once = description(write_card(PLAIN, passing_view()), passing_view(), existing=existing)
        assert description(write_card(PLAIN, passing_view()), passing_view(), existing=once) == once


def test_an_authors_own_description_is_appended_to_and_later_only_our_block_changes() -> None:
    card = write_card(PLAIN, passing_view())
    first = description(card, passing_view(), existing="Words that no card has.")
    second = description(write_card(PLAIN, failing_view()), failing_view(), existing=first)
    assert first.startswith("Words that no card has.\n\n" + BEGIN)
    assert second.startswith("Words that no card has.\n\n" + BEGIN)
    assert "**FAIL**" in second
    assert "**PASS**" not in second


def test_ours_is_shortened_with_a_link_where_the_room_is_short() -> None:
    author = "w" * 4000
    written = description(write_card(PLAIN, failing_view()), failing_view(), existing=author)
    assert written.startswith(author)
    assert "[The whole report](<https://mlflow.example.org/" in written
    assert f"[the training run](<#/runs/{failing_view().evidence.run_id}>)" in written
    assert "### Attacks run" not in written


def test_an_old_verdict_is_taken_out_where_no_new_one_fits() -> None:
    old = "w" * 4880 + f"\n\n{BEGIN}\n\nPASS\n\n{END}\n"
    written = description(write_card(PLAIN, failing_view()), failing_view(), existing=old)
    assert written == "w" * 4880


def test_a_text_without_room_for_anything_of_ours_is_left_as_it_is() -> None:
    assert description(write_card(PLAIN, failing_view()), failing_view(), existing="w" * 4990) == "w" * 4990


def test_what_was_found_stays_as_long_as_there_is_room() -> None:
    written = description(write_card(PLAIN, failing_view()), failing_view(), existing="w" * 1750)
    assert "### Findings" in written
    assert "### Attacks run" in written
    assert "### How the test was made" not in written
