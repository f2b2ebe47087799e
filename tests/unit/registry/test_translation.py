"""Foreign exceptions become this project's, and only a busy database is asked again."""

from __future__ import annotations

import sqlite3

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import (
    INVALID_PARAMETER_VALUE,
    PERMISSION_DENIED,
    RESOURCE_DOES_NOT_EXIST,
    TEMPORARILY_UNAVAILABLE,
)

from mlflow_privacy_gate.errors import CouldNotLook, ModelUnusable, PrivacyGateError, UsageError
from mlflow_privacy_gate.registry.translation import asking, is_database_failure


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


class Answers:
    """A question whose first answers are errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def locked() -> MlflowException:
    return MlflowException("database is locked", TEMPORARILY_UNAVAILABLE)


def test_a_locked_database_is_asked_again(waits: list[float]) -> None:
    assert asking("here", Answers(locked(), sqlite3.OperationalError("locked"))) == "answer"
    assert len(waits) == 2


def test_a_database_that_stays_locked_could_not_be_looked_at(waits: list[float]) -> None:
    with pytest.raises(CouldNotLook, match="here"):
        asking("here", Answers(*(locked() for _ in range(10))))
    assert sum(waits) < 5


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MlflowException("no such thing", RESOURCE_DOES_NOT_EXIST), UsageError),
        (MlflowException("bad name", INVALID_PARAMETER_VALUE), UsageError),
        (MlflowException("not yours", PERMISSION_DENIED), CouldNotLook),
        (ConnectionError("refused"), CouldNotLook),
        (ModelUnusable("ours"), ModelUnusable),
    ],
)
def test_each_kind_of_error_is_translated_at_once(
    waits: list[float], error: Exception, kind: type[PrivacyGateError]
) -> None:
    with pytest.raises(kind):
        asking("here", Answers(error))
    assert waits == []


def test_missing_can_be_said_in_other_words() -> None:
    with pytest.raises(CouldNotLook, match="said: gone"):
        asking(
            "here",
            Answers(MlflowException("gone", RESOURCE_DOES_NOT_EXIST)),
            missing=lambda message: CouldNotLook(f"said: {message}"),
        )


def test_a_database_failure_is_told_by_its_cause() -> None:
    wrapped = MlflowException("something", INVALID_PARAMETER_VALUE)
    wrapped.__cause__ = sqlite3.DatabaseError("file is not a database")
    assert is_database_failure(wrapped)
    assert not is_database_failure(MlflowException("something", INVALID_PARAMETER_VALUE))
