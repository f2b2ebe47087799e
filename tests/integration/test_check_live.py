"""The check on a real MLflow: its numbers beside scikit-learn's, label encodings, and a process killed at each write."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mlflow
import numpy as np
import pandas as pd
import pytest
from check_home import MLFLOW_WARNINGS, policy
from command_line import run
from logged_models import MEMBERS, NON_MEMBERS, TARGET, held_back, log_checked_model, nothing_was_written
from mlflow import MlflowClient
from mlflow_home import MlflowHome, mlflow_home, mlflow_store
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.cards.numbers import plain
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.vocabulary import ATTESTATION_ARTIFACT, ATTESTATION_TAG, VERDICT_TAG

__all__ = ["mlflow_home", "mlflow_store", "policy"]

pytestmark = [pytest.mark.usefixtures("mlflow_home", "policy"), *MLFLOW_WARNINGS]


def three_classes(frame: pd.DataFrame) -> pd.DataFrame:
    cut = pd.cut(frame["a"] + frame["b"], [-99, -0.7, 0.7, 99], labels=["lo", "mid", "hi"])
    relabelled: pd.DataFrame = frame.assign(**{TARGET: cut})
    return relabelled


def score_by_hand(name: str, model: Any, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The published formula of an attack, written anew."""
    p = model.predict_proba(frame.drop(columns=TARGET))
    column = [list(model.classes_).index(label) for label in frame[TARGET]]
    own = p[np.arange(len(p)), column]
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "confidence":
            return np.asarray(own)
        if name == "loss":
            rest = np.array([np.delete(row, at).sum() for row, at in zip(p, column, strict=True)])
            return np.asarray(np.log(own) - np.log(rest))
        if name == "entropy":
            return np.asarray(np.where(p > 0, p * np.log(p), 0.0).sum(axis=1))
        assert name == "modified_entropy"
        others = np.array([np.delete(row, at) for row, at in zip(p, column, strict=True)])
        return np.asarray((1 - own) * np.log(own) + (others * np.log(1 - others)).sum(axis=1))


@pytest.mark.parametrize(
    ("estimator", "shaped"),
    [
        (RandomForestClassifier(20, min_samples_leaf=3, random_state=0), lambda frame: frame),
        (make_pipeline(StandardScaler(), LogisticRegression()), lambda frame: frame),
        (DecisionTreeClassifier(max_depth=3, random_state=0), three_classes),
        (LogisticRegression(), three_classes),
    ],
    ids=["forest", "pipeline", "tree-3", "logistic-3"],
)
def test_the_numbers_equal_those_of_scikit_learn_on_the_same_model_and_splits(estimator: Any, shaped: Any) -> None:
    members, non_members = shaped(MEMBERS), shaped(NON_MEMBERS)
    logged = log_checked_model(estimator, members, non_members)
    result = privacy_gate.check(logged.uri)

    def independent(name: str) -> float:
        sides = [score_by_hand(name, logged.estimator, frame) for frame in (members, non_members)]
        # Infinite scores rank as they are; roc_auc_score takes no infinity, so ranks stand in for the scores.
        ranks = pd.Series(np.concatenate(sides)).rank(method="dense")
        return float(roc_auc_score(np.repeat([1, 0], [len(members), len(non_members)]), ranks))

    assert result.confidence_auc == pytest.approx(independent("confidence"), abs=1e-12)
    assert result.attack is not None
    assert result.attack_auc is not None
    assert result.attack_auc == pytest.approx(independent(result.attack), abs=1e-12)
    in_tag = read_statement(open_envelope(logged.tags[ATTESTATION_TAG]).payload)
    for name in ("confidence", result.attack):
        metric = in_tag.attack(name).metric("auc")  # type: ignore[union-attr]
        assert metric is not None
        assert metric.value == pytest.approx(independent(name), abs=1e-12)
    assert logged.tags["privacy_gate.attack"] == result.attack
    assert logged.tags["privacy_gate.attack_auc"] == plain(independent(result.attack), limit=result.margin)
    assert logged.tags["privacy_gate.confidence_auc"] == plain(independent("confidence"), limit=result.margin)
    metrics = MlflowClient().get_run(logged.run_id).data.metrics
    assert metrics["privacy_gate/attack_auc"] == result.attack_auc
    assert metrics["privacy_gate/confidence_auc"] == result.confidence_auc


