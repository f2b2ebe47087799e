"""Splits that the caller hands in, held against what the run's manifest says was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from mlflow_privacy_gate.errors import SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.splits._interface import Split, Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.columns import column_kinds, conform
from mlflow_privacy_gate.splits.loading import LoadedSide, compare_frame, load_logged
from mlflow_privacy_gate.splits.locations import missing_file, objection
from mlflow_privacy_gate.splits.manifest import LoggedSplit
from mlflow_privacy_gate.splits.manifest_source import (
    as_logged,
    logged_side,
    read_manifest,
    stated_models,
    used_for_tuning,
)
from mlflow_privacy_gate.splits.readers import readings
from mlflow_privacy_gate.splits.run_record import another_number
from mlflow_privacy_gate.splits.stated_training import stated_function
from mlflow_privacy_gate.splits.tables import as_frame
from mlflow_privacy_gate.splits.target import target_column
from mlflow_privacy_gate.vocabulary import SplitOrigin


class CallerSource:
    """Gives the caller's own members and non-members (tables, paths or URIs)."""

    origin = SplitOrigin.CALLER

    def __init__(
        self,
        members: object,
        non_members: object,
        access: SourceAccess,
        *,
        target: str | None = None,
        input_columns: Sequence[str] | None = None,
    ) -> None:
        self._members = members
        self._non_members = non_members
        self._access = access
        self._target = target
        self._input_columns = input_columns

    def find(self, model: ResolvedModel) -> Splits:
        """Give the caller's splits; ``as_logged`` says whether both are, whole, what the run's manifest names (None: no manifest)."""
        found = read_manifest(self._access.artifacts, model)
        if found is None:
            return self._without_manifest(model)
        manifest, sha256 = found
        members = self._compare(self._members, manifest.members, "members")
        non_members = self._compare(self._non_members, manifest.non_members, "non-members")
        target, notes = target_column(
            list(manifest.members.columns),
            asked=self._target,
            logged=manifest.target,
            input_columns=self._input_columns,
        )
        return Splits(
            members=logged_side(members, manifest.members, source=_named(self._members)),
            non_members=logged_side(non_members, manifest.non_members, source=_named(self._non_members)),
            target=target,
            origin=self.origin,
            group=manifest.group,
            manifest_sha256=sha256,
            **as_logged(self._access.artifacts, model, manifest, members, non_members),
            used_for_tuning=used_for_tuning(self._access.artifacts, model, manifest),
            notes=notes,
            training_function=stated_function(manifest.training_function, manifest.training_seed),
            reference_models=stated_models(manifest, self._access),
        )

    def _compare(self, given: object, logged: LoggedSplit, role: str) -> LoadedSide:
        source = _named(given)
        if source is not None:
            return load_logged(logged, self._access, role=role, source=source)
        found = compare_frame(given, logged, role=role)
        return replace(found, frame=_under_its_index(found.frame, given))

    def _without_manifest(self, model: ResolvedModel) -> Splits:
        """Give the caller's splits; False where the run's own record has other numbers of rows, None where nothing speaks for them."""
        members = load_table(self._members, self._access, role="members")
        non_members = load_table(self._non_members, self._access, role="non-members")
        columns = [name for name in members.frame.columns if name in non_members.frame.columns]
        target, notes = target_column(columns, asked=self._target, input_columns=self._input_columns)
        inputs = self._access.artifacts.dataset_inputs(model)
        against = [
            words
            for role, side in (("members", members), ("non-members", non_members))
            if (words := another_number(inputs, model, role=role, rows=len(side.frame)))
        ]
        return Splits(
            members,
            non_members,
            target,
            self.origin,
            as_logged=False if against else None,
            as_logged_note="; ".join(against) or None,
            notes=notes,
        )


def refuse_missing(**given: object) -> None:
    """Refuse files that the caller names and that are not here, before anything else is done; UsageError names file and option."""
    for name, one in given.items():
        source = _named(one)
        if source is not None and missing_file(source) is not None:
            why = objection(source) or f"there is no such file (looked at {Path(source).expanduser().absolute()})"
            raise UsageError(f"--{name.replace('_', '-')} {source!r}: {why}")


def load_table(given: object, access: SourceAccess, *, role: str) -> Split:
    """Load rows of which nothing was logged (a table, a path or a URI); SplitsUnavailable where there are none."""
    source = _named(given)
    if source is None:
        frame = as_frame(given, what=role)
    else:
        with access.open(source) as path:
            frame = as_frame(next(readings(path, max_rows=access.max_rows)), what=role)
    if frame.empty:
        raise SplitsUnavailable(f"{role}: no rows in what was handed in")
    frame = conform(frame, column_kinds(frame))
    return Split(_under_its_index(frame, given), rowset_digest(frame), source)


def _under_its_index(frame: pd.DataFrame, given: object) -> pd.DataFrame:
    """Give rows the index of the table they were handed in as: by it the caller finds each row again. Other tables number their rows."""
    return frame.set_axis(given.index, axis=0) if isinstance(given, pd.DataFrame) else frame


def _named(given: object) -> str | None:
    return str(given) if isinstance(given, (str, Path)) else None
