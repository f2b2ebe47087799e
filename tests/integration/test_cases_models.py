"""Loading and scoring: models as real MLflow users log them, through ``check`` on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml
from check_home import MLFLOW_WARNINGS, policy
from command_line import Ran, run
from logged_models import (
    MEMBERS,
    NON_MEMBERS,
    TARGET,
    Registered,
    held_back,
    log_checked_model,
    log_model,
    nothing_was_written,
)
from mlflow import MlflowClient
from mlflow_home import MlflowHome, mlflow_home, mlflow_store
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.vocabulary import ReasonCode

__all__ = ["mlflow_home", "mlflow_store", "policy"]

pytestmark = [pytest.mark.usefixtures("mlflow_home", "policy"), *MLFLOW_WARNINGS]

REFERRED = parse_policy(
    "version: 1\nattacks: {references: 6, gating: [confidence, loss, entropy, modified_entropy, calibrated]}\n",
    "referred",
)


def check(model: Registered, *options: str) -> Ran:
    return run("check", model.uri, "--in-process", *options)


class LabelsOnly(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Remembers its rows and shows labels only."""

    def fit(self, X: pd.DataFrame, y: pd.Series[Any]) -> LabelsOnly:
        self.classes_ = np.unique(y)
        self.known_ = dict(zip(map(tuple, X.to_numpy()), y, strict=True))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray[Any, Any]:
        return np.array([self.known_.get(tuple(row), self.classes_[0]) for row in X.to_numpy()])


class Moody(LogisticRegression):  # type: ignore[misc]
    """Answers by the row and by the toss of a coin."""

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray[Any, Any]:
        first = np.random.default_rng().uniform(0.3, 0.7, len(X))
        return np.column_stack([first, 1 - first])


class Broken(LogisticRegression):  # type: ignore[misc]
    """Gives NaN for three rows in ten, and fails where it is told to."""

    failing = False

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray[Any, Any]:
        if self.failing:
            raise RuntimeError("no GPU here")
        answer = np.full((len(X), 2), 0.5)
        answer[: int(len(X) * 0.3)] = np.nan
        return answer


class Failing(Broken):
    failing = True


class Leaving(Broken):
    """Ends the program when it is asked, as if all were well."""

    def predict_proba(self, X: pd.DataFrame) -> Any:
        sys.exit(0)


class Chatty(Broken):
    """Talks while it answers."""

    def predict_proba(self, X: pd.DataFrame) -> Any:
        print("thinking about", len(X), "rows")
        return LogisticRegression.predict_proba(self, X)


def test_probabilities_are_had_natively_where_pyfunc_would_give_labels() -> None:
    """MLflow's own wrapper answers `predict` with labels; the test must not be made with those."""
    logged = log_checked_model(RandomForestClassifier(20, min_samples_leaf=3, random_state=0))
    answered = mlflow.pyfunc.load_model(logged.uri).predict(MEMBERS.drop(columns=TARGET))
    assert set(np.unique(answered)) <= {0, 1}
    result = privacy_gate.check(logged.uri, dry_run=True)
    assert result.evidence.kind == "classification"
    assert result.confidence_auc is not None


def test_a_model_that_shows_labels_only_is_inconclusive_and_judged_as_weaker_where_the_policy_allows(
    policy: Path,
) -> None:
    logged = log_checked_model(LabelsOnly())
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert "labels only" in ran.stdout
    assert "label_only" in ran.stdout
    policy.write_text(policy.read_text().replace("label_only: inconclusive", "label_only: allow"))
    allowed = check(logged)
    assert allowed.exit_code == 1, allowed
    assert "correctness" in allowed.stdout
    card = mlflow.artifacts.load_text(f"runs:/{logged.run_id}/README.md")
    assert "weaker" in card


def test_pickle_that_is_forbidden_here_stays_forbidden_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = log_checked_model(held_back())
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert "MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false" in ran.stderr
    assert nothing_was_written(logged)


