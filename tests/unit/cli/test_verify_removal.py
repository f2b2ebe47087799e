"""What ``verify-removal`` prints of an audit that is believed: whose word, on which rows, and that it proves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from removal_cases import removal_evidence

from mlflow_privacy_gate.cli.verify_removal import fields, read, text
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.removal_verification import VerifiedRemoval

VERIFIED = VerifiedRemoval(removal_evidence(), "9" * 64, "tester")


def test_whose_word_it_is_comes_first_then_the_answer_and_that_it_proves_nothing() -> None:
    first, second, *rest = text(VERIFIED, query_held=False).splitlines()
    assert first == "Believed: signed by tester, of the bytes that models:/credit/8 has now."
    assert second.startswith("NOT MEMORISED, audited 2026-06-01 12:00 UTC")
    assert "not held against any rows" in rest[0]
    assert "- EMA: not memorised." in rest
    assert rest[-1].startswith("This proves neither")


def test_rows_that_were_held_against_it_are_said_to_be_the_audited_ones() -> None:
    assert "the rows handed in" in text(VERIFIED, query_held=True)


def test_the_json_names_the_key_and_holds_every_fact() -> None:
    shown = json.loads(json.dumps(fields(VERIFIED)))
    assert (shown["key"], shown["answer"], shown["envelope_sha256"]) == ("tester", "not memorised", "9" * 64)


def test_a_statement_that_is_not_there_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"removal\.dsse\.json: cannot be read"):
        read(tmp_path / "removal.dsse.json")
