"""The chain: whatever is changed, taken out, put in or moved is found, at the row where it happened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from mlflow_privacy_gate.evidence.ledger import (
    Entry,
    EntryKind,
    Head,
    KnownTests,
    Result,
    Row,
    from_line,
    next_row,
    shown,
    to_line,
    verify_chain,
)

ENVELOPE = '{"payload":"e30=","payloadType":"t","signatures":[]}'
SHA256 = hashlib.sha256(ENVELOPE.encode()).hexdigest()
AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)


def decision(number: int) -> Entry:
    return Entry(
        at=AT,
        kind=EntryKind.DECISION,
        actor="unauthenticated",
        workspace="default",
        name=f"modèle-{number}",
        result=Result.ALLOWED,
        version=str(number),
        model_digest="a" * 64,
        split_digests=("rowset-sha256/v1:" + "b" * 64, "rowset-sha256/v1:" + "c" * 64),
        target="alias champion",
        mode="enforce",
        policy_sha256="d" * 64,
        envelope_sha256=SHA256,
        codes=("PG106",),
    )


def chain(length: int = 5) -> list[Row]:
    first = replace(decision(1), kind=EntryKind.ATTESTATION, result=Result.RECORDED)
    rows = [next_row(Head(), first, ENVELOPE)]
    while len(rows) < length:
        rows.append(next_row(rows[-1].head, decision(len(rows) + 1)))
    return rows


def test_an_untouched_chain_holds() -> None:
    rows = chain()
    found = verify_chain(rows, rows[-1].head)
    assert (found.rows, found.broken, found.head) == (5, None, rows[-1].head)
    assert verify_chain([], Head()).broken is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", AT.replace(microsecond=1)),
        ("kind", EntryKind.WAIVER),
        ("actor", "somebody"),
        ("workspace", "team"),
        ("name", "modele-3"),
        ("result", Result.REFUSED),
        ("version", None),
        ("model_digest", None),
        ("split_digests", ()),
        ("target", "alias prod"),
        ("mode", "warn"),
        ("policy_sha256", "e" * 64),
        ("envelope_sha256", None),
        ("codes", ()),
    ],
)
def test_a_change_of_any_field_is_found_at_its_row(field: str, value: object) -> None:
    rows = chain()
    rows[2] = replace(rows[2], entry=replace(rows[2].entry, **{field: value}))  # type: ignore[arg-type]
    broken = verify_chain(rows, rows[-1].head).broken
    assert broken is not None
    assert broken.sequence == 3


def test_every_field_of_an_entry_is_covered_by_its_rows_sha256() -> None:
    covered = test_a_change_of_any_field_is_found_at_its_row.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {name for name, _ in covered} == set(Entry.__dataclass_fields__)


def with_one_rewritten(rows: list[Row]) -> list[Row]:
    """Whoever changes a row may make its own sha256 fit again; then the next row does not follow."""
    forged = next_row(rows[1].head, replace(rows[2].entry, result=Result.REFUSED))
    return [*rows[:2], forged, *rows[3:]]


@pytest.mark.parametrize(
    ("tamper", "at"),
    [
        (lambda rows: [*rows[:2], *rows[3:]], 3),
        (lambda rows: rows[1:], 1),
        (lambda rows: rows[:-1], 5),
        (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], 2),
        (lambda rows: [*rows, next_row(rows[-1].head, decision(6))], 6),
        (lambda rows: [*rows[:3], rows[2], *rows[3:]], 3),
        (with_one_rewritten, 4),
        (lambda rows: [replace(rows[0], envelope=None), *rows[1:]], 1),
        (lambda rows: [replace(rows[0], envelope=ENVELOPE.replace("e30", "e31")), *rows[1:]], 1),
        (lambda _: [], 1),
    ],
    ids=[
        "one taken out",
        "first taken out",
        "last taken out",
        "two swapped",
        "one put in at the end",
        "one twice",
        "one rewritten",
        "envelope taken out",
        "envelope changed",
        "all taken out",
    ],
)
def test_a_row_that_is_missing_moved_or_put_in_is_named(tamper: Callable[[list[Row]], list[Row]], at: int) -> None:
    rows = chain()
    broken = verify_chain(tamper(rows), rows[-1].head).broken
    assert broken is not None
    assert broken.sequence == at


def test_a_row_reads_back_from_its_line() -> None:
    for row in chain():
        line = to_line(row)
        assert line.count(b"\n") == 1
        assert from_line(line) == row


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"\xff", b'{"sequence": 1}', to_line(chain()[0])[:-20]])
def test_a_line_that_is_no_row_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_line(line)


def test_a_decision_is_shown_under_slsas_field_names_too() -> None:
    summary = shown(chain()[1])["verificationSummary"]
    assert summary["verificationResult"] == "PASSED"
    assert summary["resourceUri"] == "models:/modèle-2/2"
    assert summary["policy"] == {"digest": {"sha256": "d" * 64}}
    assert summary["inputAttestations"] == [{"digest": {"sha256": SHA256}}]
    assert summary["timeVerified"] == "2026-03-01T12:00:00.123456Z"


@pytest.mark.parametrize("result", [Result.REFUSED, Result.WOULD_REFUSE, Result.NOT_JUDGED, Result.NOT_WRITTEN])
def test_only_what_was_allowed_on_evidence_is_shown_as_passed(result: Result) -> None:
    row = next_row(Head(), replace(decision(1), result=result))
    summary = shown(row)["verificationSummary"]
    assert (summary["verificationResult"], summary["verifiedLevels"]) == ("FAILED", [])


def test_a_test_is_counted_once_whether_the_ledger_knows_it_or_not() -> None:
    known = KnownTests((b"first", b"second"))
    assert known.count_with(hashlib.sha256(b"second").hexdigest()) == 2
    assert known.count_with(hashlib.sha256(b"third").hexdigest()) == 3
    assert KnownTests().count_with("a" * 64) == 1
