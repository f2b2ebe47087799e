"""Promises on finding splits again: the very rows that were logged, or a word on how they differ, or none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from split_fakes import MODEL, FakeArtifacts, recorded

from mlflow_privacy_gate.errors import SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.splits._interface import Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.catalogue import find_splits, split_sources
from mlflow_privacy_gate.splits.columns import column_kinds
from mlflow_privacy_gate.splits.manifest import SCHEMA, LoggedSplit, SplitManifest, manifest_sha256
from mlflow_privacy_gate.splits.mlflow_record import mlflow_digest
from mlflow_privacy_gate.vocabulary import MANIFEST_ARTIFACT, ReasonCode, SplitOrigin

RNG = np.random.default_rng(0)
COLSPEC = {"a": "double", "b": "long", "y": "string"}


def table(rows: int) -> pd.DataFrame:
    columns = {"a": RNG.normal(size=rows), "b": RNG.integers(0, 9, rows), "y": RNG.choice(["no", "yes"], rows)}
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


class Home:
    """Two files of rows and a run that names them, by manifest or by dataset inputs."""

    def __init__(self, folder: Path) -> None:
        self.members, self.non_members = table(30), table(20)
        self.train, self.test = folder / "train.csv", folder / "test.csv"
        self.members.to_csv(self.train, index=False)
        self.non_members.to_csv(self.test, index=False)
        self.run = FakeArtifacts()

    def manifest(self, **changes: Any) -> SplitManifest:
        def side(frame: pd.DataFrame, source: Path) -> LoggedSplit:
            return LoggedSplit(
                str(source), len(frame), rowset_digest(frame), column_kinds(frame), source.stem, mlflow_digest(frame)
            )

        whole = SplitManifest(SCHEMA, "y", side(self.members, self.train), side(self.non_members, self.test))
        return replace(whole, **changes)

    def log_manifest(self, path: str = MANIFEST_ARTIFACT, **changes: Any) -> SplitManifest:
        manifest = self.manifest(**changes)
        if not self.run.inputs:
            self.log_inputs()
        self.run.artifacts[path] = manifest.to_json()
        return manifest

    def log_inputs(self, **changes: Any) -> None:
        def of(name: str, context: str, frame: pd.DataFrame, source: Path) -> Any:
            given = {
                "uri": source,
                "digest": mlflow_digest(frame),
                "rows": len(frame),
                "columns": COLSPEC,
                "model_id": None,
            }
            return recorded(name, context, **(given | changes.get(name, {})))

        self.run.inputs = (
            of("train", "training", self.members, self.train),
            of("test", "testing", self.non_members, self.test),
        )

    def find(self, **options: Any) -> Splits:
        access = SourceAccess(self.run, max_rows=options.pop("max_rows", 1000))
        model = options.pop("model", MODEL)
        return find_splits(split_sources(access, **options), model)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_splits_of_a_manifest_are_the_logged_rows(home: Home) -> None:
    manifest = home.log_manifest(group="b")
    splits = home.find()
    assert splits.origin is SplitOrigin.MANIFEST
    assert splits.as_logged is True
    assert splits.as_logged_note is None
    assert (splits.target, splits.group) == ("y", "b")
    assert splits.manifest_sha256 == manifest_sha256(manifest.to_json())
    assert splits.members.digest == manifest.members.digest
    pd.testing.assert_frame_equal(splits.non_members.frame, home.non_members)


def test_the_manifest_goes_before_dataset_inputs(home: Home) -> None:
    home.log_inputs(train={"uri": "/nowhere.csv"})
    home.log_manifest()
    assert home.find().origin is SplitOrigin.MANIFEST


def test_a_source_overwritten_after_training_is_not_the_runs(home: Home) -> None:
    home.log_manifest()
    home.non_members.assign(a=0.0).to_csv(home.test, index=False)
    splits = home.find()
    assert splits.as_logged is False
    assert "as many rows, other values" in (splits.as_logged_note or "")


def test_another_number_of_rows_is_said_with_both_numbers(home: Home) -> None:
    home.log_manifest()
    pd.concat([home.members, home.non_members]).to_csv(home.train, index=False)
    splits = home.find()
    assert splits.as_logged is False
    assert "holds 50 rows, 30 were logged" in (splits.as_logged_note or "")


def test_a_relative_path_that_finds_another_file_here_is_never_read_silently(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    table(30).to_csv(elsewhere / "train.csv", index=False)
    home.log_manifest(members=replace(home.manifest().members, source="train.csv"))
    monkeypatch.chdir(elsewhere)
    assert home.find().as_logged is False


def test_a_logged_column_that_the_source_lacks_is_named(home: Home) -> None:
    home.log_manifest()
    home.members.drop(columns="b").to_csv(home.train, index=False)
    with pytest.raises(SplitsUnavailable, match="lacks columns that were logged: b") as caught:
        home.find()
    assert caught.value.code is ReasonCode.PG104


def test_a_manifest_of_another_model_of_the_run_is_not_used(home: Home) -> None:
    home.log_manifest(model_id="m-other")
    with pytest.raises(SplitsUnavailable, match=r"for model m-other, not for m-1; log this model's.*model_id='m-1'"):
        home.find()


def test_each_model_of_a_run_has_its_own_manifest(home: Home) -> None:
    home.log_manifest(model_id="m-other")
    own = home.log_manifest("privacy_gate/m-1/splits.json", model_id="m-1")
    assert home.find().manifest_sha256 == manifest_sha256(own.to_json())


def test_non_members_that_the_run_also_records_for_validation_were_used_for_tuning(home: Home) -> None:
    home.log_manifest()
    assert home.find().used_for_tuning is None
    home.run.inputs += (recorded("early_stopping", "Validation", digest=mlflow_digest(home.non_members)),)
    assert home.find().used_for_tuning is True


def test_dataset_inputs_with_a_loadable_source_are_used_and_the_target_found_by_the_model(home: Home) -> None:
    home.log_inputs()
    splits = home.find(input_columns=("a", "b"))
    assert splits.origin is SplitOrigin.DATASET_INPUTS
    assert splits.as_logged is True
    assert splits.target == "y"
    assert any("'y'" in note and "model does not take" in note for note in splits.notes)
    assert splits.members.mlflow_digest == mlflow_digest(home.members)


def test_rows_that_cannot_be_shown_to_be_the_logged_ones_are_not_as_logged(home: Home) -> None:
    home.log_inputs(train={"digest": "ffffffff"})
    splits = home.find(target="y")
    assert splits.as_logged is False
    assert "ffffffff" in (splits.as_logged_note or "")


def test_one_file_recorded_as_both_sides_is_never_as_logged(home: Home) -> None:
    pd.concat([home.members, home.non_members]).to_csv(home.train, index=False)
    home.log_inputs(test={"uri": home.train})
    splits = home.find(target="y")
    assert splits.as_logged is False
    assert "holds 50 rows, dataset 'train' recorded 30" in (splits.as_logged_note or "")
    assert "holds 50 rows, dataset 'test' recorded 20" in (splits.as_logged_note or "")


def test_a_code_source_is_never_loaded_and_the_ways_out_are_named(home: Home) -> None:
    home.run.inputs = (recorded("auto", "train"), recorded("auto2", "eval"))
    with pytest.raises(
        SplitsUnavailable, match=r"'auto' was recorded without a source.*source=.*log_splits.*--members"
    ):
        home.find(target="y")


def test_what_mlflow_itself_records_for_a_frame_without_source_is_refused_the_same_way(home: Home) -> None:
    data = mlflow.data.from_pandas(home.members)  # type: ignore[attr-defined]  # MLflow adds it at import
    home.run.inputs = tuple(
        replace(recorded(data.name, context), source_type=data.source._get_source_type(), source=data.source.to_json())
        for context in ("training", "testing")
    )
    with pytest.raises(SplitsUnavailable, match="recorded without a source"):
        home.find(target="y")


def test_features_without_a_label_are_not_a_split(home: Home) -> None:
    home.log_inputs(train={"columns": {"a": "double", "b": "long"}})
    with pytest.raises(SplitsUnavailable, match=r"'train' holds features only, no label column"):
        home.find(input_columns=("a", "b"))
    with pytest.raises(SplitsUnavailable, match=r"'train' holds features only, no label column"):
        home.find(target="y")


def test_an_unknown_source_type_is_named(home: Home) -> None:
    home.log_inputs(train={"source_type": "acme_lake", "uri": None})
    with pytest.raises(SplitsUnavailable, match="type 'acme_lake', which cannot be loaded here"):
        home.find(target="y")


def test_datasets_tied_to_another_model_are_not_this_ones(home: Home) -> None:
    home.log_inputs(train={"model_id": "m-other"}, test={"model_id": "m-other"})
    with pytest.raises(SplitsUnavailable, match="records no splits"):
        home.find(target="y")
    home.log_inputs(train={"model_id": "m-1"}, test={"model_id": "m-1"})
    home.run.inputs += (recorded("other", "training", uri="x.csv", model_id="m-other"),)
    assert home.find(target="y").members.mlflow_name == "train"


def test_two_training_sets_in_one_run_are_asked_about(home: Home) -> None:
    home.log_inputs()
    home.run.inputs += (recorded("second", "train", uri="x.csv"),)
    with pytest.raises(SplitsUnavailable, match="2 datasets that may be the members"):
        home.find(target="y")


class LaterPair:
    """An easier pair that the run's owner adds under our model tag when the model was trained and its splits were recorded."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home = home
        home.log_inputs()
        first = home.run.inputs
        home.members, home.non_members = table(30), table(20)
        home.train, home.test = folder / "later_train.csv", folder / "later_test.csv"
        home.members.to_csv(home.train, index=False)
        home.non_members.to_csv(home.test, index=False)
        home.log_inputs(train={"model_id": "m-1"}, test={"model_id": "m-1"})
        home.run.inputs = (*first, *home.run.inputs)


