"""Measuring one model on its splits: observations, attacks, validity of the test. Facts only; the verdict is the policy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks.blind import FEWEST_ROWS, BlindBaseline, blind_baseline
from mlflow_privacy_gate.attacks.catalogue import applicable
from mlflow_privacy_gate.attacks.error import with_shared_scale
from mlflow_privacy_gate.attacks.observations import Observations, joined
from mlflow_privacy_gate.checks.attacking import Pool, Scored, facts_of, score, worst_interval
from mlflow_privacy_gate.checks.referring import Referred, refer
from mlflow_privacy_gate.checks.rows import TestedRows, tested_rows
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    DataFacts,
    Metric,
    NotRun,
    SplitFacts,
    SubgroupFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.policy.gating import gating_attacks
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS, NOT_RUN_EVER, Membership

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy.model import Policy
    from mlflow_privacy_gate.splits._interface import Split, Splits

Progress = Callable[[str], None]

COARSE_SHARE = 0.2
ASKED_TWICE_ROWS = 200
RETRAINING = "How much the result would vary if the model were trained again is outside the intervals."


@dataclass(frozen=True)
class Measurement:
    """Everything that was measured, without a word on whether it is acceptable.

    ``curves`` holds the scores of the attacks that gate, for drawing; they are rows' scores and never leave the process as such.
    ``accuracy_members`` and ``accuracy_non_members`` are fractions, None for models without labels.
    """

    kind: str
    attacks: tuple[AttackFacts, ...]
    data: tuple[DataFacts, ...]
    splits: SplitFacts
    validity: ValidityFacts
    subgroups: tuple[SubgroupFacts, ...]
    not_run: tuple[NotRun, ...]
    limitations: tuple[str, ...]
    gating: tuple[str, ...]
    curves: Mapping[str, Scored]
    accuracy_members: float | None
    accuracy_non_members: float | None
    parameters: int | None
    library_versions: Mapping[str, str]


def measure(model: LoadedModel, splits: Splits, policy: Policy, *, progress: Progress = lambda _: None) -> Measurement:
    """Ask the model about both sides once and measure whatever the policy asks for, and what it needs to believe it.

    CouldNotJudge and its kin where the model, the splits or the answers cannot be used; nothing is ever dropped in silence.
    """
    seed = policy.attacks.seed
    rows = tested_rows(splits, max_rows=policy.sources.max_rows, rng=np.random.default_rng(seed))
    progress("asking the model about both sides")
    sides = _observed(model, rows, splits.target)
    progress("looking for differences that need no model")
    blind = _blind(rows, seed)
    pool = _pool(sides, rows, splits.target)
    referred = refer(model, pool, splits, policy, progress=progress)
    pool = replace(pool, references=referred.references)
    gating = gating_attacks(policy, pool.observations.kind)
    wanted = _wanted(policy, pool.observations, gating)
    possible, impossible = applicable(wanted, pool.observations, referred.given(pool))
    progress("running the attacks")
    scored = {name: score(name, pool, seed=seed) for name in possible}
    facts = {name: facts_of(one, pool, fprs=policy.margin.tpr_at_fpr, seed=seed) for name, one in scored.items()}
    decisive = {name: scored[name] for name in gating if name in scored}
    return Measurement(
        kind=pool.observations.kind,
        attacks=_with_worst(facts, decisive, seed),
        data=tuple(
            _data(role, split, side, frame)
            for role, split, side, frame in (
                ("members", splits.members, sides[0], rows.members),
                ("non_members", splits.non_members, sides[1], rows.non_members),
            )
        ),
        splits=_split_facts(splits, rows, referred),
        validity=_validity(model, rows, splits, sides, blind, scored, referred),
        subgroups=(),
        not_run=_not_run(impossible, referred),
        limitations=(RETRAINING, *rows.notes, *splits.notes, *model.notes.warnings, *referred.notes),
        gating=gating,
        curves=decisive,
        accuracy_members=_accuracy(sides[0]),
        accuracy_non_members=_accuracy(sides[1]),
        parameters=model.notes.parameters,
        library_versions=model.notes.library_versions or {},
    )


def _observed(model: LoadedModel, rows: TestedRows, target: str) -> tuple[Observations, Observations]:
    members, non_members = (
        model.observe(frame.drop(columns=target), frame[target]) for frame in (rows.members, rows.non_members)
    )
    if members.kind == "regression":
        members, non_members = with_shared_scale(members, non_members)
    return members, non_members


def _pool(sides: tuple[Observations, Observations], rows: TestedRows, target: str) -> Pool:
    import pandas as pd

    members, non_members = sides
    frames = [
        frame[side.kept] if side.unknown_labels else frame
        for frame, side in ((rows.members, members), (rows.non_members, non_members))
    ]
    pooled = pd.concat(frames, ignore_index=True)
    is_member = np.repeat([True, False], [members.n, non_members.n])
    return Pool(joined(members, non_members), is_member, pooled.drop(columns=target), pooled[target])


def _blind(rows: TestedRows, seed: int) -> BlindBaseline | None:
    if min(len(rows.members), len(rows.non_members)) < FEWEST_ROWS:
        return None
    return blind_baseline(rows.members, rows.non_members, rng=np.random.default_rng(seed))


def _wanted(policy: Policy, observations: Observations, gating: tuple[str, ...]) -> tuple[str, ...]:
    """Name the attacks to run: what gates, what the policy reports, the rule's own, and what a coarse model is judged by beside them."""
    own = KIND_ATTACKS[observations.kind]
    always = ("confidence", "correctness") if observations.kind == "classification" else own
    return tuple(dict.fromkeys((*gating, *always, *policy.attacks.report)))


