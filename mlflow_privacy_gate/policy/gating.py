"""Which attacks decide about a model, by what the model can say."""

from __future__ import annotations

from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.policy.model import LabelOnly, Policy
from mlflow_privacy_gate.vocabulary import ATTACKS, KIND_ATTACKS, Need

CLASSIFICATION = "classification"
LABEL_ONLY = "label_only"
DENSITY = "density"
RULE_ATTACK = "confidence"

_FITTING_NEEDS = {
    CLASSIFICATION: frozenset({Need.PROBABILITIES, Need.LABELS_ONLY, Need.REFERENCES, Need.FEATURES}),
    LABEL_ONLY: frozenset({Need.LABELS_ONLY}),
    "regression": frozenset({Need.PREDICTIONS}),
    DENSITY: frozenset({Need.LOG_LIKELIHOOD, Need.REFERENCE_LIKELIHOOD}),
}


def gating_attacks(policy: Policy, kind: str) -> tuple[str, ...]:
    """Name the attacks that must be measured and within the margin for a model of this kind; empty where none may decide.

    Classifiers: the policy's gating attacks. Models that can make none of these (regression, density, labels only): the attacks of
    their own kind, and whatever else the policy names that fits them. Labels only: none at all unless the policy allows it.
    """
    if kind not in _FITTING_NEEDS or (kind == LABEL_ONLY and policy.label_only is not LabelOnly.ALLOW):
        return ()
    named = [name for name in policy.attacks.gating if ATTACKS[name].needs <= _FITTING_NEEDS[kind]]
    # A density model without reference likelihoods can be judged by its likelihood alone.
    own = () if kind == CLASSIFICATION else KIND_ATTACKS[kind][:1]
    return tuple(dict.fromkeys((*own, *named)))


def deciding_attacks(policy: Policy, evidence: Evidence) -> tuple[str, ...]:
    """Name the attacks whose AUC is compared: those that must be measured, and a density model's ratio wherever it was measured."""
    required = gating_attacks(policy, evidence.kind)
    if evidence.kind != DENSITY:
        return required
    measured = tuple(name for name in KIND_ATTACKS[DENSITY] if evidence.attack(name) is not None)
    return tuple(dict.fromkeys((*required, *measured)))


def needs_references(names: tuple[str, ...]) -> tuple[str, ...]:
    """Name those of the attacks that need reference models."""
    return tuple(name for name in names if Need.REFERENCES in ATTACKS[name].needs)
