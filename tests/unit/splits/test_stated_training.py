"""Promises on what an author states of the training: kept exactly, read strictly, masks never mixed up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow_home import MlflowHome
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from training_functions import train_forest

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.errors import SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
from mlflow_privacy_gate.splits._interface import Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.catalogue import find_splits, split_sources
from mlflow_privacy_gate.splits.manifest import SplitManifest

ROWS = 60
TARGET = "label"


def frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made: pd.DataFrame = pd.DataFrame(
        {"a": rng.normal(size=ROWS), "b": rng.normal(size=ROWS), TARGET: rng.integers(0, 2, ROWS)}
    )
    return made


MEMBERS, NON_MEMBERS = frame(1), frame(2)
MASKS = np.random.default_rng(3).random((2, 2 * ROWS)) < 0.5
NAMED = [{"uri": f"models:/earlier/{k + 1}", "trained_on": mask} for k, mask in enumerate(MASKS)]


@pytest.fixture
def run(mlflow_home: MlflowHome) -> Iterator[mlflow.ActiveRun]:
    with mlflow.start_run() as active:
        yield active


def log(**stated: Any) -> SplitManifest:
    return privacy_gate.log_splits(MEMBERS, NON_MEMBERS, target=TARGET, store_rows=True, **stated)


def found(run_id: str, **given: Any) -> Splits:
    access = SourceAccess(MlflowRegistry())
    return find_splits(split_sources(access, **given), ResolvedModel(uri="", artifact_uri="", run_id=run_id))


def stored(run_id: str) -> dict[str, Any]:
    text = mlflow.artifacts.load_text(f"runs:/{run_id}/privacy_gate/splits.json")
    manifest: dict[str, Any] = json.loads(text)
    return manifest


def test_a_manifest_without_statements_is_written_as_it_always_was(run: mlflow.ActiveRun) -> None:
    log()
    assert set(stored(run.info.run_id)) == {"schema", "target", "members", "non_members", "group", "model_id"}
    splits = found(run.info.run_id)
    assert splits.training_function is None
    assert splits.reference_models is None


@pytest.mark.parametrize("function", ["training_functions:train_forest", train_forest], ids=["name", "function"])
def test_a_training_function_is_kept_by_its_name_and_seed(run: mlflow.ActiveRun, function: Any) -> None:
    manifest = log(training_function=function, training_seed=7)
    assert (manifest.training_function, manifest.training_seed) == ("training_functions:train_forest", 7)
    splits = found(run.info.run_id)
    assert splits.training_function is not None
    assert (splits.training_function.name, splits.training_function.seed) == ("training_functions:train_forest", 7)


def test_a_function_that_no_check_could_import_is_refused(run: mlflow.ActiveRun) -> None:
    def inner(features: Any, labels: Any, seed: int) -> Any:
        return None

    for function, because in (
        (inner, "package.module:function"),
        ("train", "package.module:function"),
        ("a b:c", "package.module:function"),
        ("os.system:a.b", "package.module:function"),
        ("__main__:train", "in the script itself"),
    ):
        with pytest.raises(UsageError, match=because):
            log(training_function=function)
    with pytest.raises(UsageError, match="training_seed"):
        log(training_seed=7)


def test_masks_come_back_in_the_order_of_the_rows_content(run: mlflow.ActiveRun) -> None:
    from mlflow_privacy_gate.evidence.rowset import shared_rows

    log(reference_models=NAMED)
    splits = found(run.info.run_id)
    assert splits.reference_models is not None
    assert splits.reference_models.uris == ("models:/earlier/1", "models:/earlier/2")
    shared = shared_rows(MEMBERS, NON_MEMBERS)
    by_content = np.concatenate((shared.member_order, shared.non_member_order + ROWS))
    np.testing.assert_array_equal(splits.reference_models.trained_on(), MASKS[:, by_content])


def test_the_callers_own_rows_bring_the_statements_of_their_manifest(run: mlflow.ActiveRun) -> None:
    log(reference_models=NAMED, training_function=train_forest)
    splits = found(run.info.run_id, members=MEMBERS.iloc[::-1], non_members=NON_MEMBERS)
    assert splits.as_logged is True
    assert splits.training_function is not None
    assert splits.reference_models is not None
    assert splits.reference_models.trained_on().shape == (2, 2 * ROWS)


@pytest.mark.parametrize(
    ("named", "because"),
    [
        (NAMED[:1], "expected 2 or more, got 1"),
        ([NAMED[0], NAMED[0]], "models:/earlier/1 stand more than once"),
        ([NAMED[0], {"uri": "models:/earlier/2"}], "expected a list of"),
        ([NAMED[0], {"uri": "models:/earlier@champion", "trained_on": MASKS[1]}], "which stay what they are"),
        ([NAMED[0], {"uri": "s3://bucket/model", "trained_on": MASKS[1]}], "expected models:/"),
        ([NAMED[0], {"uri": "models:/b/1", "trained_on": MASKS[1][:-1]}], r"each of 120 rows .* shape \(119,\)"),
        ([NAMED[0], {"uri": "models:/b/1", "trained_on": MASKS[1].astype(int)}], "got int64"),
    ],
)
def test_reference_models_that_cannot_be_meant_are_refused(
    run: mlflow.ActiveRun, named: list[dict[str, object]], because: str
) -> None:
    with pytest.raises(UsageError, match=because):
        log(reference_models=named)


@pytest.mark.parametrize("damage", ["flipped", "shortened", "numbers"])
def test_masks_that_are_not_those_logged_are_never_used(
    run: mlflow.ActiveRun, damage: str, mlflow_home: MlflowHome
) -> None:
    log(reference_models=NAMED)
    (file,) = mlflow_home.artifacts.rglob("reference_masks.parquet")
    table = pd.read_parquet(file)
    if damage == "flipped":
        table.loc[0, "1"] = not table.loc[0, "1"]
    table = table.head(5) if damage == "shortened" else table.astype("int64") if damage == "numbers" else table
    table.to_parquet(file, index=False)
    splits = found(run.info.run_id)
    assert splits.reference_models is not None
    with pytest.raises(SplitsUnavailable, match=r"reference_masks.parquet"):
        splits.reference_models.trained_on()


def test_a_manifest_with_a_name_that_is_no_function_is_refused() -> None:
    text = json.dumps({"training_function": "rm -rf /"}).encode()
    with pytest.raises(SplitsUnavailable, match="training_function"):
        SplitManifest.from_json(text)


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow")
def test_logged_models_are_references_of_a_check_on_a_real_mlflow(mlflow_home: MlflowHome) -> None:
    """The author trains models on random parts, logs them, and names them with the splits of one that cannot be cloned."""
    together = pd.concat((MEMBERS, NON_MEMBERS), ignore_index=True)

    def log_model(estimator: Any) -> str:
        info = mlflow.sklearn.log_model(estimator, name="model", serialization_format="cloudpickle")
        return str(info.model_uri)

    named = []
    for mask in MASKS:
        half = together[mask]
        with mlflow.start_run():
            uri = log_model(train_forest(half.drop(columns=TARGET), half[TARGET], 0))
        named.append({"uri": uri, "trained_on": mask})
    with mlflow.start_run():
        target = FrozenEstimator(LogisticRegression().fit(MEMBERS.drop(columns=TARGET), MEMBERS[TARGET]))
        uri = log_model(target)
        log(reference_models=named)
    policy = parse_policy(
        "version: 1\nattacks: {references: 2, report: [calibrated], unsafe_reference_origins: [clone, logged_models]}\n"
    )
    result = privacy_gate.check(uri, policy=policy, dry_run=True)
    facts = result.evidence.attack("calibrated")
    assert facts is not None
    assert (facts.references, facts.references_origin) == (2, "logged_models")
