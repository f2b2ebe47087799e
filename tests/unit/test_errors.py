from __future__ import annotations

import pytest

from mlflow_privacy_gate.errors import CouldNotLook, PolicyError, PrivacyGateError, UsageError
from mlflow_privacy_gate.vocabulary import ReasonCode


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [
        ("http://user:pass@host:5000/api failed", "http://host:5000/api failed"),
        ("postgresql+psycopg2://u:p@ss@db/mlflow: refused", "postgresql+psycopg2://db/mlflow: refused"),
        ("(registry privacy-gate:mysql://u:pw@db/m)", "(registry privacy-gate:mysql://db/m)"),
        ("two: http://a:b@c/d and 'http://e:f@g'", "two: http://c/d and 'http://g'"),
        ("models:/credit@champion at http://host/x@y", "models:/credit@champion at http://host/x@y"),
    ],
)
def test_no_message_holds_user_and_password_whatever_it_quotes(quoted: str, shown: str) -> None:
    error = CouldNotLook(quoted)
    assert error.message == str(error) == shown


def test_every_error_is_a_privacy_gate_error_with_an_exit_code_from_1_to_4() -> None:
    def all_below(kind: type[PrivacyGateError]) -> set[type[PrivacyGateError]]:
        return {kind}.union(*(all_below(sub) for sub in kind.__subclasses__()))

    assert {kind.exit_code for kind in all_below(PrivacyGateError)} == {1, 2, 3, 4}


def test_a_policy_error_holds_every_mistake() -> None:
    error = PolicyError(["a.yaml:1: x", "a.yaml:2: y"])
    assert isinstance(error, UsageError)
    assert (error.problems, error.message, error.code) == (
        ("a.yaml:1: x", "a.yaml:2: y"),
        "a.yaml:1: x\na.yaml:2: y",
        ReasonCode.PG901,
    )
