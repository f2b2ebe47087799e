"""Promises on which models can be opened."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hostile_models import save_hostile

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.catalogue import FLAVOURS, in_process, load_model, loader_for
from mlflow_privacy_gate.models.mlmodel import read_mlmodel


def folder_with(tmp_path: Path, **content: object) -> Path:
    (tmp_path / "MLmodel").write_text(yaml.safe_dump(content))
    return tmp_path


def test_every_flavour_in_the_catalogue_has_its_loader(tmp_path: Path) -> None:
    for flavour in FLAVOURS:
        assert loader_for(folder_with(tmp_path, flavors={flavour: {}})).flavour == flavour


def test_a_model_that_only_pyfunc_can_call_is_refused_in_words_and_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match=r"python_function flavour only.*sklearn"):
        load_model(folder_with(tmp_path, flavors={"python_function": {"loader_module": "mlflow.pyfunc.model"}}))


def test_an_unsupported_flavour_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match=r"flavour is onnx; known here: sklearn"):
        load_model(folder_with(tmp_path, flavors={"onnx": {}, "python_function": {}}))


@pytest.mark.parametrize(
    "content", ["", "flavors: 3", "flavors: [", "{flavors: {sklearn: {}}, signature: {inputs: '[3]'}}"]
)
def test_a_damaged_mlmodel_file_is_a_model_that_cannot_be_used(tmp_path: Path, content: str) -> None:
    (tmp_path / "MLmodel").write_text(content)
    with pytest.raises(ModelUnusable, match="MLmodel"):
        load_model(tmp_path)


def test_a_folder_without_mlmodel_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="no MLmodel file"):
        load_model(tmp_path)


@pytest.mark.parametrize("code", ["raise SystemExit(0)", ""], ids=["when it is opened", "when it is asked"])
def test_a_model_that_asks_for_the_program_to_end_does_not_end_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "true")
    folder = save_hostile(tmp_path / "model", code)
    with pytest.raises(ModelUnusable, match=r"asked for the program to end \(exit code 0\)"), in_process(folder):
        raise SystemExit(0)


def test_a_tensor_signature_names_no_columns(tmp_path: Path) -> None:
    signature = {"inputs": '[{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, 4]}}]'}
    assert read_mlmodel(folder_with(tmp_path, flavors={"sklearn": {}}, signature=signature)).input_names is None
