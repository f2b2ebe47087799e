"""The flavours that can be opened here, most telling first; a new one is one file and one line."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models._interface import LoadedModel, ModelLoader
from mlflow_privacy_gate.models.mlmodel import PYFUNC, read_mlmodel
from mlflow_privacy_gate.vocabulary import ReasonCode

FLAVOURS: Mapping[str, str] = {
    "sklearn": "mlflow_privacy_gate.models.sklearn_model:SklearnLoader",
    "xgboost": "mlflow_privacy_gate.models.xgboost_model:XgboostLoader",
    "lightgbm": "mlflow_privacy_gate.models.lightgbm_model:LightgbmLoader",
}


def load_model(folder: Path) -> LoadedModel:
    """Open the model in an MLflow model folder by the first flavour that is known here; ModelUnusable where none is."""
    return loader_for(folder).load(folder)


@contextmanager
def in_process(folder: Path) -> Iterator[LoadedModel]:
    """Open the model in this very process, which runs its author's code with everything that this process may do.

    ModelUnusable where that code asks for the program to end: its exit code, which may be 0, is not the check's.
    """
    try:
        yield load_model(folder)
    except SystemExit as exc:
        raise ModelUnusable(f"the model's own code asked for the program to end (exit code {exc.code})") from exc


def loader_for(folder: Path) -> ModelLoader:
    """Return the loader of the first flavour that the folder has and that is known here; ModelUnusable says what to do."""
    has = read_mlmodel(folder).flavours
    for flavour, where in FLAVOURS.items():
        if flavour in has:
            _refuse_another_served(flavour, has)
            module, name = where.split(":")
            loader: ModelLoader = getattr(importlib.import_module(module), name)()
            return loader
    known = ", ".join(FLAVOURS)
    native = sorted(set(has) - {PYFUNC})
    if not native:
        raise ModelUnusable(
            "the model has the python_function flavour only: nothing says whether its answers are probabilities, labels or something "
            f"else, and that is not guessed; log the model itself with its own flavour (known here: {known})"
        )
    raise ModelUnusable(
        f"the model's flavour is {', '.join(native)}; known here: {known}; log it with one of these as well"
    )


def _refuse_another_served(flavour: str, has: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a folder whose ``python_function`` serves something else than what would be tested."""
    served, tested = has.get(PYFUNC), has[flavour]
    if served is None:
        return
    files = [entry.get("model_path") or entry.get("pickled_model") or entry.get("data") for entry in (served, tested)]
    if served.get("loader_module") != f"mlflow.{flavour}" or (None not in files and files[0] != files[1]):
        raise ModelUnusable(
            f"the model's python_function flavour loads {files[0]} by {served.get('loader_module')}, its {flavour} flavour {files[1]}: "
            "what is served must be what is tested; log the model anew",
            code=ReasonCode.PG004,
        )
