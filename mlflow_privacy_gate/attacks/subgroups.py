"""Subgroups: one attack's AUC and TPR at 1 % FPR per class, per value of a column, per quarter of a numeric column.

An average may hide a leak in one of them.

P-values are of one-sided tests, by ranks and in the tail, of "members do not score higher", corrected by Holm over all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_privacy_gate.attacks._interface import FloatArray
from mlflow_privacy_gate.attacks.encoding import encode
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import holm, rank_test, tpr_at_fpr, tpr_p_value

FEWEST_ROWS = 100  # a side, or the group is not judged
SMALLEST_CELL = 10
MOST_NAMED = 20  # groups of one column that are too small to be judged but large enough to be named
QUANTILES = 4
TOO_SMALL = "too small"
TAIL_FPR = 0.01
MISSING = "missing"
OTHERS = "other groups"
_Names = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Grouping:
    """One way of parting the rows: ``members`` (m,) and ``non_members`` (n,) hold the name of each row's group."""

    column: str
    members: _Names
    non_members: _Names


@dataclass(frozen=True)
class Subgroup:
    """One subgroup: rows a side, AUC with its 95 % interval, TPR at 1 % FPR, each with its p; ``note`` says why there is none.

    Groups of which a side has 1 to 9 rows are taken together as ``other groups``; a count that is still below 10 then is given as 0, and
    the note says so.
    """

    column: str
    group: str
    rows_members: int
    rows_non_members: int
    auc: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    holm_p: float | None = None
    note: str | None = None
    tpr: float | None = None
    tpr_holm_p: float | None = None


def by_value(column: object, members: object, non_members: object) -> Grouping:
    """Group rows by the value of a column: a label, or a column of words, booleans or few numbers; 1 and 1.0 are one group."""
    sides = pd.Series(members), pd.Series(non_members)
    codes, values = pd.factorize(pd.concat(sides, ignore_index=True))
    names = np.array([*(_name(value) for value in values), MISSING], dtype=object)
    return Grouping(str(column), names[codes[: len(sides[0])]], names[codes[len(sides[0]) :]])


def by_quantile(column: object, members: object, non_members: object, *, quantiles: int = QUANTILES) -> Grouping:
    """Group rows by the quarter (or other quantile) of a numeric or time column, cut where both sides together fall into equal parts.

    ObservationError where the column holds neither numbers nor times.
    """
    sides = pd.Series(members), pd.Series(non_members)
    pooled = encode(column, pd.concat(sides, ignore_index=True))
    if pooled.kind not in ("number", "time"):
        raise ObservationError(f"subgroups: column {column!r} holds neither numbers nor times; group it by value")
    known = pooled.numbers[~np.isnan(pooled.numbers)]
    cuts = np.unique(np.quantile(known, np.arange(1, quantiles) / quantiles, method="lower")) if known.size else known
    names = np.array([*(_part(cuts, part, pooled.kind) for part in range(cuts.size + 1)), MISSING], dtype=object)
    parts = np.where(np.isnan(pooled.numbers), cuts.size + 1, np.searchsorted(cuts, pooled.numbers, side="left"))
    return Grouping(str(column), names[parts[: len(sides[0])]], names[parts[len(sides[0]) :]])