@pytest.fixture
def later(home: Home, tmp_path: Path) -> Home:
    return LaterPair(home, tmp_path).home


def test_a_pair_that_was_added_under_the_models_tag_is_not_taken_over_the_first(later: Home) -> None:
    with pytest.raises(SplitsUnavailable, match=r"'train'.*'train'.*MLflow does not say when") as refused:
        later.find(target="y")
    assert refused.value.code is ReasonCode.PG104


def test_a_manifest_of_a_pair_that_was_added_is_not_as_logged(later: Home) -> None:
    later.log_manifest(model_id="m-1")
    splits = later.find()
    assert splits.as_logged is False
    assert (splits.as_logged_note or "").count("datasets that may be the") == 2


def test_a_pair_that_was_added_does_not_speak_for_a_callers_rows(later: Home) -> None:
    splits = later.find(members=later.members, non_members=later.non_members, target="y")
    assert splits.as_logged is False
    assert (splits.as_logged_note or "").count("datasets that may be the") == 2


def test_datasets_of_another_model_are_no_rivals(later: Home) -> None:
    later.run.inputs = tuple(one if one.model_id else replace(one, model_id="m-other") for one in later.run.inputs)
    later.log_manifest(model_id="m-1")
    assert later.find().as_logged is True


def test_a_manifest_without_a_dataset_of_the_run_behind_it_is_not_as_logged(home: Home) -> None:
    home.log_manifest()
    home.run.inputs = ()
    splits = home.find()
    assert splits.as_logged is False
    assert "the run records none of digest" in (splits.as_logged_note or "")


