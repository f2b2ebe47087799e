"""Mutations of a JSON document that know its structure: one place replaced, deleted, duplicated or renamed."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=6,
)


def mutate(content: Any, data: st.DataObject) -> Any:
    """Replace, delete, duplicate or rename one place of a JSON document."""
    content = copy.deepcopy(content)
    *way, last = data.draw(st.sampled_from(_places(content)[1:]))
    container = content
    for step in way:
        container = container[step]
    action = data.draw(st.sampled_from(("replace", "delete", "duplicate", "rename")))
    if action == "delete":
        del container[last]
    elif action == "duplicate" and isinstance(container, list):
        container.append(copy.deepcopy(container[last]))
    elif action == "rename" and isinstance(container, dict):
        container[data.draw(st.text(max_size=8))] = container.pop(last)
    else:
        container[last] = data.draw(_JSON)
    return content


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for step, item in steps for place in _places(item, (*way, step)))]
