"""The stricter of two cards' claims: a card may be handed in to add to what the recorded one declares, never to take from it."""

from __future__ import annotations

from dataclasses import replace

from mlflow_privacy_gate.evidence.facts import CardClaims, DifferentialPrivacyClaim
from mlflow_privacy_gate.policy.margin import declared_categories


def strictest(given: CardClaims, recorded: CardClaims) -> tuple[CardClaims, tuple[str, ...]]:
    """Return the claims that count when two cards declare something, and in words what of the recorded ones was kept.

    All data categories of both count, the smaller margin, `personal_data: true`, and the recorded claim of differential privacy
    unless the given one promises as much in epsilon and in delta.
    """
    claims, kept = given, []
    known = declared_categories(given)
    dropped = tuple(word for word in declared_categories(recorded) if word not in known)
    if dropped:
        claims = replace(claims, data_categories=(*given.data_categories, *dropped))
        kept.append(f"data categories {', '.join(dropped)}")
    if recorded.max_attack_auc is not None and (
        given.max_attack_auc is None or recorded.max_attack_auc < given.max_attack_auc
    ):
        claims = replace(claims, max_attack_auc=recorded.max_attack_auc)
        kept.append(f"max_attack_auc {recorded.max_attack_auc:g}")
    if recorded.personal_data and not given.personal_data:
        claims = replace(claims, personal_data=True)
        kept.append("personal_data: true")
    promised = recorded.differential_privacy
    if promised is not None and _promises_more(promised, given.differential_privacy):
        claims = replace(claims, differential_privacy=promised)
        kept.append(f"differential_privacy epsilon {promised.epsilon:g}")
    return claims, tuple(kept)


def _promises_more(one: DifferentialPrivacyClaim, other: DifferentialPrivacyClaim | None) -> bool:
    """Whether the other claim lacks anything of this one: a smaller epsilon makes no larger delta good."""
    return other is None or one.epsilon < other.epsilon or one.delta < other.delta
