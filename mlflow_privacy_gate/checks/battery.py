"""All attacks that a policy wants, made on one pool of rows: those that ask the model alone first, then those with reference models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks._interface import Given
from mlflow_privacy_gate.attacks.catalogue import applicable
from mlflow_privacy_gate.checks.attacking import Scored, facts_of, features_for, score, worst_of
from mlflow_privacy_gate.checks.referring import Referred, needy, refer
from mlflow_privacy_gate.policy.gating import gating_attacks
from mlflow_privacy_gate.policy.margin import exceeds
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.observing import Pool
    from mlflow_privacy_gate.checks.stated_references import OpenLogged
    from mlflow_privacy_gate.evidence.facts import AttackFacts
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.splits._interface import Splits

STOPPED_EARLY = (
    "Stopped early, on request: an attack without reference models is over the margin, so they were not trained."
)


@dataclass(frozen=True)
class Battery:
    """What the attacks came to: ``scored`` and ``facts`` of each that was made, ``why_not`` of each that was wanted and could not be.

    ``gating`` names those that decide; ``pool`` holds the reference models, of which ``referred`` says how they were come by.
    """

    pool: Pool
    gating: tuple[str, ...]
    scored: Mapping[str, Scored]
    facts: Mapping[str, AttackFacts]
    why_not: Mapping[str, str]
    referred: Referred

    @property
    def decisive(self) -> Mapping[str, Scored]:
        """The scores of the attacks that decide."""
        return {name: self.scored[name] for name in self.gating if name in self.scored}

    @property
    def worst(self) -> Scored | None:
        """The deciding attack with the largest AUC, None where none was made."""
        name = worst_of(self.decisive, self.facts)
        return self.scored[name] if name else None


def run_battery(
    model: LoadedModel,
    pool: Pool,
    splits: Splits,
    policy: Policy,
    *,
    open_logged: OpenLogged,
    stop_over: float | None,
    progress: Callable[[str], None],
) -> Battery:
    """Make every attack that the policy wants; ``stop_over``: no reference model is trained once a deciding attack exceeds this AUC."""
    seed = policy.attacks.seed
    gating = gating_attacks(policy, pool.observations.kind)
    wanted = _wanted(policy, pool, gating)
    progress("running the attacks")
    alone, impossible = _scored(_without(wanted, needy(wanted)), pool, seed)
    if policy.attacks.references and _over(alone, gating, stop_over):
        referred = Referred(why_not=dict.fromkeys(needy(wanted), STOPPED_EARLY), notes=(STOPPED_EARLY,))
    else:
        referred = refer(model, pool, splits, policy, open_logged=open_logged, progress=progress)
    pool = replace(pool, references=referred.references, observations=referred.likelihoods or pool.observations)
    with_references, without = _scored(needy(wanted), pool, seed)
    scored = {name: one for name in wanted if (one := {**alone, **with_references}.get(name)) is not None}
    reasons = {**impossible, **without, **referred.why_not}
    return Battery(
        pool,
        gating,
        scored,
        {name: facts_of(one, pool, fprs=policy.margin.tpr_at_fpr, seed=seed) for name, one in scored.items()},
        {name: reasons[name] for name in wanted if name in reasons},
        referred,
    )


def _wanted(policy: Policy, pool: Pool, gating: tuple[str, ...]) -> tuple[str, ...]:
    """Name the attacks to run: what gates, the rule's own, what a coarse model is judged by beside them, what the policy reports."""
    kind = pool.observations.kind
    always = ("confidence", "correctness") if kind == "classification" else KIND_ATTACKS[kind]
    return tuple(dict.fromkeys((*gating, *always, *policy.attacks.report)))


def _scored(names: tuple[str, ...], pool: Pool, seed: int) -> tuple[dict[str, Scored], Mapping[str, str]]:
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
