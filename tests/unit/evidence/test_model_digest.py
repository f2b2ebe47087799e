"""A model's digest is what an auditor gets with coreutils, and nothing can stand in a folder unseen."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mlflow_privacy_gate.errors import CouldNotLook, ModelUnusable
from mlflow_privacy_gate.evidence.model_digest import fingerprint, model_digest
from mlflow_privacy_gate.vocabulary import ReasonCode

PLAIN_PIPELINE = "find . -type f | cut -c3- | LC_ALL=C sort | xargs -r sha256sum | sha256sum"
DOCUMENTED_PIPELINE = (
    r"find . -type f ! -path ./registered_model_meta -printf '%P\0' | LC_ALL=C sort -z"
    " | xargs -0 -r sha256sum -- | sha256sum"
)


def in_bash(pipeline: str, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", pipeline], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "MLmodel").write_text("flavors: {}\n")
    (folder / "model.pkl").write_bytes(os.urandom(3 << 20))
    (folder / "data.txt").write_bytes(b"")
    (folder / "data" / "deep" / "a").write_bytes(b"1")
    (folder / "data-1").write_bytes(b"2")
    return folder


@pytest.mark.parametrize("pipeline", [PLAIN_PIPELINE, DOCUMENTED_PIPELINE])
def test_digest_equals_the_coreutils_pipeline(model: Path, pipeline: str) -> None:
    assert model_digest(model) == in_bash(pipeline, model)


def test_names_with_blanks_quotes_and_any_letters_equal_the_documented_pipeline(model: Path) -> None:
    for name in ("a b", "'", '"', "-x", "å", "模型", "*", "$(date)"):
        (model / name).write_text(name)
    (model / os.fsdecode(b"\xff\xfe")).write_text("no UTF-8")
    assert model_digest(model) == in_bash(DOCUMENTED_PIPELINE, model)


def test_only_the_registered_model_meta_at_the_root_is_left_out(model: Path) -> None:
    before = model_digest(model)
    (model / "registered_model_meta").write_text("model_name: credit\nmodel_version: '7'\n")
    assert model_digest(model) == before
    assert fingerprint(model) == fingerprint(model)
    (model / "data" / "registered_model_meta").write_text("x")
    assert model_digest(model) != before


def test_a_large_registered_model_meta_is_refused(model: Path) -> None:
    (model / "registered_model_meta").write_bytes(bytes(4097))
    with pytest.raises(ModelUnusable, match="4097 bytes"):
        model_digest(model)


@pytest.mark.parametrize("change", ["append", "rename", "move", "add", "delete"])
def test_any_change_of_names_or_bytes_changes_the_digest(model: Path, change: str) -> None:
    before = model_digest(model)
    if change == "append":
        with (model / "model.pkl").open("ab") as stream:
            stream.write(b"\0")
    elif change == "rename":
        (model / "data-1").rename(model / "data-2")
    elif change == "move":
        (model / "data-1").rename(model / "data" / "data-1")
    elif change == "add":
        (model / "new").touch()
    else:
        (model / "data.txt").unlink()
    assert model_digest(model) != before


def test_copies_with_other_times_and_modes_have_the_same_digest(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    os.utime(copy / "MLmodel", (1, 1))
    (copy / "model.pkl").chmod(0o600)
    assert model_digest(copy) == model_digest(model)


@pytest.mark.parametrize("name", ["new\nline", "carriage\rreturn", "back\\slash", "-"])
def test_names_that_coreutils_would_escape_are_refused(model: Path, name: str) -> None:
    (model / name).write_text("x")
    for look in (model_digest, fingerprint):
        with pytest.raises(ModelUnusable, match="rename the file") as refused:
            look(model)
        assert refused.value.code is ReasonCode.PG004


@pytest.mark.parametrize("target", ["MLmodel", "data", "nowhere"])
def test_symbolic_links_are_refused(model: Path, target: str) -> None:
    (model / "link").symlink_to(target)
    with pytest.raises(ModelUnusable, match="symbolic link"):
        model_digest(model)


def test_a_link_in_place_of_the_file_that_is_left_out_is_refused(model: Path) -> None:
    (model / "registered_model_meta").symlink_to("MLmodel")
    with pytest.raises(ModelUnusable, match="symbolic link"):
        model_digest(model)


def test_special_files_are_refused_without_waiting_for_them(model: Path) -> None:
    os.mkfifo(model / "pipe")
    with pytest.raises(ModelUnusable, match="special file"):
        model_digest(model)


def test_a_folder_without_files_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="without files"):
        model_digest(tmp_path)


def test_a_missing_folder_could_not_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLook) as failed:
        model_digest(tmp_path / "nowhere")
    assert failed.value.code is ReasonCode.PG007


def test_a_file_in_place_of_the_folder_is_refused(model: Path) -> None:
    with pytest.raises(ModelUnusable, match="got a file"):
        model_digest(model / "MLmodel")


def test_fingerprint_changes_when_a_file_is_replaced_by_one_of_the_same_size(model: Path) -> None:
    before = fingerprint(model)
    status = (model / "data-1").stat()
    (model / "data-1").write_bytes(b"3")
    os.utime(model / "data-1", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fingerprint(model) != before
