"""Our keys spliced into an author's front matter: values of ours replaced in place, missing ones inserted, nothing else moved.

Insertions go directly below the key they belong to (or directly behind an opening brace): there, no comment of the author's is parted from
what it comments, and no end of a nested block has to be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import yaml

from mlflow_privacy_gate.cards.claims import GATE_KEYS
from mlflow_privacy_gate.cards.front_matter import SECTION, FrontMatter, find_pair, pairs, read_mapping
from mlflow_privacy_gate.cards.yaml_text import Value, block_item, block_pair, flow, flow_pairs, indented
from mlflow_privacy_gate.errors import CardError

MODEL_INDEX = "model-index"
TASK_TYPE = "membership-inference"
TASK_NAME = "mlflow-privacy-gate"
# What takes the place of a result that no longer counts; `huggingface_hub` takes a value of null.
_NO_RESULT: Mapping[str, Value] = {
    "task": {"type": TASK_TYPE, "name": TASK_NAME},
    "dataset": {"type": "training-and-held-out-rows", "name": "unknown"},
    "metrics": [{"type": "mia_auc", "name": "Attack AUC", "value": None}],
}


@dataclass(frozen=True)
class _Edit:
    """Replace the characters from ``start`` up to ``end`` of the YAML text."""

    start: int
    end: int
    text: str


def splice(
    front: FrontMatter, section: Mapping[str, Value], model_name: str, result: Mapping[str, Value]
) -> FrontMatter:
    """Give front matter with our ``section`` under ``privacy_gate:`` and our ``result`` in ``model-index``.

    ``section`` holds the gate's keys in their order; ``result`` is one ``model-index`` result with our task type and name.
    CardError with a line where that is not possible without touching what is the author's.
    """
    node, before = read_mapping(front)
    _refuse_odd_index(front, before)
    edits = [*_section_edits(front, node, section), *_index_edits(front, node, model_name, result)]
    return _edited(front, before, edits, section, result)


def take_back(front: FrontMatter, verdict: str) -> FrontMatter:
    """Give front matter that states ``verdict`` and no figures: those of ours that stand there become null, no others are added.

    CardError as :func:`splice`.
    """
    node, before = read_mapping(front)
    _refuse_odd_index(front, before)
    present = before.get(SECTION)
    figures = [key for key in GATE_KEYS if isinstance(present, dict) and key in present]
    section: Mapping[str, Value] = {"verdict": verdict, **{key: None for key in figures if key != "verdict"}}
    old = _our_result(front, node)
    edits = [*_section_edits(front, node, section), *([_replace_result(front, old, _NO_RESULT)] if old else [])]
    return _edited(front, before, edits, section, _NO_RESULT if old else None)


def _edited(
    front: FrontMatter,
    before: Mapping[object, object],
    edits: list[_Edit],
    section: Mapping[str, Value],
    result: Mapping[str, Value] | None,
) -> FrontMatter:
    text = _with_blank_end(_apply(front.yaml_text, edits), front.newline)
    opening = front.opening or f"---{front.newline}"
    closing = front.closing or f"---{front.newline}{front.newline}"
    if not closing.endswith("\n"):
        closing += front.newline
    changed = replace(front, opening=opening, yaml_text=text, closing=closing)
    _hold_to_promise(changed, before, section, result)
    return changed


def _apply(text: str, edits: list[_Edit]) -> str:
    done, pieces = 0, []
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


def _with_blank_end(text: str, newline: str) -> str:
    """End with a blank line: without it, renderers take the last line above the closing `---` for a heading."""
    last = text.removesuffix("\n").removesuffix("\r").rpartition("\n")[2]
    return text + newline if last.strip() else text


def _section_edits(front: FrontMatter, node: yaml.MappingNode | None, section: Mapping[str, Value]) -> list[_Edit]:
    found = find_pair(node, SECTION, front)
    if found is None:
        return [_new_key(front, node, SECTION, section)]
    key, value = found
    if _is_null(value):
        return _fill_null(front, key, value, block_pair_lines(section), flow(section), _in_flow(node))
    if not isinstance(value, yaml.MappingNode):
        raise CardError(f"{_at(front, key)}: {SECTION}: expected keys below it")
    present = {child.value: content for child, content in pairs(value)}
    edits = [
        _replace_value(front, name, present[name], content) for name, content in section.items() if name in present
    ]
    missing = {name: content for name, content in section.items() if name not in present}
    if not missing:
        return edits
    if value.flow_style:
        return [*edits, _insert_behind(front, value, "{", flow_pairs(missing), more=bool(value.value))]
    first_child = value.value[0][0]
    return [*edits, _insert_below(front, key, first_child, block_pair_lines(missing))]


def block_pair_lines(section: Mapping[str, Value]) -> list[str]:
    """Give a mapping as block lines without indentation."""
    return [line for name, content in section.items() for line in block_pair(name, content)]


def _replace_value(front: FrontMatter, name: str, node: yaml.Node, content: Value) -> _Edit:
    start, end = node.start_mark.index, node.end_mark.index
    if not isinstance(node, yaml.ScalarNode) or node.style in ("|", ">"):
        raise CardError(f"{_at(front, node)}: {SECTION}.{name} is the gate's own; remove what stands there")
    text = flow(content)
    return _Edit(start, end, text if start != end else f" {text}")


def _index_edits(
    front: FrontMatter, node: yaml.MappingNode | None, model_name: str, result: Mapping[str, Value]
) -> list[_Edit]:
    entry: Mapping[str, Value] = {"name": model_name, "results": [result]}
    found = find_pair(node, MODEL_INDEX, front)
    if found is None:
        return [_new_key(front, node, MODEL_INDEX, [entry])]
    key, value = found
    if _is_null(value):
        return _fill_null(front, key, value, block_item(entry), flow([entry]), _in_flow(node))
    assert isinstance(value, yaml.SequenceNode)  # _refuse_odd_index has looked
    old = _our_result(front, node)
    if old is not None:
        return [_replace_result(front, old, result)]
    if not value.value:
        return [_insert_behind(front, value, "[", flow(entry), more=False)]
    model = next((m for m in value.value if _plain_value(m, "name") == model_name), value.value[0])
    results = find_pair(model, "results", front)
    if results is None:
        raise CardError(f"{_at(front, model)}: {MODEL_INDEX}: a model needs `results:`")
    if _is_null(results[1]):
        return _fill_null(front, *results, block_item(result), flow([result]), _in_flow(model))
    if _in_flow(results[1]):
        return [_insert_behind(front, results[1], "[", flow(result), more=bool(results[1].value))]
    return [_insert_below(front, results[0], results[1].value[0], block_item(result))]


def _our_result(front: FrontMatter, node: yaml.MappingNode | None) -> yaml.Node | None:
    found = find_pair(node, MODEL_INDEX, front)
    models = found[1].value if found is not None and isinstance(found[1], yaml.SequenceNode) else []
    return next((result for model in models for result in _results(model) if _is_ours(result)), None)


def _replace_result(front: FrontMatter, old: yaml.Node, result: Mapping[str, Value]) -> _Edit:
    start = old.start_mark.index
    if _in_flow(old):
        return _Edit(start, old.end_mark.index, flow(result))
    column, text = old.start_mark.column, front.yaml_text
    end = text.find("\n", start) + 1
    while end < len(text):
        line = text[end : _next_line(text, end)]
        if not line.strip() or len(line) - len(line.lstrip(" ")) < column:
            break
        end = _next_line(text, end)
    lines = [line[2:] for line in block_item(result)]  # without the dash, which stands there already
    body = indented(lines, column, front.newline)
    return _Edit(start, end, body[column:])


def _new_key(front: FrontMatter, node: yaml.MappingNode | None, name: str, content: Value) -> _Edit:
    if node is not None and node.flow_style:
        # Two keys may be new at once, so each brings its comma; YAML takes one before the closing brace.
        return _insert_behind(front, node, "{", flow_pairs({name: content}), more=True)
    column = node.start_mark.column if node is not None else 0
    end = len(front.yaml_text)
    return _Edit(end, end, indented(block_pair(name, content), column, front.newline))


def _fill_null(
    front: FrontMatter, key: yaml.Node, value: yaml.Node, lines: list[str], inline: str, in_flow: bool
) -> list[_Edit]:
    """Give content to a key that stands there empty (or as ``null``)."""
    start, end = value.start_mark.index, value.end_mark.index
    if in_flow:
        return [_Edit(start, end, inline if start != end else f" {inline}")]
    below = _next_line(front.yaml_text, key.end_mark.index)
    step = 0 if lines[0].startswith("- ") else 2
    insertion = _Edit(below, below, indented(lines, key.start_mark.column + step, front.newline))
    return [insertion] if start == end else [_Edit(start, end, ""), insertion]


def _insert_behind(front: FrontMatter, node: yaml.Node, brace: str, text: str, *, more: bool) -> _Edit:
    at = front.yaml_text.index(brace, node.start_mark.index) + 1
    return _Edit(at, at, f"{text}, " if more else text)


def _insert_below(front: FrontMatter, key: yaml.Node, first: yaml.Node, lines: list[str]) -> _Edit:
    """Insert lines directly below ``key``'s line, indented like the line of its ``first`` child."""
    text = front.yaml_text
    start_of_first = text.rfind("\n", 0, first.start_mark.index) + 1
    before = text[start_of_first : first.start_mark.index]
    if first.start_mark.line <= key.end_mark.line or before.strip(" ") not in ("", "-"):
        raise CardError(f"{_at(front, key)}: this form of YAML is not one the gate can add to; write it as plain lines")
    column = len(before) - len(before.lstrip(" "))
    below = _next_line(text, key.end_mark.index)
    return _Edit(below, below, indented(lines, column, front.newline))


