"""Measuring one model on its splits: observations, attacks, validity of the test. Facts only; the verdict is the policy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate.attacks.blind import FEWEST_ROWS, BlindBaseline, blind_baseline
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.checks.attacking import Scored, with_worst
from mlflow_privacy_gate.checks.battery import Battery, run_battery
from mlflow_privacy_gate.checks.grouping import subgroup_facts
from mlflow_privacy_gate.checks.observing import Pool, accuracy, ask, asked_again, pooled
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
from mlflow_privacy_gate.vocabulary import NOT_RUN_EVER

if TYPE_CHECKING:
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.splits._interface import Splits

Progress = Callable[[str], None]

RETRAINING = "How much the result would vary if the model were trained again is outside the intervals."
UNSTABLE = (
    "Asked again about {1} of the rows, the model answered {0} of them otherwise: every number here is of one asking, and whoever asks "
    "again and again learns more."
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
    battery = run_battery(
        model, pool, splits, policy, open_logged=open_logged, stop_over=extent.stop_over, progress=progress
    )
    again = asked_again(model, rows, sides, splits, rng=np.random.default_rng(seed))
    holds_rows = model.notes.holds_training_rows
    return Measurement(
        kind=pool.observations.kind,
        attacks=with_worst(battery.facts, battery.decisive, seed=seed),
        data=data_facts(splits, rows, sides),
        splits=split_facts(splits, rows, battery.referred),
        validity=validity_facts(sides, blind, battery, again, holds_training_rows=holds_rows),
        subgroups=subgroup_facts(battery.worst, battery.pool, extent.subgroup_columns),
        not_run=_not_run(battery),
        limitations=(
            *(RETRAINING, *rows.notes, *splits.notes, *model.notes.warnings, *battery.referred.notes),
            *((UNSTABLE.format(again.differing, again.rows),) if again.differing else ()),
        ),
        gating=battery.gating,
        pool=battery.pool,
        scored=battery.scored,
        accuracy_members=accuracy(sides.members),
        accuracy_non_members=accuracy(sides.non_members),
        parameters=model.notes.parameters,
        library_versions=model.notes.library_versions or {},
    )


def _blind(rows: TestedRows, seed: int) -> BlindBaseline | None:
    if min(len(rows.members), len(rows.non_members)) < FEWEST_ROWS:
        return None
    return blind_baseline(rows.members, rows.non_members, rng=np.random.default_rng(seed))


def _not_run(battery: Battery) -> tuple[NotRun, ...]:
    return (
        *(NotRun(name, reason) for name, reason in battery.why_not.items()),
        *(NotRun(name, "not tried by this tool") for name in NOT_RUN_EVER),
    )
