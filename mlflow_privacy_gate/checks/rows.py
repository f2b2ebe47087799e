"""The rows that a test uses: in an order of their own, those on both sides left out, a seeded sample where there are too many.

The order comes from the rows' content, so that no number of a test depends on how a file happened to be sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import shared_rows
from mlflow_privacy_gate.splits._interface import Split, Splits
from mlflow_privacy_gate.vocabulary import ReasonCode

if TYPE_CHECKING:
    import pandas as pd

Places: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Whereabouts:
    """Where n tested rows stand among all rows of their side: ``by_content`` (n,) in the order of their content, ``as_found`` (n,)."""

    by_content: Places
    as_found: Places

    def of(self, kept: npt.NDArray[np.bool_]) -> Whereabouts:
        """Give the whereabouts of some of the rows."""
        return Whereabouts(self.by_content[kept], self.as_found[kept])

    def then(self, other: Whereabouts) -> Whereabouts:
        """Give the whereabouts of these rows and, after them, those of another side."""
        return Whereabouts(
            np.concatenate((self.by_content, other.by_content)), np.concatenate((self.as_found, other.as_found))
        )


@dataclass(frozen=True)
class TestedRows:
    """The labelled rows of each side as they are tested, under the index they were found with, and what was left out to get there.
    ``shared`` counts the rows that stood on both sides, ``shared_expected`` what duplication within the sides alone predicts.
    ``group_overlap`` counts groups on both sides, None without a group column. ``notes`` are sentences for the card.
    """

    members: pd.DataFrame
    non_members: pd.DataFrame
    members_at: Whereabouts
    non_members_at: Whereabouts
    shared: int
    shared_expected: float
    group_overlap: int | None
    notes: tuple[str, ...]


def tested_rows(splits: Splits, *, seen: Sequence[str] | None, max_rows: int, rng: np.random.Generator) -> TestedRows:
    """Give the rows to test; shared rows are dropped from both sides, for from one side only they would shift the AUC.

    ``seen``: the columns that the model takes, None where they have no names. Rows are shared when the model cannot tell them apart: equal
    in what it sees and in the label, numbers as single precision. A row number or noise in the last digits makes no new row.
    SplitsUnavailable when nothing is left of a side.
    """
    order = shared_rows(splits.members.frame, splits.non_members.frame)
    shared = shared_rows(_as_seen(splits.members, splits, seen), _as_seen(splits.non_members, splits, seen))
    members = _kept("members", order.member_order, shared.member_mask, max_rows, rng)
    non_members = _kept("non-members", order.non_member_order, shared.non_member_mask, max_rows, rng)
    return TestedRows(
        splits.members.frame.iloc[members.as_found],
        splits.non_members.frame.iloc[non_members.as_found],
        members,
        non_members,
        shared.count,
        shared.expected,
        _group_overlap(splits),
        tuple(
            f"A seeded sample of {max_rows:,} of {left:,} {role} was tested."
            for role, mask in (("members", shared.member_mask), ("non-members", shared.non_member_mask))
            if (left := int(np.count_nonzero(~mask))) > max_rows
        ),
    )


def _kept(
    role: str, order: Places, on_both_sides: npt.NDArray[np.bool_], max_rows: int, rng: np.random.Generator
) -> Whereabouts:
    places = np.flatnonzero(~on_both_sides[order])
    if not places.size:
        raise SplitsUnavailable(
            f"{role}: all {on_both_sides.size:,} rows stand on the other side too, so nothing can be told apart; "
            "use non-members that the model was not trained on",
            code=ReasonCode.PG103,
        )
    if places.size > max_rows:
        places = places[np.sort(rng.choice(places.size, max_rows, replace=False))]
    return Whereabouts(places, order[places])


def _as_seen(split: Split, splits: Splits, seen: Sequence[str] | None) -> pd.DataFrame:
    """Give the columns that the model can see and the label, floating-point numbers in single precision."""
    columns = list(dict.fromkeys((*seen, splits.target))) if seen is not None else list(split.frame.columns)
    view: pd.DataFrame = split.frame[[column for column in columns if column in split.frame.columns]]
    floats = [name for name, kind in view.dtypes.items() if isinstance(kind, np.dtype) and kind.kind == "f"]
    rounded: pd.DataFrame = view.astype(dict.fromkeys(floats, "float32"))
    return rounded


def _group_overlap(splits: Splits) -> int | None:
    if splits.group is None:
        return None
    sides = [split.frame[splits.group].dropna() for split in (splits.members, splits.non_members)]
    return len(set(sides[0]) & set(sides[1]))
