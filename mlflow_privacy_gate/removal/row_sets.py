"""The rows of an audit: query, calibration rows and known training rows, held apart from one another and against what was logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import shared_rows

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.splits._interface import Split


@dataclass(frozen=True)
class RowSet:
    """One set of labelled rows: ``found`` as it was handed in or logged, ``frame`` the rows and columns that are used."""

    role: str
    found: Split
    frame: pd.DataFrame


@dataclass(frozen=True)
class Record:
    """What the model's own run says it was trained on; ``members`` None where that could not be had. ``said`` tells where, or why not."""

    members: Split | None
    target: str | None
    said: str


@dataclass(frozen=True)
class AuditRows:
    """The row sets of one audit. No query row stands in another set; no held-out row among training or control rows.

    ``calibration_test`` serves as the held-out rows. ``query_among_members`` counts query rows that stand among the logged training rows;
    ``unlogged_control`` control rows that do not; both None without a record. ``notes``: sentences on what was left out.
    """

    target: str
    query: RowSet
    calibration_train: RowSet
    calibration_test: RowSet
    control: RowSet | None
    record: Record
    query_among_members: int | None
    unlogged_control: int | None
    notes: tuple[str, ...]


def audit_rows(
    query: Split,
    calibration_train: Split,
    calibration_test: Split,
    control: Split | None,
    record: Record,
    *,
    target: str,
    features: Iterable[str],
    max_rows: int,
    seed: int,
) -> AuditRows:
    """Hold the sets apart and against the record; ``control`` None takes the logged training rows.

    More than ``max_rows`` of a set other than the query are sampled. SplitsUnavailable where columns are missing or a set is left empty.
    """
    columns = [*features, target]
    asked, train, test = (
        RowSet(role, found, _chosen(found.frame, columns, role))
        for role, found in (
            ("query", query),
            ("calibration_train", calibration_train),
            ("calibration_test", calibration_test),
        )
    )
    members = None if record.members is None else RowSet("members", record.members, record.members.frame)
    if members is not None:
        members = replace(members, frame=_chosen(members.frame, columns, "logged members"))
    known = _control(control, members, columns)
    among = None if members is None else int(_in(asked.frame, members.frame).sum())
    unlogged = None if members is None or known is None else int((~_in(known.frame, members.frame)).sum())
    notes: list[str] = []
    train = _without(train, asked, notes)
    known = None if known is None else _without(known, asked, notes, may_be_empty=True)
    for others in (asked, train, known, members):
        test = test if others is None else _without(test, others, notes)
    rng = np.random.default_rng(seed)
    train, test = (_sampled(one, max_rows, rng, notes) for one in (train, test))
    known = None if known is None or known.frame.empty else _sampled(known, max_rows, rng, notes)
    return AuditRows(target, asked, train, test, known, record, among, unlogged, tuple(notes))


def _control(given: Split | None, members: RowSet | None, columns: list[str]) -> RowSet | None:
    if given is not None:
        return RowSet("control", given, _chosen(given.frame, columns, "control"))
    return None if members is None else replace(members, role="control")


def _chosen(frame: pd.DataFrame, columns: list[str], role: str) -> pd.DataFrame:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise SplitsUnavailable(
            f"{role}: lacks the columns {', '.join(map(repr, missing[:8]))}; hand in whole labelled rows"
        )
    chosen: pd.DataFrame = frame[columns]
    return chosen


def _in(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which rows stand among the others as well, equal in every column, bool (n,)."""
    return shared_rows(rows, others).member_mask


def _without(rows: RowSet, others: RowSet, notes: list[str], *, may_be_empty: bool = False) -> RowSet:
    shared = _in(rows.frame, others.frame)
    if not shared.any():
        return rows
    notes.append(
        f"{int(shared.sum()):,} {_words(rows)} also stand among the {_words(others)} and were left out of the former."
    )
    left = rows.frame[~shared]
    if left.empty and not may_be_empty:
        raise SplitsUnavailable(
            f"{rows.role}: all {len(rows.frame):,} rows stand among the {_words(others)} too; use rows that do not"
        )
    return replace(rows, frame=left)


def _sampled(rows: RowSet, max_rows: int, rng: np.random.Generator, notes: list[str]) -> RowSet:
    if len(rows.frame) <= max_rows:
        return rows
    notes.append(f"A seeded sample of {max_rows:,} of {len(rows.frame):,} {_words(rows)} was used.")
    kept = np.sort(rng.choice(len(rows.frame), max_rows, replace=False))
    return replace(rows, frame=rows.frame.iloc[kept])


def _words(rows: RowSet) -> str:
    return {
        "query": "query rows",
        "calibration_train": "calibration training rows",
        "calibration_test": "calibration test rows",
        "control": "control rows",
        "members": "logged training rows of the model",
    }[rows.role]
