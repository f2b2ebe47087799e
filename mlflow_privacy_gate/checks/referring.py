"""Reference models for one check: trained, or found, where the policy asks for them, and what they say of the test itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.positive_control import overfitted
from mlflow_privacy_gate.checks.observing import inputs
from mlflow_privacy_gate.checks.stated_references import (
    NOTES,
    OpenLogged,
    as_logged,
    from_function,
    from_logged,
    function_reproduces,
    likelihoods_from_logged,
)
from mlflow_privacy_gate.errors import CouldNotJudge
from mlflow_privacy_gate.vocabulary import ATTACKS, Need, ReferenceOrigin

if TYPE_CHECKING:
    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.attacks.references import References
    from mlflow_privacy_gate.checks.observing import Pool
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy.model import Policy
    from mlflow_privacy_gate.splits._interface import Splits

SHADOW = "shadow"
CONTROL_ATTACK = "calibrated"
# A reference keeps of each row its score and whether it saw the row; for the shadow attack three probabilities and a truth value too.
BYTES_PER_ROW = 8 + 1
BYTES_PER_ROW_WITH_POSTERIORS = BYTES_PER_ROW + 3 * 4 + 1


@dataclass(frozen=True)
class Referred:
    """What reference models gave: their answers, whether the logged model came out again, and the positive control.

    ``references`` None: none were asked for, or none could be had, and ``why_not`` names the reason for each attack that needs them.
    ``likelihoods``: of a density model, its observations with those of reference models beside them.
    ``control_auc``: attack AUC (a fraction) on a model that was overfitted on purpose, with the lower end of its 95 % interval.
    """

    references: References | None = None
    reproduced: bool = False
    control_auc: float | None = None
    control_ci_low: float | None = None
    why_not: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    likelihoods: Observations | None = None


@dataclass(frozen=True)
class _Asked:
    """One model, its rows, and what the policy asks for; ``open_logged`` opens another model by its URI."""

    model: LoadedModel
    pool: Pool
    splits: Splits
    policy: Policy
    open_logged: OpenLogged
    say: Callable[[str], None]

    @property
    def count(self) -> int:
        return self.policy.attacks.references

    @property
    def keep_posteriors(self) -> bool:
        return SHADOW in (*self.policy.attacks.gating, *self.policy.attacks.report)

    def progress(self, done: int, of: int) -> None:
        self.say(f"reference models: {done} of {of}")


def refer(
    model: LoadedModel,
    pool: Pool,
    splits: Splits,
    policy: Policy,
    *,
    open_logged: OpenLogged,
    progress: Callable[[str], None],
) -> Referred:
    """Come by the policy's number of reference models in the most trustworthy way that it admits and that there is.

    That is clones of the logged model; else the author's training function; else models that were logged before. ModelUnusable when a
    reference cannot be trained or asked: none is ever dropped. CouldNotJudge where they would not fit the policy's memory limit.
    """
    asked = _Asked(model, pool, splits, policy, open_logged, progress)
    if asked.count == 0:
        return Referred(why_not=_all("the policy asks for no reference models (attacks.references: 0)"))
    if pool.observations.kind == "density":
        return _of_density(asked)
    if pool.observations.kind != "classification":
        return Referred(why_not=_all(f"reference models are of no use for a {pool.observations.kind} model here"))
    why_not = []
    for origin, way in _WAYS.items():
        if origin not in policy.attacks.reference_origins:
            continue
        references = way(asked)
        if not isinstance(references, str):
            return _referred(asked, references)
        why_not.append(references)
    admitted = f"the policy admits {', '.join(policy.attacks.reference_origins)} (attacks.reference_origins)"
    return Referred(why_not=_all(f"{'; '.join(why_not)}; {admitted}"))


def _of_density(asked: _Asked) -> Referred:
    """Ask density models that were logged before; neither a clone nor a positive control says anything of a model without labels here."""
    logged, origin = asked.splits.reference_models, ReferenceOrigin.LOGGED_MODELS
    if origin not in asked.policy.attacks.reference_origins or logged is None or not asked.splits.as_logged:
        admitted = ", ".join(asked.policy.attacks.reference_origins)
        return Referred(
            why_not=_all(
                "needs density models that were logged before, named with the very splits under test "
                f"(`log_splits(…, reference_models=…)`), and a policy that admits them; it admits {admitted} (attacks.reference_origins)"
            )
        )
    _refuse_more_than_fits(asked, len(logged.uris))
    said = likelihoods_from_logged(
        logged, asked.pool, asked.splits, open_logged=asked.open_logged, progress=asked.progress
    )
    return Referred(likelihoods=said, notes=(NOTES[origin].format(count=len(logged.uris)),))


def _referred(asked: _Asked, references: References) -> Referred:
    """Run the positive control against the references, and try to reproduce the logged model the way they were trained."""
    asked.say("training the positive control")
    auc, low = _positive_control(asked.pool, references, asked.policy.attacks.seed)
    origin, function = ReferenceOrigin(references.origin), asked.splits.training_function
    if origin is ReferenceOrigin.TRAINING_FUNCTION and function is not None:
        reproduced = function_reproduces(function, asked.model, asked.splits)
    else:
        reproduced = _reproduced(asked.model, asked.splits)
    note = NOTES.get(origin, "").format(name=function.name if function else "", count=references.count)
    return Referred(references, reproduced, auc, low, notes=(note,) if note else ())


def _clones(asked: _Asked) -> References | str:
    _refuse_more_than_fits(asked, asked.count)
    found = asked.model.references(
        inputs(asked.model, asked.pool.features, asked.splits),
        asked.pool.labels,
        count=asked.count,
        seed=asked.policy.attacks.seed,
        keep_posteriors=asked.keep_posteriors,
        progress=asked.progress,
    )
    return "the logged model cannot be trained again from its own parameters" if found is None else found


def _by_function(asked: _Asked) -> References | str:
    function = asked.splits.training_function
    if function is None:
        return "no training function was logged with the splits (`log_splits(…, training_function=…)`)"
    _refuse_more_than_fits(asked, asked.count)
    return from_function(
        function,
        asked.model,
        asked.pool,
        asked.splits,
        count=asked.count,
        seed=asked.policy.attacks.seed,
        keep_posteriors=asked.keep_posteriors,
        progress=asked.progress,
    )


def _logged_before(asked: _Asked) -> References | str:
    logged = asked.splits.reference_models
    if logged is None:
        return "no reference models were logged with the splits (`log_splits(…, reference_models=…)`)"
    if not asked.splits.as_logged:
        return "the reference models' masks are of the rows that were logged, and these are others"
    _refuse_more_than_fits(asked, len(logged.uris))
    return from_logged(
        logged,
        asked.pool,
        asked.splits,
        open_logged=asked.open_logged,
        keep_posteriors=asked.keep_posteriors,
        progress=asked.progress,
    )


# The most trustworthy first: a clone needs nobody's word.
_WAYS: Mapping[ReferenceOrigin, Callable[[_Asked], References | str]] = {
    ReferenceOrigin.CLONE: _clones,
    ReferenceOrigin.TRAINING_FUNCTION: _by_function,
    ReferenceOrigin.LOGGED_MODELS: _logged_before,
}


def _refuse_more_than_fits(asked: _Asked, count: int) -> None:
    """Raise CouldNotJudge where the references' answers alone would need more memory than the policy allows."""
    rows, limit = asked.pool.observations.n, asked.policy.limits.memory_gb
    needed = count * rows * (BYTES_PER_ROW_WITH_POSTERIORS if asked.keep_posteriors else BYTES_PER_ROW) / 1e9
    if needed > limit:
        raise CouldNotJudge(
            f"the answers of {count} reference models about {rows:,} rows need {needed:.1f} GB, more than `limits.memory_gb: {limit:g}`; "
            "raise it, or test a sample (`sources.max_rows`)"
        )


def _reproduced(model: LoadedModel, splits: Splits) -> bool:
    """Whether training again on all logged members, with the logged seed, gives the logged model's answers about both sides."""
    together = as_logged(splits)
    train_rows = len(splits.members.frame)
    return model.reproduced(inputs(model, together, splits), together[splits.target], train_rows=train_rows)


def _positive_control(pool: Pool, references: References, seed: int) -> tuple[float, float]:
    caught = scores(CONTROL_ATTACK, overfitted(pool.features, pool.labels, pool.is_member, seed=seed), references)
    known = ~np.isnan(caught)
    sides = caught[known & pool.is_member], caught[known & ~pool.is_member]
    return stats.attack_auc(*sides), stats.delong_interval(*sides).low


def needy(names: Iterable[str]) -> tuple[str, ...]:
    """Name those attacks that need reference models."""
    return tuple(name for name in names if ATTACKS[name].needs & {Need.REFERENCES, Need.REFERENCE_LIKELIHOOD})


def _all(reason: str) -> Mapping[str, str]:
    return dict.fromkeys(needy(ATTACKS), reason)
