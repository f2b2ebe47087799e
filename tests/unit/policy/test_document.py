from __future__ import annotations

import time

import pytest

from mlflow_privacy_gate.policy.document import SIZE_LIMIT, read_document


def form_problems(data: bytes) -> tuple[str, ...]:
    document = read_document(data, "p.yaml")
    assert document.problems
    return document.sorted_problems()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "p.yaml:1: the file is empty"),
        (b"  \n# only a comment\n", "p.yaml:1: the file is empty"),
        (b"version: 1\nmode: \xff\n", "p.yaml:2: not UTF-8"),
        ("version: 1\n".encode("utf-16"), "p.yaml:1: not UTF-8"),
        (b"- a\n- b\n", "p.yaml:1: expected keys and values"),
        (b"just words\n", "p.yaml:1: expected keys and values"),
        (b"a: [1, 2\n", "p.yaml:2: not YAML"),
        (b"a: b: c\n", "p.yaml:1: not YAML"),
        (b"version: 1\n\tmode: warn\n", "p.yaml:2: not YAML"),
        (b"a: \x00\n", "p.yaml:1: not YAML"),
        (b"a: 1\n---\nb: 2\n---\nc: 3\n", "p.yaml:4: a second document"),
        (b"a: &x 1\n", "p.yaml:1: anchors and aliases"),
        (b"a: 1\nb: !!python/object/apply:os.system [ls]\n", "p.yaml:2: tags"),
        (b"? [a, b]\n: 1\n", "p.yaml:1: a key must be a plain word"),
        (b"a: " + b"[" * 5000, "p.yaml:1: nested more than"),
        (b"#" * (SIZE_LIMIT + 1), "p.yaml:1: the file is larger than"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_line(data: bytes, expected: str) -> None:
    assert form_problems(data)[0].startswith(expected)


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    started = time.process_time()
    assert all("anchors and aliases" in problem for problem in form_problems("\n".join(lines).encode()))
    assert time.process_time() - started < 2


def test_two_documents_after_a_marker_are_refused_and_one_is_not() -> None:
    assert read_document(b"---\na: 1\n", "p.yaml").values == {"a": 1}
    assert "a second document" in form_problems(b"a: 1\n---\nb: 2\n---\n")[0]


def test_scalars_follow_the_core_schema() -> None:
    text = b"a: off\nb: 1e-3\nc: 0o10\nd: '1'\ne: ~\nf: True\ng: 010\nh: 12:30\ni: -.5\nj:\n"
    assert read_document(text, "p.yaml").values == {
        "a": "off",
        "b": 0.001,
        "c": "0o10",
        "d": "1",
        "e": None,
        "f": True,
        "g": 10,
        "h": "12:30",
        "i": -0.5,
        "j": None,
    }


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert read_document(b"\xef\xbb\xbfversion: 1\n", "p.yaml").values == {"version": 1}


def test_duplicate_keys_are_found_at_any_depth() -> None:
    document = read_document(b"a:\n  b: 1\n  c: {d: 1, d: 2}\n  b: 3\n", "p.yaml")
    assert document.sorted_problems() == (
        "p.yaml:3: a.c.d: stands twice (first in line 3)",
        "p.yaml:4: a.b: stands twice (first in line 2)",
    )
