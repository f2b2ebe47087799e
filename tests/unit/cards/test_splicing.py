"""Whatever YAML an author wrote, ours is added without a change to it, or the card is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from card_cases import failing_view, passing_view
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_privacy_gate.cards import write_card
from mlflow_privacy_gate.cards.front_matter import take_apart
from mlflow_privacy_gate.errors import CardError

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, width=32),
    st.dates(),
    st.text(max_size=30),
    st.sampled_from(
        ["# no comment", "a: b", "- x", "line\nline\n\n", "---", "{x}", "'", '"', "privacy_gate:", " lead", "\ttab"]
    ),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
keys = st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=8) | st.sampled_from(
    ["tags", "a b", "x: y"]
)
claims = st.fixed_dictionaries(
    {},
    optional={
        "personal_data": st.booleans(),
        "data_categories": st.lists(st.sampled_from(["health", "children"]), max_size=2),
        "max_attack_auc": st.floats(0.5, 1.0),
        "differential_privacy": st.just({"epsilon": 3.0, "delta": 1e-5, "unit": "person"}),
        "verdict": st.sampled_from(["pass", "fail", None]),
        "margin": st.just(0.55),
    },
)
metrics = st.lists(
    st.fixed_dictionaries({"type": st.just("accuracy"), "value": st.floats(0, 1)}), min_size=1, max_size=2
)
results = st.fixed_dictionaries(
    {
        "task": st.just({"type": "tabular-classification"}),
        "dataset": st.just({"type": "t", "name": "n"}),
        "metrics": metrics,
    }
)
models = st.lists(
    st.fixed_dictionaries({"name": keys, "results": st.lists(results, max_size=2)}), min_size=1, max_size=2
)


@st.composite
def cards(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A card with front matter of any content and style, and that content."""
    content: dict[str, Any] = draw(st.dictionaries(keys, values, max_size=4))
    if draw(st.booleans()):
        content["privacy_gate"] = draw(st.one_of(st.none(), claims))
    if draw(st.booleans()):
        content["model-index"] = draw(st.one_of(st.none(), models))
    if draw(st.booleans()):
        content = dict(draw(st.permutations(list(content.items()))))
    flow = draw(st.sampled_from([None, True, False]))
    style = draw(st.sampled_from([None, '"', "'", "|", ">"]))
    width, indent = draw(st.sampled_from([20, 80, 1000])), draw(st.sampled_from([2, 4]))
    text = yaml.safe_dump(
        content,
        sort_keys=False,
        default_flow_style=flow,
        default_style=style,
        width=width,
        indent=indent,
        allow_unicode=draw(st.booleans()),
    )
    return f"---\n{text}---\nBody.\n", content


def theirs(card: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(take_apart(card).yaml_text) or {}
    return {key: value for key, value in content.items() if key not in ("privacy_gate", "model-index")}


@given(cards())
@settings(max_examples=150, deadline=None)
def test_the_authors_content_is_kept_and_a_second_writing_changes_nothing(drawn: tuple[str, dict[str, Any]]) -> None:
    card, _ = drawn
    try:
        written = write_card(card, passing_view())
    except CardError:
        return  # refused, and so untouched; that common forms are not refused is another test's promise
    assert repr(theirs(written)) == repr(theirs(card))
    assert write_card(written, passing_view()) == written
    assert write_card(write_card(written, failing_view()), passing_view()) == written


@pytest.mark.parametrize("flow", [None, True, False])
@pytest.mark.parametrize("indent", [2, 4])
def test_the_forms_that_yaml_writers_use_are_never_refused(flow: bool | None, indent: int) -> None:
    content = {
        "license": "mit",
        "privacy_gate": {"personal_data": True, "data_categories": ["health"], "verdict": "fail"},
        "model-index": [{"name": "m", "results": [{"task": {"type": "t"}, "dataset": {}, "metrics": []}]}],
        "tags": ["a", "b"],
    }
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=flow, indent=indent)
    written = write_card(f"---\n{text}---\nBody.\n", passing_view())
    section = yaml.safe_load(take_apart(written).yaml_text)["privacy_gate"]
    assert (section["verdict"], section["data_categories"]) == ("pass", ["health"])


def test_a_comment_behind_a_value_of_ours_survives_its_change() -> None:
    card = "---\nprivacy_gate:\n  verdict: fail  # shown on the intranet\n  personal_data: true\n---\nBody.\n"
    assert "  verdict: pass  # shown on the intranet\n" in write_card(card, passing_view())


def test_a_value_of_ours_that_an_author_turned_into_something_else_is_an_error_with_its_line() -> None:
    with pytest.raises(CardError, match=r"^line 4: privacy_gate.verdict is the gate's own"):
        write_card("---\nprivacy_gate:\n  margin: 0.5\n  verdict: [pass]\n---\nBody.\n", passing_view())


@pytest.mark.parametrize(
    "front_matter",
    [
        "privacy_gate: &claims\n  max_attack_auc: 0.52\nother: *claims",
        "kept: &model {name: m, results: []}\nmodel-index:\n- *model",
    ],
    ids=["claims that stand elsewhere too", "a model that stands elsewhere too"],
)
def test_a_card_whose_own_content_would_change_with_ours_is_refused(front_matter: str) -> None:
    with pytest.raises(CardError, match="left alone"):
        write_card(f"---\n{front_matter}\n---\nBody.\n", passing_view())
