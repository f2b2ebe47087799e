"""Reference models for one check: trained where the policy asks for them and the model can be trained again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.positive_control import overfitted
from mlflow_privacy_gate.checks.observing import inputs
from mlflow_privacy_gate.vocabulary import ATTACKS, Need, ReferenceOrigin

if TYPE_CHECKING:
    from mlflow_privacy_gate.attacks.references import References
    from mlflow_privacy_gate.checks.observing import Pool
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy.model import Policy
    from mlflow_privacy_gate.splits._interface import Splits

SHADOW = "shadow"
CONTROL_ATTACK = "calibrated"


@dataclass(frozen=True)
class Referred:
    """What reference models gave: their answers, whether the logged model came out again, and the positive control.

    ``references`` None: none were asked for, or none could be trained, and ``why_not`` names the reason for each attack that needs them.
    ``control_auc``: attack AUC (a fraction) on a model that was overfitted on purpose, with the lower end of its 95 % interval.
    """

    references: References | None = None
    reproduced: bool = False
    control_auc: float | None = None
    control_ci_low: float | None = None
    why_not: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def refer(
    model: LoadedModel,
    pool: Pool,
    splits: Splits,
    policy: Policy,
    *,
    progress: Callable[[str], None],
) -> Referred:
    """Train the policy's number of reference models on random halves of both sides, and try to reproduce the logged model.

    ModelUnusable when a reference cannot be trained or asked: none is ever dropped.
    """
    count = policy.attacks.references
    if count == 0:
        return Referred(why_not=_all("the policy asks for no reference models (attacks.references: 0)"))
    if pool.observations.kind != "classification":
        return Referred(why_not=_all(f"reference models are of no use for a {pool.observations.kind} model here"))
    if ReferenceOrigin.CLONE not in policy.attacks.reference_origins:
        return Referred(why_not=_all("the policy admits no clones of the logged model (attacks.reference_origins)"))
    references = model.references(
        inputs(model, pool.features, splits),
        pool.labels,
        count=count,
        seed=policy.attacks.seed,
        keep_posteriors=SHADOW in (*policy.attacks.gating, *policy.attacks.report),
        progress=lambda done, of: progress(f"training reference models: {done} of {of}"),
    )
    if references is None:
        return Referred(why_not=_all("the logged model cannot be trained again from its own parameters"))
    progress("training the positive control")
    auc, low = _positive_control(pool, references, policy.attacks.seed)
    return Referred(
        references=references,
        reproduced=_reproduced(model, splits),
        control_auc=auc,
        control_ci_low=low,
    )


def _reproduced(model: LoadedModel, splits: Splits) -> bool:
    """Whether training again on all logged members, with the logged seed, gives the logged model's answers."""
    members = splits.members.frame
    return model.reproduced(inputs(model, members, splits), members[splits.target])


def _positive_control(pool: Pool, references: References, seed: int) -> tuple[float, float]:
    caught = scores(CONTROL_ATTACK, overfitted(pool.features, pool.labels, pool.is_member, seed=seed), references)
    known = ~np.isnan(caught)
    sides = caught[known & pool.is_member], caught[known & ~pool.is_member]
    return stats.attack_auc(*sides), stats.delong_interval(*sides).low


def needy(names: Iterable[str]) -> tuple[str, ...]:
    """Name those attacks that need reference models."""
    return tuple(name for name in names if Need.REFERENCES in ATTACKS[name].needs)


def _all(reason: str) -> Mapping[str, str]:
    return dict.fromkeys(needy(ATTACKS), reason)
