"""A version's description in PostgreSQL, whose column takes 5,000 characters and refuses one more: the author's text comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from check_home import MLFLOW_WARNINGS, policy
from command_line import run
from logged_models import held_back, log_checked_model
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow_home import mlflow_home
from postgres import postgres
from sklearn.tree import DecisionTreeClassifier

__all__ = ["mlflow_home", "policy"]

pytestmark = [pytest.mark.usefixtures("mlflow_home", "policy"), *MLFLOW_WARNINGS]


@pytest.fixture(scope="module")
def mlflow_store() -> Iterator[str]:
    with postgres() as cluster:
        yield cluster.new_database("mlflow")


@pytest.mark.parametrize(
    "words",
    [
        "Of the author. " * 60,
        "Of the author. " * 280,
        "Für die Ärztin: 統計 🩺. " * 190,
        "A whole column. " * 312 + "12345678",
    ],
    ids=["short", "long", "no ASCII", "as much as the column takes"],
)
@pytest.mark.parametrize(
    ("estimator", "code", "said"),
    [(held_back(), 0, "PASS"), (DecisionTreeClassifier(random_state=0), 1, "FAIL")],
    ids=["pass", "fail"],
)
def test_the_authors_description_is_kept_whole_and_ours_takes_what_is_left(
    words: str, estimator: Any, code: int, said: str
) -> None:
    client, model = MlflowClient(), log_checked_model(estimator)
    client.update_model_version(model.name, "1", words)
    for _ in range(2):
        checked = run("check", model.uri, "--in-process")
        assert checked.exit_code == code, checked.stderr
        description = client.get_model_version(model.name, "1").description or ""
        assert description.startswith(words.rstrip())
        assert len(description) <= 5_000
        if len(words) < 4_300:
            assert said in description
            assert "#/runs/" in description or len(words) < 1_000  # shortened: the whole card lies with the run


def test_the_column_takes_no_more() -> None:
    client, model = MlflowClient(), log_checked_model(held_back())
    with pytest.raises(MlflowException, match="too long"):
        client.update_model_version(model.name, "1", "x" * 5_001)
