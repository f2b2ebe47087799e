"""What ``check`` adds to the use case: where policy, key and card come from."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from command_line import run

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.api import check, signer_for
from mlflow_privacy_gate.errors import PolicyError, UsageError
from mlflow_privacy_gate.evidence.signing import generate_key
from mlflow_privacy_gate.policy import built_in_policy, load_policy
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PRIVACY_GATE_POLICY", "PRIVACY_GATE_SIGNING_KEY", "PRIVACY_GATE_KEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def test_the_public_names_are_there_and_no_others() -> None:
    assert {"check", "log_splits", "CheckResult"} <= set(privacy_gate.__all__)
    assert all(getattr(privacy_gate, name) is not None for name in privacy_gate.__all__)
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = privacy_gate.chekc


def test_everything_but_the_uri_is_keyword_only() -> None:
    kinds = {name: parameter.kind for name, parameter in inspect.signature(check).parameters.items()}
    assert kinds.pop("model_uri") is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}
    assert {"policy", "members", "non_members", "target", "card", "dry_run"} <= set(kinds)


def test_the_key_beside_the_policy_signs(tmp_path: Path) -> None:
    run("init")
    policy = load_policy(tmp_path / "privacy-gate.yaml")
    signer = signer_for(policy, None, {})
    assert signer is not None
    assert [signer.key_id] == [key.key_id for key in policy.trusted_keys]


def test_a_key_that_the_policy_does_not_trust_signs_nothing(tmp_path: Path) -> None:
    run("init")
    generate_key(tmp_path / "foreign.key")
    with pytest.raises(
        UsageError, match=r"foreign\.key: privacy-gate\.yaml does not trust this key as tester"
    ) as caught:
        signer_for(load_policy(tmp_path / "privacy-gate.yaml"), tmp_path / "foreign.key", {})
    assert caught.value.code is ReasonCode.PG003


def test_a_key_that_is_named_comes_before_the_environments(tmp_path: Path) -> None:
    policy = built_in_policy()
    named, set_outside = (generate_key(tmp_path / f"{name}.key") for name in ("named", "outside"))
    environ = {"PRIVACY_GATE_SIGNING_KEY": str(tmp_path / "outside.key")}
    found = signer_for(policy, tmp_path / "named.key", environ), signer_for(policy, None, environ)
    assert [signer.key_id for signer in found if signer] == [named.key_id, set_outside.key_id]


def test_without_any_key_there_is_no_signer_and_a_key_that_was_named_is_never_passed_over(tmp_path: Path) -> None:
    assert signer_for(built_in_policy(), None, {}) is None
    for key, environ in ((tmp_path / "no.key", {}), (None, {"PRIVACY_GATE_SIGNING_KEY": "no.key"})):
        with pytest.raises(UsageError, match=r"no\.key"):
            signer_for(built_in_policy(), key, environ)


def test_the_testers_key_serves_no_privacy_officer(tmp_path: Path) -> None:
    run("init")
    assert signer_for(load_policy(tmp_path / "privacy-gate.yaml"), None, {}, role=KeyRole.PRIVACY_OFFICER) is None


def test_an_encrypted_key_is_opened_with_the_password_of_the_environment(tmp_path: Path) -> None:
    made = generate_key(tmp_path / "locked.key", password=b"open sesame")
    found = signer_for(built_in_policy(), tmp_path / "locked.key", {"PRIVACY_GATE_KEY_PASSWORD": "open sesame"})
    assert found is not None
    assert found.key_id == made.key_id
    with pytest.raises(UsageError, match="PRIVACY_GATE_KEY_PASSWORD"):
        signer_for(built_in_policy(), tmp_path / "locked.key", {})


def test_a_policy_that_is_named_is_never_passed_over() -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.yaml"):
        check("models:/credit/1", policy="nowhere.yaml")


@pytest.mark.parametrize("content", [None, b"\xff\xfe no text"], ids=["missing", "no UTF-8"])
def test_a_card_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "card.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"card\.md: cannot read the card"):
        check("models:/credit/1", card=path, tracking_uri="sqlite://", registry_uri="sqlite://")
