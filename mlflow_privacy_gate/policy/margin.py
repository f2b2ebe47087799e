"""The margin in force: the smallest of the policy's default, the card's data categories and the card's own margin.

The default of 0.55 is the rule's own (CC BY 4.0):
<a href="https://agentwranglers.se/playbook/machine-learning/people-affected-by-the-model/training-data-extraction-test">Agent Wranglers machine learning playbook</a>
"""  # noqa: E501 - a link cannot be wrapped

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from mlflow_privacy_gate.evidence.facts import CardClaims
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.wording import number
from mlflow_privacy_gate.vocabulary import Finding, ReasonCode


@dataclass(frozen=True)
class Margin:
    """The highest attack AUC allowed (a fraction in (0.5, 1]), where it comes from, and what is wrong with the card's own."""

    value: float
    source: str
    problems: tuple[Finding, ...] = ()


def margin_in_force(policy: Policy, card: CardClaims) -> Margin:
    """Choose the smallest margin that applies; a card's margin that is not below the policy's own is a problem, never clamped."""
    value, source = policy.margin.default, f"default of {policy.source_name or 'the policy'}"
    for category in declared_categories(card):
        limit = policy.margin.categories.get(category, value)
        if limit < value:
            value, source = limit, f"data category {category}"
    asked = card.max_attack_auc
    if asked is None or asked == value:
        return Margin(value, source)
    if not math.isfinite(asked) or not 0.5 < asked <= 1:
        problem = f"The card's `max_attack_auc` is {asked}, not a fraction in (0.5, 1]; the margin is {number(value)} ({source})."
    elif asked > value:
        problem = (
            f"The card's `max_attack_auc` {number(asked, against=value)} is above the policy's margin {number(value)} "
            f"({source}); a card may only lower it."
        )
    else:
        return Margin(asked, "the model card")
    return Margin(value, source, (Finding(ReasonCode.PG404, problem, value=asked, limit=value),))


def declared_categories(card: CardClaims) -> tuple[str, ...]:
    """Give the card's data categories as the policy writes them: lower case, with underscores."""
    words = (word.strip().casefold().replace("-", "_").replace(" ", "_") for word in card.data_categories)
    return tuple(dict.fromkeys(word for word in words if word))


def exceeds(value: float, limit: float) -> bool:
    """Say whether a measured value is over a limit, compared as the decimals they are written as; NaN is over every limit.

    Exactly 0.55 is within a margin of 0.55, and the next float above it is not.
    """
    if math.isnan(value) or math.isnan(limit):
        return True
    return Decimal(repr(float(value))) > Decimal(repr(float(limit)))
