"""Writing splits to a run: MLflow dataset inputs, artifacts, and which model of the run they belong to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from mlflow_privacy_gate.errors import CouldNotLook, SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.subject import DatasetInput as RecordedInput
from mlflow_privacy_gate.splits.contexts import described, normalised, others, preferred
from mlflow_privacy_gate.splits.manifest import LoggedSplit, SplitManifest, folder_of
from mlflow_privacy_gate.splits.mlflow_record import mlflow_record
from mlflow_privacy_gate.vocabulary import DATASET_MODEL_TAG, MANIFEST_ARTIFACT

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run


@dataclass(frozen=True)
class Recording:
    """One run that splits are being recorded for; ``model_id`` None = no model was logged yet. ``folder`` is an artifact path."""

    client: MlflowClient
    run: Run
    model_id: str | None
    folder: str

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.run.info.run_id)

    def store_frame(self, name: str, frame: pd.DataFrame) -> None:
        """Store rows as parquet in the run's artifacts."""
        with tempfile.TemporaryDirectory(prefix="privacy-gate-") as scratch:
            file = Path(scratch) / name
            frame.to_parquet(file, index=False)
            self.client.log_artifact(self.run_id, str(file), self.folder)

    def store_text(self, name: str, text: bytes) -> None:
        """Store a small file in the run's artifacts, byte for byte."""
        with tempfile.TemporaryDirectory(prefix="privacy-gate-") as scratch:
            file = Path(scratch) / name
            file.write_bytes(text)
            self.client.log_artifact(self.run_id, str(file), self.folder)

    def refuse_others(self, one_input: DatasetInput, ranks: Mapping[str, int], *, side: str) -> None:
        """Refuse to record a side beside a different one that the run records for this model; UsageError names it.

        MLflow never takes a dataset input back, and a check could not tell which of the two the model was trained on.
        """
        digest = one_input.dataset.digest
        recorded = tuple(_as_recorded(one) for one in self.run.inputs.dataset_inputs) if self.run.inputs else ()
        mine = [one for one in recorded if one.model_id in {None, self.model_id}]
        loadable = [one for one in preferred(mine, ranks) if one.source_type != "code"]
        rivals = [one for one in others(loadable, digest=digest, rows=None) if ranks[normalised(one.context)] == 0]
        if rivals:
            raise UsageError(
                f"{side}: run {self.run_id} already records other rows ({described(rivals)}), and a check could not tell which the "
                "model was trained on; log the model and its splits in a run of their own"
            )

    def record_inputs(self, inputs: Sequence[DatasetInput]) -> None:
        """Record dataset inputs on the run."""
        self.client.log_inputs(self.run_id, datasets=list(inputs))

    def dataset_input(self, frame: pd.DataFrame, *, name: str, source: str, context: str) -> DatasetInput:
        """Return MLflow's record of one side: source, digest, schema and size, tied to the model where it is known."""
        from mlflow.entities import DatasetInput, InputTag
        from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT

        tags = [InputTag(MLFLOW_DATASET_CONTEXT, context)]
        if self.model_id is not None:
            tags.append(InputTag(DATASET_MODEL_TAG, self.model_id))
        return DatasetInput(mlflow_record(frame, name=name, source=source), tags)


@contextmanager
def recording_for(run_id: str | None, model_id: str | None) -> Iterator[Recording]:
    """Give the run to write to; UsageError where run or model cannot be told, CouldNotLook where MLflow does not answer."""
    import mlflow
    from mlflow.exceptions import MlflowException

    client = mlflow.MlflowClient()
    try:
        run = _run(client, run_id)
        model = model_id or _only_model(run)
        yield Recording(client, run, model, _folder(client, run.info.run_id, model))
    except MlflowException as exc:
        if exc.error_code in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
            raise UsageError(f"MLflow refused the splits: {exc.message}") from exc
        raise CouldNotLook(f"MLflow did not take the splits: {exc.message}") from exc


def _run(client: MlflowClient, run_id: str | None) -> Run:
    import mlflow

    if run_id is not None:
        return client.get_run(run_id)
    active = mlflow.active_run()
    if active is None:
        raise UsageError(
            "no run to log the splits to: call `log_splits` inside `mlflow.start_run()`, or pass `run_id=`"
        )
    return client.get_run(active.info.run_id)


def _only_model(run: Run) -> str | None:
    models = sorted({output.model_id for output in run.outputs.model_outputs}) if run.outputs else []
    if len(models) > 1:
        raise UsageError(
            f"run {run.info.run_id} logged {len(models)} models ({', '.join(models)}); say whose splits these are with `model_id=`"
        )
    return models[0] if models else None


def _folder(client: MlflowClient, run_id: str, model_id: str | None) -> str:
    """Return where this model's splits go: beside those of another model of the same run, never over them."""
    from mlflow.artifacts import download_artifacts

    shared, own = folder_of(None), folder_of(model_id)
    if model_id is None or not any(item.path == MANIFEST_ARTIFACT for item in client.list_artifacts(run_id, shared)):
        return shared
    with tempfile.TemporaryDirectory(prefix="privacy-gate-") as scratch:
        uri = f"runs:/{run_id}/{MANIFEST_ARTIFACT}"
        text = Path(download_artifacts(artifact_uri=uri, dst_path=scratch)).read_bytes()
    try:
        owner = SplitManifest.from_json(text).model_id
    except SplitsUnavailable:
        return shared
    return shared if owner in {None, model_id} else own


def with_mlflow_record(logged: LoggedSplit, recorded: DatasetInput) -> LoggedSplit:
    """Return a logged side with the name and digest that MLflow knows it by."""
    return LoggedSplit(
        logged.source, logged.rows, logged.digest, logged.columns, recorded.dataset.name, recorded.dataset.digest
    )


def _as_recorded(given: DatasetInput) -> RecordedInput:
    tags, dataset = {tag.key: tag.value for tag in given.tags}, given.dataset
    return RecordedInput(
        dataset.name,
        dataset.digest,
        tags.get("mlflow.data.context"),
        dataset.source_type,
        dataset.source,
        model_id=tags.get(DATASET_MODEL_TAG),
    )
