"""``waive`` and ``sign-off`` refuse what cannot be meant before they look anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence_builder import fresh_signer
from officer_builder import policy_text

from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.cli.waive import waivable
from mlflow_privacy_gate.errors import PrivacyGateError, UsageError
from mlflow_privacy_gate.vocabulary import ReasonCode

WAIVE = [
    *("waive", "models:/credit/1", "--finding", "PG201", "--reason", "r", "--reference", "t", "--controls", "c"),
    *("--requested-by", "Ann", "--approved-by", "Bea", "--until", "2999-01-01"),
]
SIGN_OFF = ["sign-off", "models:/credit/1", "--signed-by", "Bea"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVACY_GATE_POLICY", raising=False)
    monkeypatch.delenv("PRIVACY_GATE_SIGNING_KEY", raising=False)
    Path("privacy-gate.yaml").write_text(policy_text(fresh_signer()))


def mistake(*arguments: str) -> str:
    error = CliRunner().invoke(program, list(arguments)).exception
    assert isinstance(error, UsageError)
    assert isinstance(error, PrivacyGateError)
    return error.message


def test_a_waivable_code_is_read_in_any_letter_case() -> None:
    assert waivable("pg201") is ReasonCode.PG201


@pytest.mark.parametrize("code", ["PG002", "PG003", "PG004", "PG402", "pg402", "PG901"])
def test_a_code_that_can_never_be_waived_is_refused_by_name(code: str) -> None:
    with pytest.raises(UsageError, match="can never be waived"):
        waivable(code)


@pytest.mark.parametrize("code", ["", "PG999", "201", "attack AUC"])
def test_what_is_no_code_is_refused(code: str) -> None:
    with pytest.raises(UsageError, match="expected a reason code"):
        waivable(code)


@pytest.mark.parametrize("command", [WAIVE, SIGN_OFF], ids=["waive", "sign-off"])
@pytest.mark.parametrize("scope", [[], ["--stage", "Production", "--alias", "champion"]], ids=["none", "two"])
def test_exactly_one_promotion_must_be_named(command: list[str], scope: list[str]) -> None:
    assert "name the one promotion" in mistake(*command, *scope)


@pytest.mark.parametrize("command", [WAIVE, SIGN_OFF], ids=["waive", "sign-off"])
def test_the_testers_key_beside_the_policy_is_not_taken_for_an_officers(command: list[str]) -> None:
    Path("privacy-gate.key").write_text("the tester's")
    assert "no key to sign with" in mistake(*command, "--alias", "champion")


def test_a_waiver_about_an_earlier_test_must_answer_for_it() -> None:
    assert "--finding PG108" in mistake(*WAIVE, "--alias", "champion", "--test", "a" * 64)


def test_a_remark_does_not_belong_to_an_exemption() -> None:
    assert "--remark" in mistake(*SIGN_OFF, "--no-personal-data", "sensors", "--remark", "x")
