"""What is measured of a card's claim of differential privacy: epsilon recomputed, and the least one that the attacks allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks.catalogue import learns_membership
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.facts import DifferentialPrivacyClaim, PrivacyBudgetFacts, RecomputedEpsilon
from mlflow_privacy_gate.stats.accounting import AccountedEpsilon, account_prv, account_rdp, why_no_prv

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.attacking import Scored

EARLIER_TRAINING = (
    "A claim of differential privacy covers the training it is stated for: rows of an earlier training without it (a base model that was "
    "fine-tuned) are not protected by it."
)
_FEWEST_ROWS = 2


def privacy_budget(
    claim: DifferentialPrivacyClaim, scored: Mapping[str, Scored], *, seed: int
) -> tuple[PrivacyBudgetFacts, tuple[str, ...]]:
    """Measure what can be measured of a claim, and give the sentences for the card on what cannot.

    ``scored``: every attack's scores of the tested rows. Attacks that are told of membership are left out: the bound needs rows that are
    independent of each other.
    """
    recomputed, why_not = _recomputed(claim)
    bound = _bound(claim, scored, seed)
    facts = PrivacyBudgetFacts(recomputed=recomputed)
    if bound is not None:
        facts = PrivacyBudgetFacts(
            recomputed=recomputed,
            epsilon_lower_bound=bound.epsilon,
            level=bound.level,
            attack=bound.attack,
            tail=bound.tail,
            rows_members=bound.members,
            rows_non_members=bound.non_members,
            seed=seed,
        )
    return facts, (EARLIER_TRAINING, *why_not)


def large_delta(claim: DifferentialPrivacyClaim, members: int) -> tuple[str, ...]:
    """Say where delta is so large that publishing a training row whole would satisfy the claim."""
    if claim.delta * members < 1:
        return ()
    return (
        f"The claimed delta {claim.delta:.4g} is not below 1/{members:,}, one over the training rows: a mechanism that publishes one of "
        "them whole, picked at random, would satisfy it.",
    )


def _recomputed(claim: DifferentialPrivacyClaim) -> tuple[tuple[RecomputedEpsilon, ...], tuple[str, ...]]:
    stated = claim.sampling_rate, claim.noise_multiplier, claim.steps
    rate, noise, steps = stated
    if rate is None or noise is None or steps is None:
        return (), ("The claimed epsilon was not recomputed: the card does not state sampling rate, noise and steps.",)
    if claim.delta == 0:
        return (), ("The claimed epsilon was not recomputed: Gaussian noise has no finite one at delta 0.",)
    bound, missing = _stated(account_rdp(rate, noise, steps, claim.delta)), why_no_prv()
    if missing is None:
        try:
            return (bound, _stated(account_prv(rate, noise, steps, claim.delta))), ()
        except UsageError as exc:
            missing = exc.message
    return (bound,), (f"The claimed epsilon was recomputed as an upper bound only: {missing}.",)


def _stated(found: AccountedEpsilon) -> RecomputedEpsilon:
    finite = found.epsilon if math.isfinite(found.epsilon) else None
    return RecomputedEpsilon(found.method, finite, found.accountant, found.version)


def _bound(claim: DifferentialPrivacyClaim, scored: Mapping[str, Scored], seed: int) -> stats.EpsilonBound | None:
    usable = {name: one for name, one in scored.items() if not learns_membership(name)}
    if not usable:
        return None
    is_member = next(iter(usable.values())).is_member
    covered = ~np.any([np.isnan(one.scores) for one in usable.values()], axis=0)
    if min(np.count_nonzero(covered & is_member), np.count_nonzero(covered & ~is_member)) < _FEWEST_ROWS:
        return None
    return stats.epsilon_lower_bound(
        {name: one.scores for name, one in usable.items()},
        is_member,
        delta=claim.delta,
        rng=np.random.default_rng(seed),
    )
