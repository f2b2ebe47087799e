"""``keys`` lists what the policy trusts, makes keys that it can trust, and names keys."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from evidence_builder import fresh_signer
from officer_builder import OFFICER, policy_text

from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.signing import load_signer
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.vocabulary import KeyRole

TESTER = fresh_signer()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PRIVACY_GATE_POLICY", "PRIVACY_GATE_KEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["keys", *arguments])


def test_the_list_names_each_key_with_role_end_and_id() -> None:
    ended = policy_text(TESTER).replace("role: privacy-officer", "role: privacy-officer\n    not_after: 2020-01-01")
    Path("privacy-gate.yaml").write_text(ended)
    rows = json.loads(run("--output", "json").stdout)
    assert [(row["id"], row["role"], row["trusted_now"], row["key_id"]) for row in rows] == [
        ("tester-1", "tester", True, TESTER.key_id),
        ("dpo", "privacy-officer", False, OFFICER.key_id),
    ]
    text = run().stdout
    assert "dpo: privacy-officer, NO LONGER TRUSTED, until 2020-01-01" in text
    assert TESTER.key_id in text


def test_an_identity_is_listed_by_its_name_and_issuer() -> None:
    Path("privacy-gate.yaml").write_text(
        "version: 1\nkeys: [{id: ci, role: tester, identity: a@b.c, issuer: 'https://issuer.example'}]\n"
    )
    [row] = json.loads(run("--output", "json").stdout)
    assert (row["id"], row["identity"], row["issuer"]) == ("ci", "a@b.c", "https://issuer.example")
    assert "ci: tester, trusted, without end\n  a@b.c, vouched for by https://issuer.example" in run().stdout


def test_a_policy_without_keys_says_so() -> None:
    assert "trusts no key" in run().stdout


def test_a_generated_key_is_private_ignored_by_git_and_fits_the_policy_as_printed() -> None:
    result = run("generate", "--role", "privacy-officer", "--id", "dpo")
    key = Path("privacy-officer.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Path(".gitignore").read_text() == "privacy-officer.key\n"
    policy = parse_policy(f"version: 1\nkeys:\n{result.stdout}")
    assert [(trusted.id, trusted.role, trusted.key_id) for trusted in policy.trusted_keys] == [
        ("dpo", KeyRole.PRIVACY_OFFICER, load_signer(key).key_id)
    ]
    assert "PRIVATE" not in result.output


def test_a_generated_key_is_encrypted_where_a_password_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVACY_GATE_KEY_PASSWORD", "correct horse")
    assert run("generate", "--role", "tester").exit_code == 0
    assert b"ENCRYPTED" in Path("tester.key").read_bytes()
    assert run("id", "tester.key").stdout.strip() == load_signer(Path("tester.key"), password=b"correct horse").key_id


def test_a_key_is_never_written_over_another() -> None:
    Path("privacy-officer.key").write_text("mine")
    assert isinstance(run("generate", "--role", "privacy-officer").exception, UsageError)
    assert Path("privacy-officer.key").read_text() == "mine"


def test_a_private_and_its_public_key_have_one_id() -> None:
    run("generate", "--role", "tester", "--file", "k.key")
    Path("k.pem").write_text(load_signer(Path("k.key")).public_pem)
    assert run("id", "k.key").stdout == run("id", "k.pem").stdout != ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"no key"])
def test_what_is_no_key_has_no_id(content: bytes) -> None:
    Path("k").write_bytes(content)
    assert isinstance(run("id", "k").exception, UsageError)