def _name(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _part(cuts: FloatArray, part: int, kind: str) -> str:
    """Name a quantile by its number, and for numbers by its rounded bounds; exact bounds would be some row's own values."""
    name = f"part {part + 1} of {cuts.size + 1}"
    if kind == "time" or not cuts.size:
        return name
    bounds = [f"{cut:.3g}" for cut in cuts]
    if part == cuts.size:
        return f"{name} (above {bounds[-1]})"
    return f"{name} (up to {bounds[0]})" if part == 0 else f"{name} ({bounds[part - 1]} to {bounds[part]})"


def by_column(column: object, members: pd.Series[Any], non_members: pd.Series[Any]) -> Grouping:
    """Group rows by a column of any type: by quantile where it holds times or more than ten different numbers, else by value."""
    pooled = encode(column, pd.concat((members, non_members), ignore_index=True))
    many = np.unique(pooled.numbers[~np.isnan(pooled.numbers)]).size > SMALLEST_CELL
    if pooled.kind == "time" or (pooled.kind == "number" and many):
        return by_quantile(column, members, non_members)
    return by_value(column, members, non_members)


def subgroups(
    member_scores: FloatArray, non_member_scores: FloatArray, groupings: Sequence[Grouping]
) -> tuple[Subgroup, ...]:
    """Measure one attack in every group of every grouping, groups under 100 rows a side as ``too small``.

    ``member_scores`` (m,) and ``non_member_scores`` (n,) in the order of the groupings' rows. ObservationError where lengths differ.
    """
    found = list(chain.from_iterable(_of(grouping, member_scores, non_member_scores) for grouping in groupings))
    judged = [place for place, group in enumerate(found) if group.holm_p is not None]
    if judged:
        raw = [(found[place].holm_p or 0.0, found[place].tpr_holm_p or 0.0) for place in judged]
        corrected = holm(list(chain.from_iterable(raw))).reshape(-1, 2)
        for place, (by_rank, in_tail) in zip(judged, corrected, strict=True):
            found[place] = replace(found[place], holm_p=float(by_rank), tpr_holm_p=float(in_tail))
    return tuple(found)


def _of(grouping: Grouping, member_scores: FloatArray, non_member_scores: FloatArray) -> list[Subgroup]:
    """Measure one grouping; p-values are still uncorrected."""
    codes, names = pd.factorize(np.concatenate((grouping.members, grouping.non_members)), sort=True)
    m, n = len(grouping.members), len(grouping.non_members)
    if (m, n) != (len(member_scores), len(non_member_scores)):
        raise ObservationError(
            f"subgroups: column {grouping.column!r} has {m} + {n} rows, the scores {len(member_scores)} + {len(non_member_scores)}"
        )
    sides = [
        _split(scores, part, len(names))
        for scores, part in ((member_scores, codes[:m]), (non_member_scores, codes[m:]))
    ]
    measured = [_judge(grouping.column, str(name), *pair) for name, *pair in zip(names, *sides, strict=True)]
    return _without_small_cells(grouping.column, measured)


def _split(scores: FloatArray, codes: npt.NDArray[np.intp], groups: int) -> list[FloatArray]:
    order = np.argsort(codes, kind="stable")
    return np.split(scores[order], np.searchsorted(codes[order], np.arange(1, groups)))


def _judge(column: str, group: str, members: FloatArray, non_members: FloatArray) -> Subgroup:
    counted = Subgroup(column, group, members.size, non_members.size, note=TOO_SMALL)
    if min(members.size, non_members.size) < FEWEST_ROWS:
        return counted
    test = rank_test(members, non_members)
    return replace(
        counted,
        auc=test.auc,
        ci_low=test.interval.low,
        ci_high=test.interval.high,
        holm_p=test.p_value,
        note=None,
        tpr=tpr_at_fpr(members, non_members, TAIL_FPR).value,
        tpr_holm_p=tpr_p_value(members, non_members, TAIL_FPR),
    )


def _without_small_cells(column: str, measured: Sequence[Subgroup]) -> list[Subgroup]:
    """Take groups with a small cell together, and groups past the first twenty that are too small to be judged."""
    large = [group for group in measured if not _has_small_cell(group)]
    by_size = sorted(
        (group for group in large if group.auc is None), key=lambda g: -g.rows_members - g.rows_non_members
    )
    unnamed = {group.group for group in by_size[MOST_NAMED:]}
    kept = [group for group in large if group.group not in unnamed]
    folded = [group for group in measured if _has_small_cell(group) or group.group in unnamed]
    if not folded:
        return kept
    counts = [sum(group.rows_members for group in folded), sum(group.rows_non_members for group in folded)]
    hidden = any(map(_small, counts))
    note = f"{TOO_SMALL}; counts under {SMALLEST_CELL} are not given" if hidden else TOO_SMALL
    shown = [0 if _small(count) else count for count in counts]
    return [*kept, Subgroup(column, OTHERS, shown[0], shown[1], note=note)]


def _has_small_cell(group: Subgroup) -> bool:
    return _small(group.rows_members) or _small(group.rows_non_members)


def _small(count: int) -> bool:
    return 0 < count < SMALLEST_CELL
