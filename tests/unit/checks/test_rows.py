"""Which rows count as standing on both sides: those that the model cannot tell apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from fakes import rows, splits

from mlflow_privacy_gate.checks import rows as room
from mlflow_privacy_gate.errors import SplitsUnavailable

MEMBERS = rows(300, seed=1)
STRANGERS = rows(300, seed=2)


def kept(
    members: pd.DataFrame, non_members: pd.DataFrame, *, seen: tuple[str, ...] | None = ("a", "b")
) -> room.TestedRows:
    return room.tested_rows(splits(members, non_members), seen=seen, max_rows=1_000, rng=np.random.default_rng(0))


def numbered(frame: pd.DataFrame, start: int) -> pd.DataFrame:
    marked: pd.DataFrame = frame.assign(row=[f"row {start + place}" for place in range(len(frame))])
    return marked


def noisy(frame: pd.DataFrame) -> pd.DataFrame:
    shaken: pd.DataFrame = frame.assign(a=frame["a"] * (1 + 1e-13 * np.random.default_rng(3).normal(size=len(frame))))
    return shaken


@pytest.mark.parametrize(
    "disguise",
    [lambda frame: frame, lambda frame: numbered(frame, 10_000), noisy, lambda frame: frame.astype({"a": "float32"})],
    ids=["none", "a row number", "noise in the last digits", "single precision"],
)
def test_members_in_disguise_are_counted_among_the_non_members(
    disguise: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    hidden = disguise(MEMBERS.head(60))
    non_members = pd.concat([hidden, disguise(STRANGERS)], ignore_index=True)
    members = numbered(MEMBERS, 0) if "row" in hidden else MEMBERS
    found = kept(members, non_members)
    assert found.shared == 60
    assert (len(found.members), len(found.non_members)) == (240, 300)


def test_nothing_is_left_where_the_non_members_are_the_members_in_disguise() -> None:
    with pytest.raises(SplitsUnavailable, match="all 300 rows stand on the other side"):
        kept(numbered(MEMBERS, 0), numbered(MEMBERS, 10_000))


def test_a_model_without_column_names_is_judged_by_every_column() -> None:
    assert kept(numbered(MEMBERS, 0), numbered(MEMBERS, 10_000), seen=None).shared == 0


def test_rows_that_differ_in_what_the_model_sees_are_not_shared() -> None:
    assert kept(MEMBERS, STRANGERS).shared == 0
