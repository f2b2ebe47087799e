"""What MLflow itself records of a frame: its name, digest, source, schema and size."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pandas as pd

from mlflow_privacy_gate.splits.locations import is_uri

if TYPE_CHECKING:
    from mlflow.data.pandas_dataset import PandasDataset
    from mlflow.entities import Dataset

# MLflow refuses a longer dataset schema; a frame of about ten thousand columns has one.
_SCHEMA_LIMIT = 1_000_000
# MLflow's own artifact schemes have no dataset source class; its "local" source loads any artifact URI.
_MLFLOW_SCHEMES = frozenset({"runs", "models", "mlflow-artifacts"})


def mlflow_digest(frame: pd.DataFrame) -> str:
    """Return the digest that MLflow gives a frame (first 10,000 rows, some columns): it identifies and does not protect."""
    with _mlflows_own_warnings():
        return str(_dataset(frame, "rows").digest)


def mlflow_record(frame: pd.DataFrame, *, name: str, source: str) -> Dataset:
    """Return MLflow's entity for a frame that lies at ``source``; MlflowException for a scheme that MLflow does not know."""
    from mlflow.data.dataset_source_registry import resolve_dataset_source
    from mlflow.entities import Dataset

    with _mlflows_own_warnings():
        record = _dataset(frame, name).to_dict()
        if is_uri(source) and urlsplit(source).scheme.lower() in _MLFLOW_SCHEMES:
            kind, where = "local", json.dumps({"uri": source})
        else:
            resolved = resolve_dataset_source(source)
            kind, where = resolved._get_source_type(), resolved.to_json()
    schema = record.get("schema")
    return Dataset(
        name=name,
        digest=record["digest"],
        source_type=kind,
        source=where,
        schema=schema if schema is None or len(schema) <= _SCHEMA_LIMIT else None,
        profile=record.get("profile"),
    )


@contextmanager
def _mlflows_own_warnings() -> Iterator[None]:
    """Silence what MLflow says to itself: advice on integer columns, two readings of a local path, how it calls pandas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _dataset(frame: pd.DataFrame, name: str) -> PandasDataset:
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.pandas_dataset import PandasDataset

    return PandasDataset(frame, source=CodeDatasetSource(tags={}), name=name)
