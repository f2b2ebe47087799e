"""Promises on ``privacy_gate/splits.json``: it round-trips, and nothing that was not meant is read from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.splits.manifest import SCHEMA, LoggedSplit, SplitManifest, manifest_sha256

SIDE = LoggedSplit(
    "s3://b/train.parquet", 10, "rowset-sha256/v1:" + "a" * 64, {"x": "number", "y": "integer"}, "members", "0123abcd"
)
MANIFEST = SplitManifest(SCHEMA, "y", SIDE, replace(SIDE, source="/data/test.csv"), "x", "m-1")


@given(
    name=st.text(min_size=1),
    source=st.text(min_size=1),
    rows=st.integers(1, 2**40),
    model_id=st.none() | st.text(min_size=1),
)
def test_a_manifest_round_trips_byte_for_byte(name: str, source: str, rows: int, model_id: str | None) -> None:
    side = LoggedSplit(source, rows, SIDE.digest, {name: "text"})
    try:
        text = SplitManifest(SCHEMA, name, side, side, None, model_id).to_json()
    except UnicodeEncodeError:  # half a surrogate pair is no text
        return
    again = SplitManifest.from_json(text)
    assert again.to_json() == text
    assert manifest_sha256(text) == manifest_sha256(again.to_json())


def changed(**changes: Any) -> bytes:
    content = json.loads(MANIFEST.to_json())
    for path, value in changes.items():
        *parents, key = path.split("__")
        at = content
        for parent in parents:
            at = at[parent]
        if value is KeyError:
            del at[key]
        else:
            at[key] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (changed(target=KeyError), "target: Field required"),
        (changed(members__rows="10"), "members.rows"),
        (changed(members__rows=0), "members.rows"),
        (changed(members__rows=True), "members.rows"),
        (changed(non_members__digest="sha256:00"), "non_members.digest"),
        (changed(members__columns={}), "members.columns"),
        (changed(members__columns={"x": "colour", "y": "integer"}), "members.columns.x"),
        (changed(schema="mlflow-privacy-gate/splits/v2"), "schema"),
        (changed(surprise=1), "surprise"),
        (changed(target="z"), "target: 'z' is not among members.columns"),
        (changed(group="z"), "group: 'z' is not among"),
        (b"[]", "the whole file"),
        (b"", "privacy_gate/splits.json"),
        (b"\xff", "privacy_gate/splits.json"),
        (MANIFEST.to_json().replace(b'"target"', b'"target": "y", "target"'), "target: stands more than once"),
        (MANIFEST.to_json().replace(b'"rows": 10', b'"rows": NaN'), "rows"),
    ],
)
def test_a_manifest_that_is_not_exactly_one_names_the_key(text: bytes, named: str) -> None:
    with pytest.raises(SplitsUnavailable) as caught:
        SplitManifest.from_json(text)
    assert named in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(SplitsUnavailable, match=r"members\.rows.*non_members\.source"):
        SplitManifest.from_json(changed(members__rows=-1, non_members__source=3))
