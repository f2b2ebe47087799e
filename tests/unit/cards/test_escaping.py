"""Hostile names stay inert in Markdown, HTML and YAML, and are still read as they were written."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
import yaml
from card_cases import EXPIRES_AT, TESTED_AT, evidence, particulars, verdict
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mlflow_privacy_gate.cards import CardView, card_view, description, html_report, markdown_report, write_card
from mlflow_privacy_gate.cards.card import write_untested
from mlflow_privacy_gate.cards.escaping import Markdown, link, markdown, one_line, run_link, web_address, yaml_string
from mlflow_privacy_gate.cards.front_matter import take_apart
from mlflow_privacy_gate.cards.markers import BEGIN, END
from mlflow_privacy_gate.cards.particulars import AuthorsWords, Mitigation, SignOff, WaiverInForce
from mlflow_privacy_gate.cards.rows import FieldRow
from mlflow_privacy_gate.cards.untested import UntestedView, untested_view
from mlflow_privacy_gate.evidence.facts import CardClaims, DataFacts, NotRun, SubgroupFacts
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.vocabulary import Finding, Outcome, ReasonCode

HOSTILE = (
    "<script>alert(1)</script>",
    "a|b|c",
    "`code` ``more``",
    "one\ntwo\r\n\r\n# three",
    "[x](javascript:alert(1))",
    "![x](https://tracker.example/p.png)",
    "{{ 7 * 7 }}{% include 'x' %}{# c #}",
    BEGIN,
    END,
    "---",
    "# heading",
    "1. list",
    "- item",
    "> quote",
    "*bold* _em_ ~~gone~~",
    "&lt;b&gt; &amp; &#124;",
    "<!-- gone -->",
    "</td></table><img src=x onerror=alert(1)>",
    '"; drop: [yaml',
    "\\| \\",
    "x: y\n  z: 1",
    "\u202egnp.exe",
    "https://evil.example/<b>",
    "$x^2$ @someone",
    "]]>",
    "\x00\x07",
    "=====",
    "+ plus",
)
hostile_texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from([*HOSTILE, " ", "|", "`", "\n", "<", "a", "\\"]), max_size=5).map("".join),
    st.text(max_size=40),
)
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INERT = {"text", "text_special", "inline", "paragraph_open", "paragraph_close", "softbreak"}
INERT |= {f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}


def flat(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *flat(token.children or []))]


def words(tokens: list[Token]) -> str:
    return "".join(token.content for token in flat(tokens) if token.type in ("text", "text_special"))


@given(hostile_texts)
@settings(max_examples=300)
def test_a_value_in_a_table_cell_is_one_cell_of_plain_text(value: str) -> None:
    tokens = RENDERER.parse(f"| a | b |\n|---|---|\n| {markdown(value)} | end |\n")
    assert {token.type for token in flat(tokens)} <= INERT
    cells = [token for token in flat(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert words(tokens) == f"ab{one_line(value)}end"


@given(hostile_texts.filter(lambda text: one_line(text) != ""))
@settings(max_examples=300)
def test_a_value_that_begins_a_line_is_plain_text(value: str) -> None:
    tokens = RENDERER.parse(f"Words.\n{markdown(value)}\n\nMore.\n")
    assert {token.type for token in flat(tokens)} <= INERT
    assert words(tokens) == f"Words.{one_line(value)}More."


@given(hostile_texts)
def test_a_value_is_one_line_without_controls(value: str) -> None:
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", one_line(value))


def test_what_is_markdown_already_is_not_escaped_twice() -> None:
    assert markdown(Markdown("**b**")) == "**b**"
    assert markdown(markdown("a_b")) == "a\\_b"


@given(hostile_texts)
@example("\ufeff")
@example("\U0001f600")
def test_a_yaml_string_is_read_back_as_it_was_in_block_and_flow(value: str) -> None:
    value = "".join(c for c in value if not "\ud800" <= c <= "\udfff")
    assert yaml.safe_load(f"a: {yaml_string(value)}\nb: [{yaml_string(value)}]\n") == {"a": value, "b": [value]}


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "data:text/html,x", "runs:/1/a", "//evil.example", "https:", "http://[", "vbscript:x"],
)
def test_only_web_addresses_become_links(target: str) -> None:
    assert web_address(target) is None
    assert {t.type for t in flat(RENDERER.parse(link("words", target)))} <= INERT


@given(hostile_texts, hostile_texts)
def test_a_link_to_a_run_stays_in_mlflow_whatever_the_run_is_called(text: str, run_id: str) -> None:
    tokens = flat(RENDERER.parse(f"before {run_link(text, run_id)} after\n"))
    (opened,) = [token for token in tokens if token.type == "link_open"]
    assert str(opened.attrs["href"]).startswith("#/runs/")
    assert {token.type for token in tokens} <= INERT | {"link_open", "link_close"}


@given(hostile_texts, hostile_texts)
def test_a_link_leads_where_it_says_and_ends_where_it_should(text: str, path: str) -> None:
    tokens = flat(RENDERER.parse(f"before {link(text, 'https://mlflow.example/' + path)} after\n"))
    links = [token for token in tokens if token.type == "link_open"]
    assert len(links) == 1
    assert str(links[0].attrs["href"]).startswith("https://mlflow.example/")
    assert {token.type for token in tokens} <= INERT | {"link_open", "link_close"}


class Tags(HTMLParser):
    """Collects tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


