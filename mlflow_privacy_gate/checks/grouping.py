"""Subgroups of one check: the deciding attack within each class and within the columns that the caller named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate.attacks.subgroups import Grouping, by_column, by_value, subgroups
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.facts import SubgroupFacts

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.attacking import Scored
    from mlflow_privacy_gate.checks.observing import Pool


def subgroup_facts(scored: Scored | None, pool: Pool, columns: Sequence[str]) -> tuple[SubgroupFacts, ...]:
    """Measure one attack within each class (classifiers) and each named column; UsageError for a column that is not there."""
    missing = [column for column in columns if column not in pool.tables[0].columns or column == pool.target]
    if missing:
        raise UsageError(f"subgroups: the splits have no column {', '.join(map(repr, missing))}")
    if scored is None:
        return ()
    known = ~np.isnan(scored.scores)
    groupings = _groupings(pool, columns, known & pool.is_member, known & ~pool.is_member)
    found = subgroups(scored.members, scored.non_members, groupings)
    return tuple(SubgroupFacts(**asdict(group)) for group in found)


def _groupings(pool: Pool, columns: Sequence[str], members: np.ndarray, non_members: np.ndarray) -> list[Grouping]:
    labels = pool.labels
    classes = [by_value(labels.name, labels[members], labels[non_members])] if _has_classes(pool) else []
    return classes + [
        by_column(
            column,
            pool.tables[0][column][members[pool.is_member]],
            pool.tables[1][column][non_members[~pool.is_member]],
        )
        for column in columns
    ]


def _has_classes(pool: Pool) -> bool:
    return pool.observations.kind in ("classification", "label_only")
