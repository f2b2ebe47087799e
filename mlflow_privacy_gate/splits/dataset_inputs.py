"""Splits from the dataset inputs that a run recorded with ``mlflow.log_input``, where their source can be loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.splits._interface import Split, Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.columns import Kind, column_kinds, conform, kinds_of_mlflow_schema
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS, TUNING, choose, normalised
from mlflow_privacy_gate.splits.mlflow_record import mlflow_digest
from mlflow_privacy_gate.splits.readers import readings
from mlflow_privacy_gate.splits.run_record import of_model, refuse_unowned
from mlflow_privacy_gate.splits.tables import as_frame
from mlflow_privacy_gate.splits.target import target_column
from mlflow_privacy_gate.vocabulary import ReasonCode, SplitOrigin

_WAY_OUT = "log the splits with `log_splits`, or hand them in with --members and --non-members"


@dataclass(frozen=True)
class _Side:
    split: Split
    difference: str | None


class DatasetInputsSource:
    """Finds splits among a run's dataset inputs by context, loads them and holds them against MLflow's own record."""

    origin = SplitOrigin.DATASET_INPUTS

    def __init__(
        self, access: SourceAccess, *, target: str | None = None, input_columns: Sequence[str] | None = None
    ) -> None:
        self._access = access
        self._target = target
        self._input_columns = input_columns

    def find(self, model: ResolvedModel) -> Splits | None:
        """Give the splits, None where the run records no dataset; SplitsUnavailable where they cannot be told or loaded.

        A row count or a digest of MLflow's other than the recorded one makes ``as_logged`` False. That digest also changes with the index,
        the types and the order of rows; but rows that cannot be shown to be the logged ones may be any rows, and must not pass.
        """
        inputs = of_model(self._access.artifacts.dataset_inputs(model), model)
        if not inputs:
            return None
        training, members_notes = choose(inputs, MEMBERS, role="members")
        testing, non_members_notes = choose(inputs, NON_MEMBERS, role="non-members")
        for chosen in (training, testing):
            if chosen.model_id is None:
                refuse_unowned(self._access.artifacts, model, what=f"dataset {chosen.name!r}")
        sides = [self._load(training, "members"), self._load(testing, "non-members")]
        members, non_members = (side.split for side in sides)
        shared = [name for name in members.frame.columns if name in non_members.frame.columns]
        target, target_notes = target_column(shared, asked=self._target, input_columns=self._input_columns)
        return Splits(
            members=members,
            non_members=non_members,
            target=target,
            origin=self.origin,
            as_logged=all(side.difference is None for side in sides),
            as_logged_note="; ".join(side.difference for side in sides if side.difference) or None,
            used_for_tuning=True if normalised(testing.context) in TUNING else None,
            notes=(*members_notes, *non_members_notes, *target_notes),
        )

    def _load(self, recorded: DatasetInput, role: str) -> _Side:
        source = _uri(recorded, role)
        kinds = kinds_of_mlflow_schema(recorded.schema)
        self._refuse_features_only(recorded, kinds, role)
        side: _Side | None = None
        with self._access.open(source) as path:
            for found in readings(path, kinds=kinds, max_rows=self._access.max_rows):
                now = _compared(found, recorded, kinds, role, source)
                if side is None or now.difference is None:
                    side = now
                if now.difference is None:
                    break
        if side is None:
            raise SplitsUnavailable(f"{role}: nothing could be read from {source}")
        return side

    def _refuse_features_only(self, recorded: DatasetInput, kinds: Mapping[str, Kind] | None, role: str) -> None:
        if kinds is None:
            return
        beside = set(kinds) - set(kinds if self._input_columns is None else self._input_columns)
        if self._target is not None and self._target not in kinds and beside:
            raise SplitsUnavailable(
                f"{role}: dataset {recorded.name!r} has no column {self._target!r}, which was given as the target; beside the model's "
                f"inputs it has {', '.join(map(repr, sorted(beside)))}"
            )
        labelled = self._target in kinds if self._target else self._input_columns is None or beside
        if not labelled:
            raise SplitsUnavailable(
                f"{role}: dataset {recorded.name!r} holds features only, no label column; {_WAY_OUT}"
            )


def _uri(recorded: DatasetInput, role: str) -> str:
    if recorded.source_type == "code":
        raise SplitsUnavailable(
            f"{role}: dataset {recorded.name!r} was recorded without a source (MLflow keeps only which code made it, as its autologging "
            f"does), so its rows cannot be loaded; give `mlflow.data.from_pandas(…, source=…)` a file, {_WAY_OUT}"
        )
    try:
        source = json.loads(recorded.source)
        uri = source.get("uri") or source.get("url")
    except (ValueError, AttributeError):
        uri = None
    if not isinstance(uri, str):
        raise SplitsUnavailable(
            f"{role}: dataset {recorded.name!r} has a source of type {recorded.source_type!r}, which cannot be loaded here; {_WAY_OUT}"
        )
    return uri


def _compared(
    found: pd.DataFrame, recorded: DatasetInput, kinds: Mapping[str, Kind] | None, role: str, source: str
) -> _Side:
    frame = as_frame(found, what=role)
    missing = [name for name in kinds or {} if name not in frame.columns]
    if missing:
        raise SplitsUnavailable(
            f"{role}: {source} lacks columns that dataset {recorded.name!r} recorded: {', '.join(missing[:5])}",
            code=ReasonCode.PG104,
        )
    frame = conform(frame, kinds if kinds is not None else column_kinds(frame))
    split = Split(
        frame=frame,
        digest=rowset_digest(frame),
        source=source,
        mlflow_name=recorded.name,
        mlflow_digest=recorded.digest,
    )
    if recorded.num_rows is not None and recorded.num_rows != len(frame):
        words = f"{role}: {source} holds {len(frame):,} rows, dataset {recorded.name!r} recorded {recorded.num_rows:,}"
        return _Side(split, words)
    if mlflow_digest(frame) != recorded.digest:
        words = (
            f"{role}: MLflow's digest of {source} is not the recorded {recorded.digest}: the file was changed, or the table that was "
            "logged had another index, row order or types than the file; `log_splits` records a digest that depends on none of these"
        )
        return _Side(split, words)
    return _Side(split, None)
