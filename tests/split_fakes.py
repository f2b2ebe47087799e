"""Stand-ins for what a split source asks of a tracking server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel

MODEL = ResolvedModel(uri="models:/credit/1", artifact_uri="file:///model", run_id="r1", model_id="m-1")


@dataclass
class FakeArtifacts:
    """Keeps a run's artifacts and dataset inputs in memory; ``remote`` maps URIs to local files."""

    artifacts: dict[str, bytes] = field(default_factory=dict)
    inputs: tuple[DatasetInput, ...] = ()
    remote: Mapping[str, Path] = field(default_factory=dict)
    models: tuple[str, ...] = ("m-1",)

    def dataset_inputs(self, model: ResolvedModel) -> tuple[DatasetInput, ...]:
        return self.inputs

    def logged_models(self, model: ResolvedModel) -> tuple[str, ...]:
        return self.models

    def read_artifact(self, model: ResolvedModel, path: str) -> bytes | None:
        return self.artifacts.get(path)

    @contextmanager
    def download_artifacts(self, artifact_uri: str) -> Iterator[Path]:
        yield self.remote[artifact_uri]


def recorded(
    name: str,
    context: str | None,
    *,
    digest: str = "0123abcd",
    uri: str | Path | None = None,
    source_type: str | None = None,
    columns: Mapping[str, str] | None = None,
    rows: int | None = None,
    model_id: str | None = None,
) -> DatasetInput:
    """A dataset input as MLflow records it; without ``uri`` its source is code, as autologging's is."""
    kind = source_type or ("code" if uri is None else "local")
    colspec = None if columns is None else [{"name": key, "type": value} for key, value in columns.items()]
    return DatasetInput(
        name=name,
        digest=digest,
        context=context,
        source_type=kind,
        source=json.dumps({"tags": {}} if uri is None else {"uri": str(uri)}),
        schema=None if colspec is None else json.dumps({"mlflow_colspec": colspec}),
        num_rows=rows,
        model_id=model_id,
    )