@pytest.mark.parametrize("models", [("m-0", "m-1"), ("m-0",), ()])
@pytest.mark.parametrize("how", ["manifest", "dataset inputs", "caller"])
def test_splits_that_name_no_model_are_not_believed_of_one_among_several(
    home: Home, models: tuple[str, ...], how: str
) -> None:
    home.run.models = models
    options: dict[str, Any] = {}
    if how == "dataset inputs":
        home.log_inputs()
    else:
        home.log_manifest()
    if how == "caller":
        options = {"members": home.members, "non_members": home.non_members}
    with pytest.raises(SplitsUnavailable, match=r"does not say of which model.*log_splits.*model_id='m-1'") as refused:
        home.find(target="y", **options)
    assert refused.value.code is ReasonCode.PG104


@pytest.mark.parametrize("model_id", [None, "m-2"])
def test_a_manifest_is_believed_of_the_model_it_names_alone(home: Home, model_id: str | None) -> None:
    home.log_manifest(model_id="m-1")
    with pytest.raises(SplitsUnavailable, match="is for model m-1, not for") as refused:
        home.find(model=replace(MODEL, model_id=model_id))
    assert refused.value.code is ReasonCode.PG104


def test_a_validation_set_as_the_only_held_out_rows_was_used_for_tuning_by_its_name(home: Home) -> None:
    home.log_inputs()
    home.run.inputs = (home.run.inputs[0], replace(home.run.inputs[1], context="validation"))
    assert home.find(target="y").used_for_tuning is True


