"""Running attacks on what a model said of both sides, and summing each up in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate import attacks, stats
from mlflow_privacy_gate.evidence.facts import AttackFacts, Metric
from mlflow_privacy_gate.vocabulary import ATTACKS, Need, tpr_metric_id

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.attacks.references import References

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

STANDARD_FPRS = (0.01, 0.001)
# Above this the bootstrap says nothing that the order statistics do not, and a million rows would wait for it.
MOST_BOOTSTRAPPED_ROWS = 50_000


@dataclass(frozen=True)
class Pool:
    """Everything an attack may see: observations of n rows, which are members, the rows themselves, and reference models' answers.

    ``is_member`` (n,) bool, ``features`` (n, d) and ``labels`` (n,) are in the order of the observations; ``references`` are of the
    same n rows.
    """

    observations: Observations
    is_member: BoolArray
    features: pd.DataFrame
    labels: pd.Series[Any]
    references: References | None = None


@dataclass(frozen=True)
class Scored:
    """One attack's scores of each side (float64, only rows it could score) and how many rows it had to leave out."""

    name: str
    members: FloatArray
    non_members: FloatArray
    left_out: int


def score(name: str, pool: Pool, *, seed: int) -> Scored:
    """Score every row by one attack; rows that too few reference models cover are left out and counted."""
    scores = attacks.scores(
        name,
        pool.observations,
        pool.references,
        features=pool.features,
        is_member=pool.is_member,
        rng=np.random.default_rng(seed),
    )
    known = ~np.isnan(scores)
    return Scored(name, scores[known & pool.is_member], scores[known & ~pool.is_member], int(np.count_nonzero(~known)))


def facts_of(scored: Scored, pool: Pool, *, fprs: Iterable[float], seed: int) -> AttackFacts:
    """Sum up one attack: AUC with DeLong interval, TPR at each FPR with its bounds, balanced accuracy beside its null value."""
    asked = tuple(dict.fromkeys((*STANDARD_FPRS, *fprs)))
    summary = stats.summarise(scored.members, scored.non_members, fprs=asked)
    spread = _spread(scored, asked, seed)
    interval = summary.interval
    accuracy = stats.balanced_accuracy(scored.members, scored.non_members)
    metrics = [
        Metric("auc", summary.auc, interval.low, interval.high, interval.upper, interval.method),
        *(_tpr(summary.tpr[fpr], summary.tpr_upper[fpr], spread.get(fpr)) for fpr in asked),
        Metric("balanced_accuracy", accuracy.value, note=f"pure noise reaches {accuracy.null_value:.4f}"),
    ]
    uses_references = Need.REFERENCES in ATTACKS[scored.name].needs and pool.references is not None
    references = pool.references if uses_references else None
    return AttackFacts(
        id=scored.name,
        formula=ATTACKS[scored.name].formula,
        metrics=tuple(metrics),
        rows_left_out=scored.left_out,
        seed=references.seed if references else None,
        references=references.count if references else 0,
        references_origin=references.origin if references else None,
        notes=references.notes if references else (),
    )


def worst_interval(scored: Iterable[Scored], *, seed: int) -> stats.Interval | None:
    """Give the interval of the largest AUC among several attacks on the same rows, which accounts for having chosen it."""
    sides = {one.name: (one.members, one.non_members) for one in scored if one.left_out == 0}
    if len(sides) < 2:
        return None
    return stats.max_auc_interval(sides, rng=np.random.default_rng(seed))


def _spread(scored: Scored, fprs: tuple[float, ...], seed: int) -> Mapping[float, stats.Interval]:
    if scored.members.size + scored.non_members.size > MOST_BOOTSTRAPPED_ROWS:
        return {}
    rng = np.random.default_rng(seed)
    return stats.bootstrap_intervals(scored.members, scored.non_members, fprs=fprs, rng=rng).tpr


def _tpr(measured: stats.TprAtFpr, upper: float, interval: stats.Interval | None) -> Metric:
    return Metric(
        tpr_metric_id(measured.fpr),
        measured.value if measured.resolvable else None,
        ci_low=interval.low if interval and measured.resolvable else None,
        ci_high=interval.high if interval and measured.resolvable else None,
        upper=upper,
        ci_method=interval.method if interval and measured.resolvable else None,
        note=measured.note or f"realised FPR {measured.realised_fpr:.6g}",
    )