def _with_worst(facts: Mapping[str, AttackFacts], decisive: Mapping[str, Scored], seed: int) -> tuple[AttackFacts, ...]:
    """Add to the worst gating attack the interval that accounts for its having been chosen."""
    interval = worst_interval(decisive.values(), seed=seed)
    if interval is None:
        return tuple(facts.values())
    aucs = {
        name: metric.value for name in decisive if (metric := facts[name].metric("auc")) and metric.value is not None
    }
    worst = max(aucs, key=lambda name: aucs[name])
    metric = Metric("auc_worst", aucs[worst], interval.low, interval.high, interval.upper, interval.method)
    return tuple(replace(one, metrics=(*one.metrics, metric)) if name == worst else one for name, one in facts.items())


def _data(role: str, split: Split, side: Observations, frame: pd.DataFrame) -> DataFacts:
    return DataFacts(
        role=role,
        rows=len(split.frame),
        rows_used=len(frame) - side.unknown_labels,
        digest=split.digest,
        unknown_labels=side.unknown_labels,
        source=split.source,
        mlflow_name=split.mlflow_name,
        mlflow_digest=split.mlflow_digest,
    )


def _split_facts(splits: Splits, rows: TestedRows, referred: Referred) -> SplitFacts:
    return SplitFacts(
        origin=splits.origin,
        membership=Membership.REPRODUCED if referred.reproduced else Membership.DECLARED,
        manifest_sha256=splits.manifest_sha256,
        as_logged=splits.as_logged,
        as_logged_note=splits.as_logged_note,
        group=splits.group,
        group_overlap=rows.group_overlap,
        shared_rows=rows.shared,
        shared_rows_expected=rows.shared_expected,
        used_for_tuning=splits.used_for_tuning,
    )


def _validity(
    model: LoadedModel,
    rows: TestedRows,
    splits: Splits,
    sides: tuple[Observations, Observations],
    blind: BlindBaseline | None,
    scored: Mapping[str, Scored],
    referred: Referred,
) -> ValidityFacts:
    # Ties are a fact of the model's answers: they are counted on the rule's own score, or the first that there is.
    coarse = scored.get("confidence") or next(iter(scored.values()), None)
    return ValidityFacts(
        blind_auc=blind.auc if blind else None,
        blind_ci_low=blind.interval.low if blind else None,
        blind_columns=blind.column_names if blind and blind.interval.low > 0.5 else (),
        tie_share=stats.tie_share(coarse.members, coarse.non_members) if coarse else None,
        positive_control_auc=referred.control_auc,
        positive_control_ci_low=referred.control_ci_low,
        unstable_rows=_unstable(model, rows, splits.target),
        smallest_detectable_auc=stats.smallest_detectable_auc(sides[0].n, sides[1].n),
        holds_training_rows=model.notes.holds_training_rows,
    )


def _unstable(model: LoadedModel, rows: TestedRows, target: str) -> int:
    """Count the rows of a small sample on which the model, asked twice, gives two answers."""
    sample = rows.members.head(ASKED_TWICE_ROWS)
    features, labels = sample.drop(columns=target), sample[target]
    first, again = (model.observe(features, labels) for _ in range(2))
    given = next(
        (pair for name in _ANSWERS if (pair := (getattr(first, name), getattr(again, name)))[0] is not None), None
    )
    if given is None:
        return 0
    differs = given[0] != given[1]
    return int(np.count_nonzero(differs.any(axis=1) if differs.ndim > 1 else differs))


_ANSWERS = ("probabilities", "logits", "correct", "residuals", "log_likelihood")


def _accuracy(side: Observations) -> float | None:
    from mlflow_privacy_gate.attacks import scores

    if side.kind not in ("classification", "label_only") or side.n == 0:
        return None
    return float(scores("correctness", side).mean())


def _not_run(impossible: Mapping[str, str], referred: Referred) -> tuple[NotRun, ...]:
    return (
        *(NotRun(name, referred.why_not.get(name, reason)) for name, reason in impossible.items()),
        *(NotRun(name, "not tried by this tool") for name in NOT_RUN_EVER),
    )