@pytest.mark.parametrize("inputs", [("a",), ("a", "b", "y"), None])
def test_a_label_that_cannot_be_told_is_asked_for(home: Home, inputs: tuple[str, ...] | None) -> None:
    home.log_inputs()
    with pytest.raises(SplitsUnavailable, match=r"--target|features only"):
        home.find(input_columns=inputs)


def test_more_rows_than_may_be_read_are_refused(home: Home) -> None:
    home.log_manifest()
    with pytest.raises(SplitsUnavailable, match="more than 25 rows"):
        home.find(max_rows=25)


def test_a_callers_very_rows_are_as_logged_in_any_order_and_with_columns_to_spare(home: Home) -> None:
    home.log_manifest()
    shuffled = home.members.sample(frac=1, random_state=1)[["y", "b", "a"]].assign(extra=1)
    splits = home.find(members=shuffled, non_members=str(home.test))
    assert splits.origin is SplitOrigin.CALLER
    assert splits.as_logged is True
    assert list(splits.members.frame.columns) == ["a", "b", "y"]
    assert splits.target == "y"


@pytest.mark.parametrize("logged", [True, False])
def test_a_callers_rows_keep_the_index_they_were_handed_in_under(home: Home, logged: bool) -> None:
    if logged:
        home.log_manifest()
    members = home.members.set_axis([f"person {row}" for row in range(30)])
    splits = home.find(members=members, non_members=home.test, target="y")
    assert list(splits.members.frame.index) == list(members.index)
    assert list(splits.non_members.frame.index) == list(range(20))
    assert splits.members.digest == rowset_digest(home.members)


def test_a_callers_choice_of_the_logged_non_members_is_not_the_runs(home: Home) -> None:
    home.log_manifest()
    splits = home.find(members=home.members, non_members=home.non_members.head(18))
    assert splits.as_logged is False
    assert "hold 18 rows, 20 were logged" in (splits.as_logged_note or "").replace("holds", "hold")


def test_a_callers_splits_without_anything_logged_are_neither_confirmed_nor_denied(home: Home) -> None:
    unlinked = replace(MODEL, run_id=None, model_id=None)
    splits = home.find(members=home.train, non_members=home.test, target="y", model=unlinked)
    assert splits.as_logged is None
    assert splits.members.digest == rowset_digest(home.members)


def test_one_side_alone_is_a_usage_error(home: Home) -> None:
    with pytest.raises(UsageError, match="without non_members"):
        home.find(members=home.members)
    with pytest.raises(UsageError, match="without members"):
        home.find(non_members=home.members)


def test_an_empty_side_is_refused(home: Home) -> None:
    with pytest.raises(SplitsUnavailable, match="no rows"):
        home.find(members=home.members, non_members=home.members.head(0), target="y")


def test_a_model_without_a_run_says_no_lineage_and_how_to_go_on(home: Home) -> None:
    unlinked = replace(MODEL, run_id=None, lineage_note="run r1 was deleted")
    with pytest.raises(SplitsUnavailable, match=r"no lineage.*run r1 was deleted.*--members and --non-members"):
        home.find(model=unlinked)


def test_a_run_that_records_nothing_says_how_to_log(home: Home) -> None:
    with pytest.raises(SplitsUnavailable, match=r"log_splits\(…, run_id='r1'\)"):
        home.find()


def test_a_tensor_dataset_names_no_columns_and_is_read_by_its_file(home: Home) -> None:
    home.log_inputs()
    tensor = json.dumps({"mlflow_tensorspec": {"features": "[]", "targets": None}})
    home.run.inputs = tuple(replace(one, schema=tensor) for one in home.run.inputs)
    assert home.find(target="y").members.digest == rowset_digest(home.members)


def test_a_callers_rows_are_not_the_runs_where_the_run_recorded_other_numbers(home: Home) -> None:
    home.run.inputs = (recorded("train", "training", rows=30), recorded("test", "testing", rows=4_000))
    splits = home.find(members=home.members, non_members=home.non_members, target="y")
    assert splits.as_logged is False
    assert (splits.as_logged_note or "").startswith("non-members: the run records none of 20 rows")


def test_a_manifest_that_was_replaced_is_held_against_what_the_run_recorded(home: Home) -> None:
    home.log_manifest()
    home.log_inputs(test={"digest": "ffffffff"})
    splits = home.find(target="y")
    assert splits.as_logged is False
    assert (splits.as_logged_note or "").startswith("non-members: the run records none of digest")