ENCODINGS: dict[str, dict[int, Any]] = {
    "0/1": {0: 0, 1: 1},
    "-1/1": {0: -1, 1: 1},
    "1-based": {0: 1, 1: 2},
    "gapped": {0: 10, 1: 700},
    "strings": {0: "no", 1: "yes"},
    "booleans": {0: False, 1: True},
    "floats": {0: 0.0, 1: 1.0},
    "categorical": {0: "no", 1: "yes"},
}


def test_every_label_encoding_gives_the_same_auc_to_the_bit() -> None:
    aucs = {}
    for encoding, words in ENCODINGS.items():
        sides = [frame.assign(**{TARGET: frame[TARGET].map(words)}) for frame in (MEMBERS, NON_MEMBERS)]
        if encoding == "categorical":
            sides = [frame.assign(**{TARGET: frame[TARGET].astype("category")}) for frame in sides]
        logged = log_checked_model(RandomForestClassifier(20, min_samples_leaf=3, random_state=0), *sides)
        result = privacy_gate.check(logged.uri, dry_run=True)
        aucs[encoding] = result.confidence_auc, result.attack, result.attack_auc
    assert len(set(aucs.values())) == 1, aucs


@pytest.mark.parametrize("shape", ["frame", "column of shape (n, 1)", "Int64"])
def test_labels_in_any_shape_give_the_same_answer_as_one_column(shape: str) -> None:
    """What ``fit`` was given does not matter to what is asked of the model."""
    estimator = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
    members, non_members = MEMBERS, NON_MEMBERS
    if shape == "Int64":
        members, non_members = (
            frame.assign(**{TARGET: frame[TARGET].astype("Int64")}) for frame in (MEMBERS, NON_MEMBERS)
        )
    logged = log_checked_model(estimator, MEMBERS, NON_MEMBERS)
    plain_answer = privacy_gate.check(logged.uri, dry_run=True)
    given: Any = (members, non_members)
    if shape == "column of shape (n, 1)":
        given = tuple(frame.assign(**{TARGET: frame[[TARGET]].to_numpy()[:, 0]}) for frame in given)
    if shape == "frame":
        given = tuple(pd.concat([frame.drop(columns=TARGET), frame[[TARGET]]], axis=1) for frame in given)
    other = privacy_gate.check(logged.uri, members=given[0], non_members=given[1], target=TARGET, dry_run=True)
    assert (other.confidence_auc, other.attack_auc) == (plain_answer.confidence_auc, plain_answer.attack_auc)


def test_an_overfitted_model_fails_and_a_regularised_one_passes_with_exit_codes_1_and_0() -> None:
    overfitted = log_checked_model(RandomForestClassifier(20, bootstrap=False, random_state=0))
    failed = run("check", overfitted.uri, "--in-process")
    assert failed.exit_code == 1
    assert "FAIL" in failed.stdout
    assert "PG201" in failed.stdout
    assert overfitted.tags[VERDICT_TAG] == "fail"
    regularised = log_checked_model(held_back())
    passed = run("check", regularised.uri, "--in-process")
    assert passed.exit_code == 0, passed
    assert "PASS" in passed.stdout
    assert regularised.tags[VERDICT_TAG] == "pass"


def test_the_command_lines_child_process_measures_the_same_numbers_as_this_process() -> None:
    logged = log_checked_model(RandomForestClassifier(10, min_samples_leaf=3, random_state=0))
    here, there = (
        json.loads(run("check", logged.uri, "--dry-run", "--output", "json", *more).stdout)
        for more in (("--in-process",), ())
    )
    assert (here.pop("isolation"), there.pop("isolation")) == ("in-process", "child-process")
    assert {**here, "findings": None} == {**there, "findings": None}
    assert [one["code"] for one in here["findings"]] == [one["code"] for one in there["findings"]]


