"""Promises of ``log_splits``, kept on a real MLflow: what it refuses, what it stores, and that a check finds it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mlflow_home import MlflowHome

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.errors import CouldNotLook, SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
from mlflow_privacy_gate.splits._interface import Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.catalogue import find_splits, split_sources
from mlflow_privacy_gate.splits.manifest import SplitManifest
from mlflow_privacy_gate.vocabulary import SplitOrigin

RNG = np.random.default_rng(0)


def table(rows: int) -> pd.DataFrame:
    frame: pd.DataFrame = pd.DataFrame(
        {
            "income": RNG.normal(size=rows) * 1e4,
            "age": RNG.integers(18, 99, rows),
            "site": RNG.choice(["a", "b"], rows),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 10**6, rows), unit="s"),
            "default": RNG.choice([True, False], rows),
        }
    )
    return frame


MEMBERS, NON_MEMBERS = table(40), table(30)


def found(run_id: str, model_id: str | None = None) -> Splits:
    model = ResolvedModel(uri="models:/credit/1", artifact_uri="", run_id=run_id, model_id=model_id)
    return find_splits(split_sources(SourceAccess(MlflowRegistry())), model)


def log(**options: Any) -> SplitManifest:
    given: dict[str, Any] = {"target": "default", "store_rows": True}
    return privacy_gate.log_splits(MEMBERS, NON_MEMBERS, **(given | options))


def logged_model(run_id: str, name: str = "model") -> str:
    """A logged model of a run, as `log_model` leaves it, without the cost of a real one."""
    client = mlflow.MlflowClient()
    run = client.get_run(run_id)
    model = client.create_logged_model(run.info.experiment_id, name=name, source_run_id=run_id)
    client.log_outputs(run_id, [mlflow.entities.LoggedModelOutput(model.model_id, step=0)])
    return str(model.model_id)


def recorded_inputs(run_id: str) -> list[Any]:
    inputs = mlflow.get_run(run_id).inputs
    return [] if inputs is None else list(inputs.dataset_inputs)


def files(home: MlflowHome) -> set[str]:
    return {file.name for file in home.artifacts.rglob("*") if file.is_file()}


def test_with_sources_only_references_are_stored_and_a_check_finds_the_rows(
    mlflow_home: MlflowHome, tmp_path: Path
) -> None:
    MEMBERS.to_csv(tmp_path / "train.csv", index=False)
    NON_MEMBERS.to_parquet(tmp_path / "holdout.parquet")
    with mlflow.start_run() as run:
        manifest = log(
            store_rows=False,
            members_source=tmp_path / "train.csv",
            non_members_source=str(tmp_path / "holdout.parquet"),
            group="site",
        )
    assert files(mlflow_home) == {"splits.json"}
    splits = found(run.info.run_id)
    assert splits.origin is SplitOrigin.MANIFEST
    assert splits.as_logged is True
    assert (splits.target, splits.group) == ("default", "site")
    assert splits.members.digest == manifest.members.digest == rowset_digest(MEMBERS)
    pd.testing.assert_frame_equal(splits.non_members.frame, NON_MEMBERS, check_dtype=False)


def test_stored_rows_are_found_again_by_check_and_by_mlflow(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        log()
    assert files(mlflow_home) == {"splits.json", "members.parquet", "non_members.parquet"}
    assert found(run.info.run_id).as_logged is True
    inputs = {one.dataset.name: one for one in recorded_inputs(run.info.run_id)}
    source = mlflow.data.get_source(inputs["members"])
    assert rowset_digest(pd.read_parquet(source.load())) == rowset_digest(MEMBERS)


def test_both_sides_are_dataset_inputs_in_their_contexts_tied_to_the_runs_one_model(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        model_id = logged_model(run.info.run_id)
        manifest = log()
    assert manifest.model_id == model_id
    model = ResolvedModel(uri="", artifact_uri="", run_id=run.info.run_id, model_id=model_id)
    inputs = {one.name: one for one in MlflowRegistry().dataset_inputs(model)}
    assert {name: one.context for name, one in inputs.items()} == {"members": "training", "non_members": "testing"}
    assert all(one.model_id == model_id for one in inputs.values())
    assert inputs["members"].num_rows == 40
    assert inputs["members"].digest == manifest.members.mlflow_digest


def test_a_relative_source_is_recorded_as_the_file_it_is_now(
    mlflow_home: MlflowHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    MEMBERS.to_csv("train.csv", index=False)
    NON_MEMBERS.to_csv("test.csv", index=False)
    with mlflow.start_run():
        manifest = log(store_rows=False, members_source="train.csv", non_members_source="test.csv")
    assert manifest.members.source == str(tmp_path / "train.csv")


def test_a_cloud_source_is_recorded_as_given_and_not_touched(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        manifest = log(store_rows=False, members_source="s3://b/train.parquet", non_members_source="gs://b/test")
    assert manifest.members.source == "s3://b/train.parquet"
    kinds = {one.dataset.source_type for one in recorded_inputs(run.info.run_id)}
    assert kinds == {"s3", "gs"}


def test_one_side_may_have_a_source_and_the_other_be_stored(mlflow_home: MlflowHome, tmp_path: Path) -> None:
    MEMBERS.to_csv(tmp_path / "train.csv", index=False)
    with mlflow.start_run() as run:
        log(members_source=tmp_path / "train.csv")
    assert files(mlflow_home) == {"splits.json", "non_members.parquet"}
    assert found(run.info.run_id).as_logged is True


def test_an_earlier_run_and_model_can_be_named(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        first, second = logged_model(run.info.run_id, "a"), logged_model(run.info.run_id, "b")
    with pytest.raises(UsageError, match=r"logged 2 models.*model_id="):
        log(run_id=run.info.run_id)
    log(run_id=run.info.run_id, model_id=first)
    privacy_gate.log_splits(
        NON_MEMBERS, MEMBERS, target="default", store_rows=True, run_id=run.info.run_id, model_id=second
    )
    assert found(run.info.run_id, first).members.digest == rowset_digest(MEMBERS)
    assert found(run.info.run_id, second).members.digest == rowset_digest(NON_MEMBERS)
    third = logged_model(run.info.run_id, "c")
    with pytest.raises(SplitsUnavailable, match=f"not for {third}"):
        found(run.info.run_id, third)


def test_logging_again_for_the_same_model_replaces_the_manifest(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        log()
        model_id = logged_model(run.info.run_id)
        log(group="site")
    assert found(run.info.run_id, model_id).group == "site"
    assert "splits.json" in files(mlflow_home)


def test_other_rows_are_not_logged_beside_the_first_for_one_model(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run:
        model_id = logged_model(run.info.run_id)
        log()
        before = str(mlflow.get_run(run.info.run_id).inputs)
        with pytest.raises(UsageError, match=r"members: run .* already records other rows.*a run of their own"):
            privacy_gate.log_splits(MEMBERS.head(20), NON_MEMBERS, target="default", store_rows=True)
    assert str(mlflow.get_run(run.info.run_id).inputs) == before
    assert found(run.info.run_id, model_id).as_logged is True


def test_arrow_tables_and_whatever_gives_arrow_are_taken(mlflow_home: MlflowHome) -> None:
    class LikePolars:
        def __init__(self, frame: pd.DataFrame) -> None:
            self._frame = frame

        def to_arrow(self) -> Any:
            return pa.Table.from_pandas(self._frame)

    with mlflow.start_run() as run:
        privacy_gate.log_splits(
            pa.Table.from_pandas(MEMBERS), LikePolars(NON_MEMBERS), target="default", store_rows=True
        )
    assert found(run.info.run_id).members.digest == rowset_digest(MEMBERS)


def test_a_shuffled_index_numbered_columns_and_other_column_orders_do_not_matter(mlflow_home: MlflowHome) -> None:
    left = pd.DataFrame(RNG.normal(size=(20, 3))).sample(frac=1, random_state=0)
    right = pd.DataFrame(RNG.normal(size=(20, 3)))[[2, 0, 1]]
    with mlflow.start_run() as run:
        privacy_gate.log_splits(left, right, target="2", store_rows=True)
    splits = found(run.info.run_id)
    assert splits.as_logged is True
    assert list(splits.non_members.frame.columns) == ["0", "1", "2"]


def test_neither_source_nor_stored_rows_is_an_error_that_explains_itself() -> None:
    with pytest.raises(
        UsageError, match=r"members_source=.*only the reference is stored.*store_rows=True.*personal data"
    ):
        log(store_rows=False)
    with pytest.raises(UsageError, match=r"non_members: where can these rows be loaded again"):
        log(store_rows=False, members_source="train.csv")
    with pytest.raises(UsageError, match="both have one"):
        log(members_source="train.csv", non_members_source="test.csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": MEMBERS.drop(columns="age")}, "members lack columns that the other side has: age"),
        ({"non_members": NON_MEMBERS.drop(columns="age")}, "non_members lack columns"),
        ({"members": MEMBERS.head(0)}, "members: no rows"),
        ({"non_members": NON_MEMBERS.head(0)}, "non_members: no rows"),
        ({"target": "churn"}, "target: 'churn' is not a column"),
        ({"group": "person"}, "group: 'person' is not a column"),
        ({"members": [1, 2]}, "expected a pandas, polars or Arrow table"),
        ({"members": MEMBERS.to_numpy()}, "expected a pandas, polars or Arrow table"),
        ({"members": MEMBERS.set_axis(["a", "a", "b", "c", "d"], axis=1)}, r"columns \['a'\] stand more than once"),
    ],
)
def test_splits_that_cannot_be_meant_are_refused_in_words(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"members": MEMBERS, "non_members": NON_MEMBERS, "target": "default", "store_rows": True}
    with pytest.raises(UsageError, match=words):
        privacy_gate.log_splits(**(given | change))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("catalog.schema.table", "looks like a table name"),
        ("SELECT * FROM loans", "looks like a query"),
        ("s3://b/train.xlsx", "suffix is unknown"),
        ("https://me:secret@host/train.csv", "user name or password"),
        ("", "empty"),
    ],
)
def test_sources_that_could_never_be_loaded_are_refused_in_words(source: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        log(store_rows=False, members_source=source, non_members_source="s3://b/test.parquet")


def test_one_file_for_both_sides_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="the same rows twice"):
        log(store_rows=False, members_source="data.csv", non_members_source="data.csv")


def test_the_same_rows_on_both_sides_are_refused_and_nothing_is_written(mlflow_home: MlflowHome) -> None:
    with mlflow.start_run() as run, pytest.raises(UsageError, match="hold the same rows"):
        privacy_gate.log_splits(MEMBERS, MEMBERS.sample(frac=1, random_state=1), target="default", store_rows=True)
    assert files(mlflow_home) == set()
    assert recorded_inputs(run.info.run_id) == []


def test_without_a_run_nothing_is_created_and_the_way_is_named(mlflow_home: MlflowHome) -> None:
    with pytest.raises(UsageError, match=r"mlflow\.start_run\(\).*run_id="):
        log()
    assert mlflow.active_run() is None


def test_a_run_that_does_not_exist_is_a_usage_error(mlflow_home: MlflowHome) -> None:
    with pytest.raises(UsageError, match="0123456789abcdef"):
        log(run_id="0123456789abcdef0123456789abcdef")


def test_a_server_that_does_not_answer_could_not_be_looked_at(
    mlflow_home: MlflowHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    with pytest.raises(CouldNotLook):
        log(run_id="0123456789abcdef0123456789abcdef")


def test_a_manifest_is_written_last(mlflow_home: MlflowHome, tmp_path: Path) -> None:
    blocked = mlflow_home.artifacts
    with mlflow.start_run() as run:
        run_folder = blocked / run.info.run_id / "artifacts" / "privacy_gate"
        run_folder.mkdir(parents=True)
        (run_folder / "non_members.parquet").mkdir()  # the second side cannot be stored
        with pytest.raises((CouldNotLook, OSError)):
            log()
        assert not (run_folder / "splits.json").exists()


def test_no_value_of_a_row_stands_in_what_is_recorded(mlflow_home: MlflowHome, tmp_path: Path) -> None:
    secret = MEMBERS.assign(site="Jane Doe")
    secret.to_csv(tmp_path / "train.csv", index=False)
    NON_MEMBERS.to_csv(tmp_path / "test.csv", index=False)
    with mlflow.start_run() as run:
        manifest = privacy_gate.log_splits(
            secret,
            NON_MEMBERS,
            target="default",
            members_source=tmp_path / "train.csv",
            non_members_source=tmp_path / "test.csv",
        )
    recorded = json.dumps([one.to_dictionary() for one in recorded_inputs(run.info.run_id)])
    assert "Jane Doe" not in recorded + manifest.to_json().decode()
    assert replace(manifest, group=None) == manifest
