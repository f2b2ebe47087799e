"""Templates are found in one place, escape without being asked, and never print what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlflow_privacy_gate.cards.templates import own_folder, render
from mlflow_privacy_gate.errors import CardError


def test_a_users_template_stands_before_ours_and_the_rest_stays_ours(tmp_path: Path) -> None:
    (tmp_path / "verdict.md.j2").write_text("ours: {{ word }}\n", encoding="utf-8")
    assert render("verdict.md.j2", folder=tmp_path, word="a") == "ours: a\n"
    assert (own_folder() / "block.md.j2").is_file()


def test_html_templates_escape_without_being_asked(tmp_path: Path) -> None:
    (tmp_path / "x.html.j2").write_text("<b>{{ word }}</b>", encoding="utf-8")
    assert render("x.html.j2", folder=tmp_path, word="<i>&") == "<b>&lt;i&gt;&amp;</b>"


def test_markdown_templates_escape_without_being_asked(tmp_path: Path) -> None:
    (tmp_path / "x.md.j2").write_text("**{{ word }}** {{ '*' }}", encoding="utf-8")
    assert render("x.md.j2", folder=tmp_path, word="a|b") == "**a&#124;b** \\*"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ missing }}", "'missing' is undefined"),
        ("{{ word.missing }}", "has no attribute 'missing'"),
        ("\n{% if %}", "x.md.j2:2:"),
        ("{% include 'nowhere.j2' %}", "template nowhere.j2 was not found"),
        ("{{ word.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_a_template_that_asks_for_what_is_not_there_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.md.j2").write_text(text, encoding="utf-8")
    with pytest.raises(CardError, match=message):
        render("x.md.j2", folder=tmp_path, word="a")


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="must name a folder"):
        render("block.md.j2", folder=tmp_path / "nowhere")
