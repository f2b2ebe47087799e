"""The rows that a test uses: those on both sides left out, and a seeded sample where there are more than the policy takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import shared_rows
from mlflow_privacy_gate.splits._interface import Split, Splits

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TestedRows:
    """The labelled rows of each side as they are tested, under the index they were found with, and what was left out to get there.

    ``shared`` counts the rows that stood on both sides, ``shared_expected`` what duplication within the sides alone predicts.
    ``group_overlap`` counts groups on both sides, None without a group column. ``notes`` are sentences for the card.
    """

    members: pd.DataFrame
    non_members: pd.DataFrame
    shared: int
    shared_expected: float
    group_overlap: int | None
    notes: tuple[str, ...]


def tested_rows(splits: Splits, *, max_rows: int, rng: np.random.Generator) -> TestedRows:
    """Give the rows to test; shared rows are dropped from both sides, for from one side only they would shift the AUC.

    SplitsUnavailable when nothing is left of a side.
    """
    shared = shared_rows(splits.members.frame, splits.non_members.frame)
    members, said_members = _kept(splits.members, shared.member_mask, "members", max_rows, rng)
    non_members, said_non_members = _kept(splits.non_members, shared.non_member_mask, "non-members", max_rows, rng)
    return TestedRows(
        members, non_members, shared.count, shared.expected, _group_overlap(splits), (*said_members, *said_non_members)
    )


def _kept(
    split: Split, shared: np.ndarray[tuple[int], np.dtype[np.bool_]], role: str, max_rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    frame = split.frame[~shared] if shared.any() else split.frame
    if frame.empty:
        raise SplitsUnavailable(
            f"{role}: all {len(split.frame):,} rows stand on the other side too, so nothing can be told apart; "
            "use non-members that the model was not trained on"
        )
    notes: tuple[str, ...] = ()
    if len(frame) > max_rows:
        notes = (f"A seeded sample of {max_rows:,} of {len(frame):,} {role} was tested.",)
        frame = frame.iloc[np.sort(rng.choice(len(frame), max_rows, replace=False))]
    return frame, notes


def _group_overlap(splits: Splits) -> int | None:
    if splits.group is None:
        return None
    sides = [split.frame[splits.group].dropna() for split in (splits.members, splits.non_members)]
    return len(set(sides[0]) & set(sides[1]))
