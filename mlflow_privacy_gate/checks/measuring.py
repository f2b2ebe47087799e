"""Measuring one model on its splits: observations, attacks, validity of the test. Facts only; the verdict is the policy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks.blind import FEWEST_ROWS, BlindBaseline, blind_baseline
from mlflow_privacy_gate.attacks.catalogue import applicable
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.checks.attacking import Scored, facts_of, features_for, score, with_worst, worst_of
from mlflow_privacy_gate.checks.grouping import subgroup_facts
from mlflow_privacy_gate.checks.observing import Pool, accuracy, ask, pooled, unstable_rows
from mlflow_privacy_gate.checks.referring import Referred, needy, refer
from mlflow_privacy_gate.checks.rows import TestedRows, tested_rows
from mlflow_privacy_gate.checks.stated_references import OpenLogged
from mlflow_privacy_gate.checks.stating import data_facts, split_facts, validity_facts
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    DataFacts,
    DifferentialPrivacyClaim,
    NotRun,
    PrivacyBudgetFacts,
    SplitFacts,
    SubgroupFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.policy.gating import gating_attacks
from mlflow_privacy_gate.policy.margin import exceeds
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS, NOT_RUN_EVER

if TYPE_CHECKING:
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.splits._interface import Splits

Progress = Callable[[str], None]

RETRAINING = "How much the result would vary if the model were trained again is outside the intervals."
UNSTABLE = (
    "Asked twice about the same rows, the model gave two answers on {} of a small sample: every number here is of one asking, "
    "and whoever asks again and again learns more."
)
STOPPED_EARLY = (
    "Stopped early, on request: an attack without reference models is over the margin, so they were not trained."
)


@dataclass(frozen=True)
class Extent:
    """How far one check goes beyond what the policy asks for.

    ``subgroup_columns`` are looked at beside the classes. ``stop_over``: a margin; once a gating attack exceeds it no reference model is
    trained, for the verdict can no longer change. None: everything is measured. ``claim``: a claim of differential privacy to hold against
    the attacks. ``suggest_over``: a margin; where a gating attack exceeds it, mitigations are measured too.
    """

    subgroup_columns: tuple[str, ...] = ()
    stop_over: float | None = None
    claim: DifferentialPrivacyClaim | None = None
    suggest_over: float | None = None


@dataclass(frozen=True)
class Measurement:
    """Everything that was measured, without a word on whether it is acceptable.

    ``scored`` holds every attack's scores of the ``pool``, and ``gating`` names those that decide: single rows' scores, which never leave
    the process unless the caller asks for a local file. ``accuracy_*`` are fractions, None for models without labels.
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
    pool: Pool
    scored: Mapping[str, Scored]
    accuracy_members: float | None
    accuracy_non_members: float | None
    parameters: int | None
    library_versions: Mapping[str, str]
    privacy_budget: PrivacyBudgetFacts | None = None
    mitigations: tuple[Mitigation, ...] = ()


def measure(
    model: LoadedModel,
    splits: Splits,
    policy: Policy,
    *,
    open_logged: OpenLogged,
    extent: Extent = Extent(),
    progress: Progress = lambda _: None,
) -> Measurement:
    """Ask the model about both sides once and measure whatever the policy asks for, and what it takes to believe it.

    ``open_logged`` opens another logged model by its URI, where the policy admits such models as references.
    CouldNotJudge and its kin where the model, the splits or the answers cannot be used; nothing is ever dropped in silence.
    """
    seed = policy.attacks.seed
    rows = tested_rows(
        splits, seen=model.input_columns, max_rows=policy.sources.max_rows, rng=np.random.default_rng(seed)
    )
    progress("asking the model about both sides")
    sides = ask(model, rows, splits)
    progress("looking for differences that need no model")
    blind = _blind(rows, seed)
    pool = pooled(sides, rows, splits.target)
    gating = gating_attacks(policy, pool.observations.kind)
    wanted = _wanted(policy, pool, gating)
    progress("running the attacks")
    scored, impossible = _scored(_without(wanted, needy(wanted)), pool, seed)
    if policy.attacks.references and _over(scored, gating, extent.stop_over):
        referred = Referred(why_not=dict.fromkeys(needy(wanted), STOPPED_EARLY), notes=(STOPPED_EARLY,))
    else:
        referred = refer(model, pool, splits, policy, open_logged=open_logged, progress=progress)
    pool = replace(pool, references=referred.references)
    with_references, without = _scored(needy(wanted), pool, seed)
    scored = {name: one for name in wanted if (one := {**scored, **with_references}.get(name)) is not None}
    facts = {name: facts_of(one, pool, fprs=policy.margin.tpr_at_fpr, seed=seed) for name, one in scored.items()}
    decisive = {name: scored[name] for name in gating if name in scored}
    worst = worst_of(decisive, facts)
    unstable = unstable_rows(model, rows, splits)
    return Measurement(
        kind=pool.observations.kind,
        attacks=with_worst(facts, decisive, seed=seed),
        data=data_facts(splits, rows, sides),
        splits=split_facts(splits, rows, referred),
        validity=validity_facts(
            sides,
            blind,
            scored,
            referred,
            unstable_rows=unstable,
            holds_training_rows=model.notes.holds_training_rows,
        ),
        subgroups=subgroup_facts(scored.get(worst) if worst else None, pool, extent.subgroup_columns),
        not_run=_not_run({**impossible, **without, **referred.why_not}, wanted),
        limitations=(
            *(RETRAINING, *rows.notes, *splits.notes, *model.notes.warnings, *referred.notes),
            *((UNSTABLE.format(unstable),) if unstable else ()),
        ),
        gating=gating,
        pool=pool,
        scored=scored,
        accuracy_members=accuracy(sides.members),
        accuracy_non_members=accuracy(sides.non_members),
        parameters=model.notes.parameters,
        library_versions=model.notes.library_versions or {},
    )


def _blind(rows: TestedRows, seed: int) -> BlindBaseline | None:
    if min(len(rows.members), len(rows.non_members)) < FEWEST_ROWS:
        return None
    return blind_baseline(rows.members, rows.non_members, rng=np.random.default_rng(seed))


def _wanted(policy: Policy, pool: Pool, gating: tuple[str, ...]) -> tuple[str, ...]:
    """Name the attacks to run: what gates, the rule's own, what a coarse model is judged by beside them, what the policy reports."""
    kind = pool.observations.kind
    always = ("confidence", "correctness") if kind == "classification" else KIND_ATTACKS[kind]
    return tuple(dict.fromkeys((*gating, *always, *policy.attacks.report)))


def _scored(names: tuple[str, ...], pool: Pool, seed: int) -> tuple[dict[str, Scored], Mapping[str, str]]:
    from mlflow_privacy_gate.attacks._interface import Given

    given = Given(pool.references, features_for(names, pool), pool.is_member, np.random.default_rng(seed))
    possible, impossible = applicable(names, pool.observations, given)
    return {name: score(name, pool, seed=seed) for name in possible}, impossible


def _over(scored: Mapping[str, Scored], gating: tuple[str, ...], margin: float | None) -> bool:
    if margin is None:
        return False
    decisive = [scored[name] for name in gating if name in scored]
    return any(exceeds(stats.attack_auc(one.members, one.non_members), margin) for one in decisive)


def _without(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


def _not_run(reasons: Mapping[str, str], wanted: tuple[str, ...]) -> tuple[NotRun, ...]:
    return (
        *(NotRun(name, reasons[name]) for name in wanted if name in reasons),
        *(NotRun(name, "not tried by this tool") for name in NOT_RUN_EVER),
    )
