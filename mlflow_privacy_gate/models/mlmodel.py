"""The ``MLmodel`` file of a model folder: which flavours it has, what columns it takes, what it was made with. Nothing is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mlflow_privacy_gate.errors import ModelUnusable

# MLflow's loader for a folder that holds no native model of its own, only a way to call one.
PYFUNC = "python_function"


@dataclass(frozen=True)
class InputColumn:
    """One column of a model's signature; ``type`` is MLflow's word (``double``, ``float``, ``long``, ``integer``, ``string``, …)."""

    name: str
    type: str


@dataclass(frozen=True)
class MlModel:
    """What ``MLmodel`` says. ``inputs`` is None without a signature, or where it names no columns (a tensor signature)."""

    flavours: Mapping[str, Mapping[str, Any]]
    inputs: tuple[InputColumn, ...] | None
    model_id: str | None

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """The names of the signature's columns, in its order."""
        return None if self.inputs is None else tuple(column.name for column in self.inputs)

    @property
    def python_version(self) -> str | None:
        """The Python the model was logged with."""
        version = self.flavours.get(PYFUNC, {}).get("python_version")
        return None if version is None else str(version)


def read_mlmodel(folder: Path) -> MlModel:
    """Read ``MLmodel``; ModelUnusable where it is missing or is not what MLflow writes."""
    file = folder / "MLmodel"
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        flavours = dict(content["flavors"])
        return MlModel(flavours, _inputs(content.get("signature") or {}), content.get("model_id"))
    except FileNotFoundError as exc:
        raise ModelUnusable(
            f"{folder.name}: no MLmodel file, so this is no MLflow model; log it with `log_model`"
        ) from exc
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError) as exc:
        raise ModelUnusable(f"{folder.name}: its MLmodel file cannot be read ({exc}); log the model again") from exc


def _inputs(signature: Mapping[str, Any]) -> tuple[InputColumn, ...] | None:
    columns = json.loads(signature.get("inputs") or "[]")
    if not columns or any("name" not in column or column.get("type") == "tensor" for column in columns):
        return None
    return tuple(InputColumn(str(column["name"]), str(column["type"])) for column in columns)