def test_a_forest_in_mlflows_default_format_names_the_untrusted_type_and_both_ways_out(
    mlflow_home: MlflowHome,
) -> None:
    """As a version of MLflow logs it that does not look first: a tree in the file, and nobody who says it may be there."""
    forest = RandomForestClassifier(5, random_state=0)
    logged = log_checked_model(
        forest, serialization_format="skops", skops_trusted_types=["sklearn.tree._tree.Tree"], signature=False
    )
    assert check(logged, "--dry-run").exit_code == 1
    (description,) = mlflow_home.artifacts.rglob("MLmodel")
    content = yaml.safe_load(description.read_text())
    del content["flavors"]["sklearn"]["skops_trusted_types"]
    description.write_text(yaml.safe_dump(content))
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert "sklearn.tree._tree.Tree" in ran.stderr
    assert "skops_trusted_types" in ran.stderr
    assert 'serialization_format="cloudpickle"' in ran.stderr
    assert nothing_was_written(logged)


def test_every_form_of_uri_leads_to_the_same_bytes_and_numbers() -> None:
    logged = log_checked_model(held_back())
    client = MlflowClient()
    client.set_registered_model_alias(logged.name, "latest-good", logged.version)
    client._get_registry_client().transition_model_version_stage(logged.name, logged.version, "Staging", False)  # type: ignore[no-untyped-call]
    forms = [
        logged.uri,
        f"models:/{logged.name}@latest-good",
        f"models:/{logged.name}/Staging",
        f"models:/{logged.name}/latest",
        f"models:/{logged.model_id}",
        f"runs:/{logged.run_id}/model",
    ]
    results = [privacy_gate.check(uri, dry_run=True) for uri in forms]
    assert len({result.evidence.model_digest for result in results}) == 1
    assert len({result.confidence_auc for result in results}) == 1
    assert [result.model.version for result in results] == [logged.version] * 4 + [None] * 2


@pytest.mark.parametrize(
    ("uri", "exit_code", "words"),
    [
        ("models:/{name}/99", 2, "no version 99"),
        ("models:/{name}@nobody", 2, "no alias 'nobody'"),
        ("models:/{name}/Production", 2, "no version in stage"),
        ("models:/not-there/1", 2, "no registered model 'not-there'"),
        ("models:/m-00000000000000000000000000000000", 2, "no logged model"),
        ("runs:/00000000000000000000000000000000/model", 2, "no run"),
        ("runs:/{run}/other", 2, "no model named 'other'"),
        ("just-a-name", 2, "expected models:/NAME/VERSION"),
        ("models:/", 2, "expected models:/NAME/VERSION"),
        ("s3://bucket/model", 2, "expected models:/NAME/VERSION"),
    ],
)
def test_a_uri_that_leads_nowhere_is_a_usage_error_that_names_what_is_missing(
    uri: str, exit_code: int, words: str
) -> None:
    logged = log_checked_model(held_back())
    ran = run("check", uri.format(name=logged.name, run=logged.run_id))
    assert ran.exit_code == exit_code, ran
    assert words in ran.stderr


def test_a_regressor_is_judged_by_its_errors() -> None:
    frames = [frame.assign(**{TARGET: frame["a"] + frame["b"] ** 2}) for frame in (MEMBERS, NON_MEMBERS)]
    exact = privacy_gate.check(log_checked_model(DecisionTreeRegressor(random_state=0), *frames).uri)
    assert (exact.verdict, exact.attack, exact.confidence_auc) == ("fail", "error", None)
    assert exact.attack_auc is not None
    assert exact.attack_auc > 0.95
    assert privacy_gate.check(log_checked_model(Ridge(1e6), *frames).uri).verdict == "pass"


def test_margins_are_scored_as_margins_and_said_to_be() -> None:
    logged = log_checked_model(make_pipeline(StandardScaler(), LinearSVC(C=1e-4)))
    result = privacy_gate.check(logged.uri)
    assert result.evidence.kind == "classification"
    assert "margin" in " ".join(result.evidence.limitations)


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(3), SVC(probability=False), GaussianProcessClassifier()],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore")  # their optimisers warn on noise
def test_a_file_that_holds_training_rows_is_warned_of_by_the_name_of_its_part(estimator: Any) -> None:
    few = MEMBERS.head(120), NON_MEMBERS.head(120)
    result = privacy_gate.check(log_checked_model(estimator, *few).uri, dry_run=True)
    found = [finding for finding in result.findings if finding.code is ReasonCode.PG403]
    assert len(found) == 1
    assert type(estimator).__name__ in found[0].message


