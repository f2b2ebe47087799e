"""Running attacks on what a model said of both sides, and summing each up in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate import attacks, stats
from mlflow_privacy_gate.attacks.rmia import share_outdone
from mlflow_privacy_gate.attacks.shadow_protocol import NOTE as PROTOCOL_NOTE
from mlflow_privacy_gate.attacks.shadow_protocol import shadow_protocol
from mlflow_privacy_gate.evidence.facts import WORST_AUC, AttackFacts, Metric
from mlflow_privacy_gate.vocabulary import ATTACKS, Need, ReferenceOrigin, tpr_metric_id

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.checks.observing import Pool

FloatArray = npt.NDArray[np.float64]

STANDARD_FPRS = (0.01, 0.001)
SHADOW_PROTOCOL = "shadow_protocol"
RMIA = "rmia"
# Above this the bootstrap says nothing that the order statistics do not, and a million rows would wait for it.
MOST_BOOTSTRAPPED_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Scored:
    """One attack's score of every pooled row: ``scores`` (n,) float64, NaN where the attack had to leave the row out."""

    name: str
    scores: FloatArray
    is_member: npt.NDArray[np.bool_]

    @property
    def members(self) -> FloatArray:
        """The scores of the members that could be scored."""
        return self.scores[self.is_member & ~np.isnan(self.scores)]

    @property
    def non_members(self) -> FloatArray:
        """The scores of the non-members that could be scored."""
        return self.scores[~self.is_member & ~np.isnan(self.scores)]

    @property
    def left_out(self) -> int:
        """How many rows could not be scored."""
        return int(np.count_nonzero(np.isnan(self.scores)))


def score(name: str, pool: Pool, *, seed: int) -> Scored:
    """Score every row by one attack."""
    scores = attacks.scores(
        name,
        pool.observations,
        pool.references,
        features=features_for((name,), pool),
        is_member=pool.is_member,
        rng=np.random.default_rng(seed),
    )
    return Scored(name, scores, pool.is_member)


def features_for(names: Iterable[str], pool: Pool) -> pd.DataFrame | None:
    """Give the pool's features where one of the attacks needs them."""
    return pool.features if any(Need.FEATURES in ATTACKS[name].needs for name in names) else None


def facts_of(scored: Scored, pool: Pool, *, fprs: Iterable[float], seed: int) -> AttackFacts:
    """Sum up one attack: AUC with DeLong interval, TPR at each FPR with its bounds, balanced accuracy beside its null value."""
    asked = tuple(dict.fromkeys((*STANDARD_FPRS, *fprs)))
    sides = scored.members, scored.non_members
    summary = stats.summarise(*sides, fprs=asked)
    spread = _spread(sides, asked, seed)
    interval = summary.interval
    accuracy = stats.balanced_accuracy(*sides)
    metrics = (
        Metric("auc", summary.auc, interval.low, interval.high, interval.upper, interval.method),
        *(_tpr(summary.tpr[fpr], summary.tpr_upper[fpr], spread.get(fpr)) for fpr in asked),
        Metric("balanced_accuracy", accuracy.value, note=f"pure noise reaches {accuracy.null_value:.4f}"),
    )
    facts = AttackFacts(scored.name, ATTACKS[scored.name].formula, metrics, rows_left_out=scored.left_out)
    if scored.name == SHADOW_PROTOCOL:
        return _with_protocol(facts, pool)
    if (
        Need.REFERENCE_LIKELIHOOD in ATTACKS[scored.name].needs
        and pool.observations.reference_log_likelihood is not None
    ):
        count = len(pool.observations.reference_log_likelihood)
        return replace(facts, references=count, references_origin=ReferenceOrigin.LOGGED_MODELS)
    if Need.REFERENCES not in ATTACKS[scored.name].needs or pool.references is None:
        return facts
    references = pool.references
    made = replace(
        facts,
        seed=references.seed,
        references=references.count,
        references_origin=references.origin,
        notes=references.notes,
    )
    return _with_share(made, scored) if scored.name == RMIA else made


