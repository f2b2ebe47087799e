"""One block between two markers, or an error with the lines: never a guess."""

from __future__ import annotations

import pytest
from card_cases import passing_view

from mlflow_privacy_gate.cards import write_card
from mlflow_privacy_gate.cards.markers import BEGIN, END
from mlflow_privacy_gate.errors import CardError

HEAD = "---\nlicense: mit\n---\n# Model\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"\n{BEGIN}\n\n{BEGIN}\n\n{END}\n", "lines 6 and 8: more than one privacy-gate begin marker"),
        (f"\n{BEGIN}\n\n{END}\n\n{END}\n", "lines 8 and 10: more than one privacy-gate end marker"),
        (f"\n{END}\n\n{BEGIN}\n", "line 6: the privacy-gate end marker stands before the begin on line 8"),
        (f"\n{BEGIN}\n", "line 6: a privacy-gate begin marker without an end after it"),
        (f"\n{END}\n", "line 6: a privacy-gate end marker without a begin before it"),
        (
            "\n[//]: # (privacy-gate:begin v2)\n",
            "line 6: [//]: # (privacy-gate:begin v2) is a marker this version does not know",
        ),
    ],
)
def test_odd_markers_are_an_error_with_their_lines(body: str, message: str) -> None:
    with pytest.raises(CardError) as caught:
        write_card(HEAD + body, passing_view())
    assert caught.value.message.startswith(message)


def test_text_before_and_after_the_block_stays_where_it_is() -> None:
    card = f"{HEAD}Before.\n{BEGIN}\nold verdict\n{END}\nAfter.\n"
    written = write_card(card, passing_view())
    assert "old verdict" not in written
    assert f"# Model\nBefore.\n\n{BEGIN}\n" in written
    assert written.endswith(f"{END}\n\nAfter.\n")
    assert write_card(written, passing_view()) == written


def test_a_marker_quoted_in_a_sentence_is_text() -> None:
    card = f"{HEAD}The gate writes between {BEGIN} and {END} and nowhere else.\n"
    assert card[len(HEAD) :] in write_card(card, passing_view())