def test_a_dry_run_writes_nothing_and_says_not_recorded(mlflow_home: MlflowHome) -> None:
    logged = log_checked_model(RandomForestClassifier(10, bootstrap=False, random_state=0))
    before = {path: path.read_bytes() for path in mlflow_home.artifacts.rglob("*") if path.is_file()}
    ran = run("check", logged.uri, "--dry-run", "--in-process")
    assert ran.exit_code == 1
    assert "not recorded" in ran.stdout.lower()
    assert nothing_was_written(logged)
    assert {path: path.read_bytes() for path in mlflow_home.artifacts.rglob("*") if path.is_file()} == before


def test_what_is_recorded_agrees_in_every_place(mlflow_home: MlflowHome) -> None:
    logged = log_checked_model(held_back())
    result = privacy_gate.check(logged.uri)
    client = MlflowClient()
    envelope = mlflow.artifacts.load_text(f"runs:/{logged.run_id}/{ATTESTATION_ARTIFACT}").encode()
    assert base64.b64decode(logged.tags[ATTESTATION_TAG]) == envelope == result.envelope
    assert mlflow.artifacts.load_text(f"runs:/{logged.run_id}/README.md") == result.card
    assert mlflow.artifacts.load_text(f"runs:/{logged.run_id}/privacy_gate/report.html") == result.report
    description = client.get_model_version(logged.name, logged.version).description
    assert description is not None
    assert "privacy-gate:begin" in description
    assert logged.tags["privacy_gate.model_digest"] == f"sha256:{result.evidence.model_digest}"


# --- what the command line prints


def as_a_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mlflow_privacy_gate", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_output_format_parses_strictly_and_ends_with_the_verdicts_exit_code(mlflow_home: MlflowHome) -> None:
    logged = log_checked_model(RandomForestClassifier(10, bootstrap=False, random_state=0))
    for output in ("json", "junit", "sarif", "markdown"):
        ran = run("check", logged.uri, "--in-process", "--dry-run", "--output", output)
        assert ran.exit_code == 1
        if output in ("json", "sarif"):
            json.loads(ran.stdout, parse_constant=pytest.fail)
        elif output == "junit":
            assert ElementTree.fromstring(ran.stdout).get("failures") == "1"
        else:
            assert ran.stdout.startswith("### ")
    store = ("--tracking-uri", mlflow_home.uri, "--registry-uri", mlflow_home.uri)
    whole = as_a_user("check", logged.uri, "--dry-run", "--output", "json", *store)
    assert whole.returncode == 1, whole.stderr
    assert json.loads(whole.stdout, parse_constant=pytest.fail)["verdict"] == "fail"
    assert "Traceback" not in whole.stderr


