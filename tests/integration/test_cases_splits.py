"""Getting the splits back: what real MLflow users hit, through ``check`` on the command line, with exit code and words."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pandas as pd
import pytest
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
    noisy_rows,
    nothing_was_written,
)
from mlflow.data.pandas_dataset import from_pandas
from mlflow_home import mlflow_home, mlflow_store

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.vocabulary import VERDICT_TAG

__all__ = ["mlflow_home", "mlflow_store", "policy"]

pytestmark = [pytest.mark.usefixtures("mlflow_home", "policy"), *MLFLOW_WARNINGS]


def check(model: Registered, *options: str) -> Ran:
    return run("check", model.uri, "--in-process", *options)


def said(ran: Ran, *words: str) -> None:
    """Could not judge: exit 3, every word on stderr, nothing of ours on stdout."""
    assert ran.exit_code == 3, ran
    for word in words:
        assert word in ran.stderr
    assert ran.stdout == ""


def log_inputs(*, members: str | None, non_members: str | None, targets: str | None = None) -> Registered:
    """Log a model with dataset inputs as MLflow's own interface records them, each with this source (None: none)."""
    with mlflow.start_run():
        logged = log_model(held_back())
        for frame, name, context, source in (
            (MEMBERS, "train", "training", members),
            (NON_MEMBERS, "held-out", "testing", non_members),
        ):
            data = from_pandas(frame, source=source, targets=targets, name=name)  # type: ignore[arg-type]
            mlflow.log_input(data, context=context)
    return logged


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    train, held_out = tmp_path / "train.parquet", tmp_path / "held_out.parquet"
    MEMBERS.to_parquet(train, index=False)
    NON_MEMBERS.to_parquet(held_out, index=False)
    return train, held_out


def test_a_code_source_names_the_dataset_and_every_way_out() -> None:
    logged = log_inputs(members=None, non_members=None)
    said(check(logged), "'train'", "log_splits", "source=", "--members", "--non-members")
    assert nothing_was_written(logged)


@pytest.mark.filterwarnings("ignore")  # autologging warns of much
def test_what_autologging_records_is_no_labelled_split() -> None:
    mlflow.sklearn.autolog(log_models=False, silent=True)
    try:
        with mlflow.start_run():
            logged = log_model(held_back())
    finally:
        mlflow.sklearn.autolog(disable=True)
    ran = check(logged)
    said(ran, "--members", "--non-members", "log_splits")
    assert nothing_was_written(logged)


def test_features_without_a_label_are_no_labelled_split(tmp_path: Path, files: tuple[Path, Path]) -> None:
    with mlflow.start_run():
        logged = log_model(held_back())
        for frame, path, context in ((MEMBERS, files[0], "training"), (NON_MEMBERS, files[1], "testing")):
            features = frame.drop(columns=TARGET)
            features.to_parquet(path, index=False)
            mlflow.log_input(from_pandas(features, source=str(path), name=context), context=context)
    said(check(logged), "features only, no label column")


@pytest.mark.parametrize("named", [True, False], ids=["targets named", "targets not named"])
def test_dataset_inputs_are_tested_and_how_the_label_was_found_is_said(files: tuple[Path, Path], named: bool) -> None:
    targets = TARGET if named else None
    logged = log_inputs(members=str(files[0]), non_members=str(files[1]), targets=targets)
    ran = check(logged)
    assert ran.exit_code == 0, ran
    assert "the one column of the splits that the model does not take" in mlflow.artifacts.load_text(
        f"runs:/{logged.run_id}/README.md"
    )


def test_a_label_that_cannot_be_told_is_asked_for_and_taken_from_target(files: tuple[Path, Path]) -> None:
    for frame, path in ((MEMBERS, files[0]), (NON_MEMBERS, files[1])):
        frame.assign(note=1.0).to_parquet(path, index=False)
    with mlflow.start_run():
        logged = log_model(held_back())
        for path, context in zip(files, ("training", "testing"), strict=True):
            data = from_pandas(pd.read_parquet(path), source=str(path), name=context)
            mlflow.log_input(data, context=context)
    said(check(logged), "2 columns", "'label'", "'note'", "--target")
    assert check(logged, "--target", TARGET).exit_code == 0
    said(check(logged, "--target", "nowhere"), "'nowhere'")