def hostile_view(name: str) -> CardView:
    facts = evidence(
        registered_model=name,
        model_uri=f"models:/{name}/1",
        run_id=name,
        data=(
            DataFacts("members", 900, 900, "x", source=name, mlflow_name=name),
            DataFacts("non_members", 900, 900, "y", source=name),
        ),
        card=CardClaims(data_categories=(name,)),
        subgroups=(SubgroupFacts(name, name, 500, 500, 0.51),),
        not_run=(NotRun(name, name),),
        limitations=(name,),
    )
    finding = Finding(ReasonCode.PG201, name, "loss", 0.6, 0.55)
    said = particulars(
        author=AuthorsWords(name, name, name, name),
        evaluator=name,
        verify_command=name,
        signer=name,
    )
    return card_view(facts, verdict(Outcome.FAIL, findings=(finding,), margin_source=name), said)


def officers_view(name: str) -> CardView:
    said = particulars(
        from_record=True,
        waivers=(WaiverInForce((name,), name, name, name, EXPIRES_AT, name, name),),
        sign_offs=(SignOff(name, TESTED_AT, name, name),),
        mitigations=(Mitigation(name, 0.51, 0.01, name),),
        remarks=(name,),
    )
    return card_view(evidence(), verdict(Outcome.FAIL), said)


def hostile_untested(name: str) -> UntestedView:
    model = ResolvedModel(name, "file:///m", name, name, run_id=name, lineage_note=name)
    dataset = DatasetInput(name, "d", name, "local", name)
    return untested_view(
        model, Finding(ReasonCode.PG002, name), datasets=(dataset,), signature=FieldRow("Inputs", None, name)
    )


def skeleton(text: str) -> list[tuple[str, str]]:
    return [(token.type, token.tag) for token in flat(RENDERER.parse(text)) if not token.type.startswith("text")]


@given(hostile_texts.filter(lambda text: one_line(text) != ""))
@settings(max_examples=60, deadline=None)
def test_no_name_changes_the_build_of_card_or_report(name: str) -> None:
    plain, view = hostile_view("name"), hostile_view(name)
    card = write_card("---\nlicense: mit\n---\n# Model\n", view)
    plain_card = write_card("---\nlicense: mit\n---\n# Model\n", plain)
    assert skeleton(take_apart(card).body) == skeleton(take_apart(plain_card).body)
    assert skeleton(markdown_report(view)) == skeleton(markdown_report(plain))
    page, plain_page = Tags(), Tags()
    page.feed(html_report(view))
    plain_page.feed(html_report(plain))
    assert (page.tags, page.attributes) == (plain_page.tags, plain_page.attributes)
    assert write_card(card, view) == card


@given(hostile_texts.filter(lambda text: one_line(text) != ""))
@settings(max_examples=60, deadline=None)
def test_no_name_changes_the_build_of_an_untested_card_or_its_description(name: str) -> None:
    plain, view = hostile_untested("name"), hostile_untested(name)
    card = write_untested("# Model\n", view)
    assert skeleton(take_apart(card).body) == skeleton(take_apart(write_untested("# Model\n", plain)).body)
    assert skeleton(write_untested(None, view)) == skeleton(write_untested(None, plain))
    assert skeleton(description(card, view, existing="Words.")) == skeleton(description(card, plain, existing="Words."))
    assert write_untested(card, view) == card


@given(hostile_texts.filter(lambda text: one_line(text) != ""))
@settings(max_examples=60, deadline=None)
def test_no_word_of_an_officer_or_of_a_mitigation_changes_the_build(name: str) -> None:
    plain, view = officers_view("name"), officers_view(name)
    assert skeleton(take_apart(write_card(None, view)).body) == skeleton(take_apart(write_card(None, plain)).body)
    assert skeleton(markdown_report(view)) == skeleton(markdown_report(plain))
    page, plain_page = Tags(), Tags()
    page.feed(html_report(view))
    plain_page.feed(html_report(plain))
    assert (page.tags, page.attributes) == (plain_page.tags, plain_page.attributes)


def test_template_syntax_in_a_name_is_shown_and_never_run() -> None:
    view = hostile_view("{{ 7777 * 7 }}{% raw %}")
    assert "{{ 7777 * 7 }}{% raw %}" in html.unescape(html_report(view))
    assert "54439" not in markdown_report(view)