def test_no_secret_is_ever_printed_or_recorded(
    policy: Path, mlflow_home: MlflowHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = policy.with_name("privacy-gate.key")
    private = "".join(key.read_text().splitlines()[1:-1])
    monkeypatch.setenv("PRIVACY_GATE_KEY_PASSWORD", "hunter2-password")
    logged = log_checked_model(held_back())
    told = [run("check", logged.uri, "--in-process", "--output", output) for output in ("text", "json", "sarif")]
    told.append(run("check", "models:/a/1", "--tracking-uri", "http://user:hunter2-password@127.0.0.1:9"))
    told.append(
        run("check", "models:/a/1", "--tracking-uri", "postgresql+nothing://user:hunter2-password@127.0.0.1/db")
    )
    assert [ran.exit_code for ran in told] == [0, 0, 0, 4, told[-1].exit_code]
    assert told[-1].exit_code in (2, 4)
    recorded = [
        path.read_bytes().decode("utf-8", "replace") for path in mlflow_home.artifacts.rglob("*") if path.is_file()
    ]
    for text in (*(ran.stdout + ran.stderr for ran in told), *recorded, *logged.tags.values()):
        assert "hunter2-password" not in text
        assert private not in text


def test_a_wrong_key_file_is_a_usage_error_before_anything_is_measured(policy: Path) -> None:
    logged = log_checked_model(held_back())
    policy.with_name("privacy-gate.key").chmod(0o644)
    ran = run("check", logged.uri, "--in-process")
    assert ran.exit_code == 2
    assert "chmod 600" in ran.stderr
    assert run("check", logged.uri, "--key", "nowhere.key").exit_code == 2
    assert nothing_was_written(logged)


def test_a_policy_with_mistakes_is_a_usage_error_that_names_each(policy: Path) -> None:
    logged = log_checked_model(held_back())
    policy.write_text("version: 1\nmode: strict\nmargin: {default: 55}\n")
    ran = run("check", logged.uri)
    assert ran.exit_code == 2
    assert "privacy-gate.yaml:2:" in ran.stderr
    assert "privacy-gate.yaml:3:" in ran.stderr
    assert nothing_was_written(logged)


def test_without_a_key_it_measures_and_says_that_it_will_not_open_the_gate(policy: Path) -> None:
    logged = log_checked_model(held_back())
    policy.with_name("privacy-gate.key").unlink()
    ran = run("check", logged.uri, "--in-process")
    assert ran.exit_code == 0
    assert "Unsigned evidence will not open the gate" in ran.stdout
    assert run("verify", logged.uri).exit_code == 1


def test_check_verify_and_promote_end_with_their_exit_codes(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(policy))
    passing, failing = log_checked_model(held_back()), log_checked_model(DecisionTreeClassifier(random_state=0))
    assert [run("verify", model.uri).exit_code for model in (passing, failing)] == [1, 1]
    assert [run("check", model.uri, "--in-process").exit_code for model in (passing, failing)] == [0, 1]
    assert [run("verify", model.uri).exit_code for model in (passing, failing)] == [0, 1]
    later = run("verify", passing.uri, "--at", "2199-01-01")
    assert later.exit_code == 1
    assert "PG005" in later.stdout
    assert run("verify", passing.uri, "--at", "tomorrow").exit_code == 2
    assert run("promote", passing.uri, "--recorded", "--alias", "champion").exit_code == 0
    refused = run("promote", failing.uri, "--recorded", "--alias", "champion")
    assert refused.exit_code == 1
    assert "PG201" in refused.stdout
    shown = run("status", passing.name, "--output", "json")
    assert shown.exit_code == 0
    (standing,) = json.loads(shown.stdout, parse_constant=pytest.fail)
    assert standing["promoted_as"] == ["alias champion"]
    assert standing["verdict"] == "pass"


# --- killed at each write


@pytest.mark.slow
def test_a_check_killed_at_any_write_leaves_no_pass_and_the_gated_store_refuses(
    policy: Path, mlflow_home: MlflowHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL before each write in turn; then every version is put before the gated registry."""
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(policy))
    logged = log_checked_model(held_back())
    script = Path(__file__).parents[1] / "killed_check.py"
    told = subprocess.run(
        [sys.executable, str(script), mlflow_home.uri, logged.name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    deaths = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert all(death["end"] == {"signal": 9} for death in deaths)
    first = [death for death in deaths if not death["passed_before"]]
    second = [death for death in deaths if death["passed_before"]]
    assert len(first) > 15
    assert len(second) == len(first) + 2
    assert [death["verdict"] for death in first] == [None] * len(first)
    # Before the last write the signed evidence stands whole, of these very bytes: only its display is missing.
    assert [death["promoted"] for death in first] == [False] * (len(first) - 1) + [True]
    # Before the first write the earlier result stands untouched, before the second its evidence does.
    assert [death["verdict"] for death in second] == ["pass"] + [None] * (len(second) - 1)
    assert [death["promoted"] for death in second] == [True] * 2 + [False] * (len(second) - 3) + [True]