def test_a_model_that_tosses_coins_is_warned_of_on_the_card_and_not_judged() -> None:
    logged = log_checked_model(Moody())
    assert "PG110" in {str(finding.code) for finding in privacy_gate.check(logged.uri).findings}
    assert "Asked again" in mlflow.artifacts.load_text(f"runs:/{logged.run_id}/README.md")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [(Broken(), "NaN"), (Failing(), "no GPU here"), (Leaving(), "asked for the program to end")],
    ids=["NaN", "raises", "exits"],
)
def test_a_model_that_fails_on_some_rows_is_never_judged_on_the_others(estimator: Any, words: str) -> None:
    with mlflow.start_run():
        estimator.fit(MEMBERS.drop(columns=TARGET), MEMBERS[TARGET])
        logged = log_model(Working(estimator), signature=False)
        privacy_gate.log_splits(MEMBERS, NON_MEMBERS, target=TARGET, store_rows=True)
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert words in ran.stderr
    assert nothing_was_written(logged)


def test_what_a_model_prints_never_stands_in_the_answer() -> None:
    with mlflow.start_run():
        estimator = Chatty().fit(MEMBERS.drop(columns=TARGET).to_numpy(), MEMBERS[TARGET])
        logged = log_model(Working(estimator), signature=False)
        privacy_gate.log_splits(MEMBERS, NON_MEMBERS, target=TARGET, store_rows=True)
    ran = check(logged, "--dry-run", "--output", "json")
    assert "isolation" in json.loads(ran.stdout), ran
    assert "thinking about" in ran.stderr


class Working(BaseEstimator):  # type: ignore[misc]
    """Holds a fitted estimator and answers as it does, with nothing to say where only labels are asked for."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: pd.DataFrame, y: pd.Series[Any]) -> Working:
        self.classes_ = self.estimator.classes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray[Any, Any]:
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.estimator.predict_proba(X)


# --- reference models


def with_category(frame: pd.DataFrame) -> pd.DataFrame:
    word = pd.cut(frame["b"], [-99, -0.5, 0.5, 99], labels=["low", "mid", "high"]).astype(str)
    changed: pd.DataFrame = frame.assign(word=word)
    return changed


def mixed_pipeline() -> Any:
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), list("acdef")), ("words", OneHotEncoder(handle_unknown="ignore"), ["word"])]
    )
    return make_pipeline(columns, RandomForestClassifier(10, min_samples_leaf=5, random_state=0))


@pytest.mark.parametrize(
    ("build", "shaped"),
    [
        (mixed_pipeline, with_category),
        (lambda: KNeighborsClassifier(15), lambda frame: frame),
        (GaussianNB, lambda frame: frame),
        (held_back, lambda frame: frame),
    ],
    ids=["columns and categories", "kNN", "GaussianNB", "no random_state"],
)
def test_reference_models_are_trained_from_what_was_logged(build: Callable[[], Any], shaped: Any) -> None:
    result = referred(build(), shaped(MEMBERS), shaped(NON_MEMBERS))
    facts = result.evidence.attack("calibrated")
    assert facts is not None
    assert (facts.references, facts.references_origin) == (6, "clone")
    auc = facts.metric("auc")
    assert auc is not None
    assert auc.value is not None
    assert 0.3 < auc.value < 1


def test_a_class_with_a_single_row_is_no_crash_in_reference_models() -> None:
    def rare(frame: pd.DataFrame, single: bool) -> pd.DataFrame:
        label = (np.arange(len(frame)) % 4).astype("int64")
        if single:
            label[7] = 4
        changed: pd.DataFrame = frame.assign(**{TARGET: label})
        return changed

    result = referred(
        RandomForestClassifier(10, min_samples_leaf=5, random_state=0), rare(MEMBERS, True), rare(NON_MEMBERS, False)
    )
    facts = result.evidence.attack("calibrated")
    assert facts is not None
    assert facts.references == 6
    json.loads(json.dumps([metric.value for metric in facts.metrics], allow_nan=False))


def referred(estimator: Any, members: pd.DataFrame, non_members: pd.DataFrame) -> CheckResult:
    logged = log_checked_model(estimator, members, non_members)
    return privacy_gate.check(logged.uri, policy=REFERRED, dry_run=True)


def test_the_right_errors_leave_check_itself() -> None:
    with pytest.raises(UsageError):
        privacy_gate.check("models:/not-there/1")
    with pytest.raises(UsageError):
        privacy_gate.check("nonsense")