def with_worst(
    facts: Mapping[str, AttackFacts], decisive: Mapping[str, Scored], *, seed: int
) -> tuple[AttackFacts, ...]:
    """Add to the worst gating attack the interval that accounts for its having been chosen among several."""
    worst, interval = worst_of(decisive, facts), interval_of_worst(decisive, seed=seed)
    if worst is None or interval is None:
        return tuple(facts.values())
    auc = facts[worst].metric("auc")
    metric = Metric(
        WORST_AUC,
        auc.value if auc else None,
        interval.low,
        interval.high,
        interval.upper,
        interval.method,
        note=_said_of_the_choice(decisive),
    )
    return tuple(replace(one, metrics=(*one.metrics, metric)) if name == worst else one for name, one in facts.items())


def interval_of_worst(scored: Mapping[str, Scored], *, seed: int) -> stats.Interval | None:
    """Give the interval of the largest AUC of two or more attacks, on the rows that all scored; None where there is none."""
    if len(scored) < 2:
        return None
    left_out = _left_out_by_any(scored)
    sides = {
        name: (one.scores[one.is_member & ~left_out], one.scores[~one.is_member & ~left_out])
        for name, one in scored.items()
    }
    if not all(side.size for pair in sides.values() for side in pair):
        return None
    return stats.max_auc_interval(sides, rng=np.random.default_rng(seed))


def _left_out_by_any(scored: Mapping[str, Scored]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.logical_or.reduce([np.isnan(one.scores) for one in scored.values()]), dtype=np.bool_)


def _said_of_the_choice(scored: Mapping[str, Scored]) -> str:
    rows = int(np.count_nonzero(_left_out_by_any(scored)))
    without = f", on the rows that all of them scored ({rows:,} left out)" if rows else ""
    return f"the interval allows for its being the largest of {len(scored)} attacks{without}"


def worst_of(decisive: Mapping[str, Scored], facts: Mapping[str, AttackFacts]) -> str | None:
    """Name the attack with the largest AUC among those that decide; None where there is none."""
    aucs = {
        name: metric.value for name in decisive if (metric := facts[name].metric("auc")) and metric.value is not None
    }
    return max(aucs, key=lambda name: aucs[name], default=None)


def _with_protocol(facts: AttackFacts, pool: Pool) -> AttackFacts:
    """Put the protocol's own mean over folds where others look for it, with the note that it hides leaks."""
    result = shadow_protocol(pool.observations, pool.is_member)
    mean = Metric(
        "auc_mean_over_folds", result.mean, note=f"standard deviation {result.std:.4f}; fails at 0.60 or more"
    )
    return replace(facts, metrics=(*facts.metrics, mean), notes=(*facts.notes, PROTOCOL_NOTE))


def _with_share(facts: AttackFacts, scored: Scored) -> AttackFacts:
    """Put beside rmia's AUC, which is of the ratio, that of the paper's score: the share of the non-members that a row outdoes."""
    shares = replace(scored, scores=share_outdone(scored.scores, scored.non_members))
    auc = stats.attack_auc(shares.members, shares.non_members)
    note = f"the paper's share of outdone non-members, which counts each of them against itself, gives AUC {auc:.4f}"
    return replace(facts, metrics=(*facts.metrics, Metric("auc_of_share", auc)), notes=(*facts.notes, note))


def _spread(sides: tuple[FloatArray, FloatArray], fprs: tuple[float, ...], seed: int) -> Mapping[float, stats.Interval]:
    if sides[0].size + sides[1].size > MOST_BOOTSTRAPPED_ROWS:
        return {}
    return stats.bootstrap_intervals(*sides, fprs=fprs, rng=np.random.default_rng(seed)).tpr


def _tpr(measured: stats.TprAtFpr, upper: float, interval: stats.Interval | None) -> Metric:
    shown = interval if measured.resolvable else None
    return Metric(
        tpr_metric_id(measured.fpr),
        measured.value if measured.resolvable else None,
        ci_low=shown.low if shown else None,
        ci_high=shown.high if shown else None,
        upper=upper,
        ci_method=shown.method if shown else None,
        note=measured.note or f"realised FPR {measured.realised_fpr:.6g}",
    )