def test_a_relative_path_reads_no_other_file_of_that_name_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, shift in (("training", 0), ("gate", 10)):
        (tmp_path / folder).mkdir()
        noisy_rows(200 + shift, seed=1 + shift).to_csv(tmp_path / folder / "train.csv", index=False)
        noisy_rows(200, seed=2).to_csv(tmp_path / folder / "held_out.csv", index=False)
    monkeypatch.chdir(tmp_path / "training")
    logged = log_inputs(members="train.csv", non_members="held_out.csv")
    monkeypatch.chdir(tmp_path / "gate")
    ran = check(logged, "--policy", str(tmp_path / "privacy-gate.yaml"), "--key", str(tmp_path / "privacy-gate.key"))
    assert ran.exit_code == 3, ran
    assert "PG104" in ran.stdout + ran.stderr or "not on this machine" in ran.stderr


def test_a_path_of_another_host_is_named_with_the_hint(tmp_path: Path) -> None:
    logged = log_inputs(members="/data/on/another/host/train.csv", non_members=str(tmp_path / "none.csv"))
    said(check(logged), "/data/on/another/host/train.csv", "reachable from where the check runs")
    assert nothing_was_written(logged)


@pytest.mark.parametrize("how", ["rows added", "values changed", "columns gone"])
def test_a_source_that_was_overwritten_after_training_is_never_judged(files: tuple[Path, Path], how: str) -> None:
    with mlflow.start_run():
        logged = log_model(held_back())
        privacy_gate.log_splits(
            MEMBERS, NON_MEMBERS, target=TARGET, members_source=files[0], non_members_source=files[1]
        )
    assert check(logged, "--dry-run").exit_code == 0
    changed = {
        "rows added": pd.concat([MEMBERS, noisy_rows(5, seed=9)]),
        "values changed": MEMBERS.assign(b=MEMBERS["b"].round(1)),
        "columns gone": MEMBERS.drop(columns="f"),
    }[how]
    changed.to_parquet(files[0], index=False)
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert "PG104" in ran.stdout + ran.stderr
    assert logged.tags.get(VERDICT_TAG) != "pass"


def test_rows_of_one_source_for_both_sides_are_never_a_pass(tmp_path: Path) -> None:
    whole = tmp_path / "data.csv"
    pd.concat([MEMBERS, NON_MEMBERS]).to_csv(whole, index=False)
    logged = log_inputs(members=str(whole), non_members=str(whole))
    ran = check(logged)
    assert ran.exit_code == 3, ran
    assert logged.tags.get(VERDICT_TAG) != "pass"


@pytest.mark.parametrize(("shared", "exit_code"), [(3, 0), (60, 3)])
def test_members_among_the_non_members_are_counted_over_all_rows(shared: int, exit_code: int) -> None:
    logged = log_checked_model(
        held_back(), non_members=pd.concat([NON_MEMBERS, MEMBERS.head(shared)], ignore_index=True)
    )
    ran = check(logged)
    assert ran.exit_code == exit_code, ran
    assert ("PG103" in ran.stdout) is (exit_code == 3)
    assert f"{200 - shared} of 200 rows used" in ran.stdout


def test_the_same_frame_logged_as_both_sides_says_that_no_non_members_were_logged(files: tuple[Path, Path]) -> None:
    with mlflow.start_run():
        logged = log_model(held_back())
        for context in ("training", "testing"):
            mlflow.log_input(from_pandas(MEMBERS, source=str(files[0]), name="data"), context=context)
    said(check(logged), "no non-members", "'data'", "same name and digest", "--non-members")


def test_a_run_that_records_nothing_says_how_to_record_it() -> None:
    with mlflow.start_run():
        logged = log_model(held_back())
    said(check(logged), "records no splits", f"log_splits(…, run_id='{logged.run_id}')", "--members")


def test_splits_handed_in_are_judged_and_must_be_the_logged_ones_whole(files: tuple[Path, Path]) -> None:
    logged = log_checked_model(held_back())
    given = ("--members", str(files[0]), "--non-members", str(files[1]))
    assert check(logged, *given).exit_code == 0
    NON_MEMBERS.head(190).to_parquet(files[1], index=False)
    ran = check(logged, *given)
    assert ran.exit_code == 3
    assert "PG104" in ran.stdout
    one_sided = check(logged, "--members", str(files[0]))
    assert one_sided.exit_code == 2
    assert "both sides" in one_sided.stderr