def _next_line(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _refuse_odd_index(front: FrontMatter, content: Mapping[object, object]) -> None:
    index = content.get(MODEL_INDEX)
    if index is None:
        return
    node, _ = read_mapping(front)
    found = find_pair(node, MODEL_INDEX, front)
    line = _at(front, found[0]) if found is not None else f"line {front.first_line}"
    shape = isinstance(index, list) and all(
        isinstance(model, dict) and isinstance(model.get("results") or [], list) for model in index
    )
    if not shape or found is None:
        raise CardError(f"{line}: {MODEL_INDEX}: expected a list of models, each with `name:` and a list of `results:`")


def _hold_to_promise(
    changed: FrontMatter,
    before: Mapping[object, object],
    section: Mapping[str, Value],
    result: Mapping[str, Value] | None,
) -> None:
    """Parse what would be written; CardError unless it holds the author's content unchanged, and ours once."""
    try:
        _, after = read_mapping(changed)
    except CardError as exc:
        raise CardError(f"the card cannot be added to without breaking it ({exc.message}); it was left alone") from exc
    ours = yaml.safe_load(flow(section)), [] if result is None else [yaml.safe_load(flow(result))]
    written = after.get(SECTION)
    kept = repr(_authors(before)) == repr(_authors(after))
    added = isinstance(written, dict) and repr({k: written.get(k) for k in section}) == repr(ours[0])
    results = [r for r in _index_results(after) if _is_our_content(r)]
    if not (kept and added and repr(results) == repr(ours[1])):
        raise CardError("the card's front matter has a form that the gate cannot add to; it was left alone")


def _authors(content: Mapping[object, object]) -> dict[object, object]:
    """Everything that is not ours, in order."""
    rest = {key: value for key, value in content.items() if key not in (SECTION, MODEL_INDEX)}
    section, index = content.get(SECTION), content.get(MODEL_INDEX)
    claims = {k: v for k, v in section.items() if k not in GATE_KEYS} if isinstance(section, dict) else {}
    models = []
    for model in index if isinstance(index, list) else []:
        results = [r for r in model.get("results") or [] if not _is_our_content(r)]
        if results or set(model) - {"name", "results"}:
            models.append({**model, "results": results})
    return {"rest": rest, "claims": claims, "models": models}


def _index_results(content: Mapping[object, object]) -> list[object]:
    index = content.get(MODEL_INDEX)
    return [result for model in index or [] for result in model.get("results") or []] if isinstance(index, list) else []


def _is_our_content(result: object) -> bool:
    task = result.get("task") if isinstance(result, dict) else None
    return isinstance(task, dict) and (task.get("type"), task.get("name")) == (TASK_TYPE, TASK_NAME)


def _is_ours(result: yaml.Node) -> bool:
    task = next((value for key, value in pairs(result) if key.value == "task"), None)
    return (_plain_value(task, "type"), _plain_value(task, "name")) == (TASK_TYPE, TASK_NAME)


def _results(model: yaml.Node) -> list[yaml.Node]:
    node = next((value for key, value in pairs(model) if key.value == "results"), None)
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _plain_value(node: yaml.Node | None, name: str) -> str | None:
    value = next((value for key, value in pairs(node) if key.value == name), None)
    return str(value.value) if isinstance(value, yaml.ScalarNode) else None


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _in_flow(node: yaml.Node | None) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _at(front: FrontMatter, node: yaml.Node) -> str:
    return f"line {front.first_line + node.start_mark.line}"
