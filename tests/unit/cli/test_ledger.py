"""``ledger`` where its database cannot be reached, and the keys that its readers rely on where it can."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from command_line import run

from mlflow_privacy_gate.evidence.ledger import Entry, EntryKind, Result
from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize("registry", ["http://127.0.0.1:9", "privacy-gate:http://127.0.0.1:9"])
def test_a_servers_address_is_answered_with_the_uri_that_would_do(
    command: str, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("ledger", command, "--registry-uri", registry)
    assert ran.exit_code == 4
    assert ran.stderr.startswith("PG902: ")
    for words in ("127.0.0.1:9", "behind `privacy-gate:`", "postgresql://", "--file"):
        assert words in ran.stderr


def test_the_json_of_rows_and_chain_keeps_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    digest, now = "0" * 64, datetime.now(timezone.utc)
    known = ("1", digest, (digest,), "alias champion", "enforce", digest, None, ("PG201",))
    with FileLedger(file).turn() as turn:
        turn.append(Entry(now, EntryKind.DECISION, "sam", "default", "credit", Result.REFUSED, *known))
    [row] = json.loads(run("ledger", "show", "--file", str(file), "--output", "json").stdout)
    entry = {"at", "kind", "actor", "workspace", "name", "result", "version", "modelDigest", "splitDigests"}
    entry |= {"target", "mode", "policySha256", "codes"}  # what is not known, as here the envelope, is left out
    assert set(row) == {"sequence", "sha256", "verificationSummary"} | entry
    chain = json.loads(run("ledger", "verify", "--file", str(file), "--output", "json").stdout)
    assert set(chain) == {"ledger", "intact", "rows", "head_sha256", "broken_at", "problem"}
    assert (chain["intact"], chain["rows"]) == (True, 1)
