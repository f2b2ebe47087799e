"""Loading one side again and holding it against what was logged of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.columns import conform
from mlflow_privacy_gate.splits.manifest import LoggedSplit
from mlflow_privacy_gate.splits.readers import readings
from mlflow_privacy_gate.splits.tables import as_frame
from mlflow_privacy_gate.vocabulary import ReasonCode


@dataclass(frozen=True)
class LoadedSide:
    """Rows with their digest; ``difference`` says how they differ from what was logged, None when they do not."""

    frame: pd.DataFrame
    digest: str
    difference: str | None


def load_logged(logged: LoggedSplit, access: SourceAccess, *, role: str, source: str | None = None) -> LoadedSide:
    """Load a logged side from its source (or another ``source`` given for it), in the reading whose digest is the logged one."""
    source = source or logged.source
    with access.open(source) as path:
        frames = readings(path, kinds=logged.columns, max_rows=access.max_rows)
        return _matching(frames, logged, role=role, where=source)


def compare_frame(table: object, logged: LoggedSplit, *, role: str) -> LoadedSide:
    """Hold a table in memory against what was logged; columns that were not logged are left out."""
    return _matching(iter([as_frame(table, what=role)]), logged, role=role, where=f"the {role} handed in")


def _matching(frames: Iterator[pd.DataFrame], logged: LoggedSplit, *, role: str, where: str) -> LoadedSide:
    first: LoadedSide | None = None
    for found in frames:
        missing = [name for name in logged.columns if name not in found.columns]
        if missing:
            raise SplitsUnavailable(
                f"{role}: {where} lacks columns that were logged: {', '.join(missing[:5])}", code=ReasonCode.PG104
            )
        frame = conform(found, logged.columns)
        digest = rowset_digest(frame)
        if digest == logged.digest:
            return LoadedSide(frame, digest, None)
        if first is None:
            first = LoadedSide(frame, digest, _difference(len(frame), digest, logged, role, where))
        if len(frame) != logged.rows:
            break
    if first is None:
        raise SplitsUnavailable(f"{role}: nothing could be read from {where}")
    return first


def _difference(rows: int, digest: str, logged: LoggedSplit, role: str, where: str) -> str:
    if rows != logged.rows:
        return f"{role}: {where} holds {rows:,} rows, {logged.rows:,} were logged"
    return f"{role}: {where} has the digest {_short(digest)}, logged was {_short(logged.digest)} (as many rows, other values)"


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:12]
