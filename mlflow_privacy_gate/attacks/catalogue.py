"""Every attack by name, one line each; the words for them stand in :data:`mlflow_privacy_gate.vocabulary.ATTACKS`.

A new attack is a file in this folder, its words in the vocabulary, and a line here.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from mlflow_privacy_gate.attacks._interface import Attack, BoolArray, FloatArray, Given
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import InternalError, ObservationError, UsageError
from mlflow_privacy_gate.vocabulary import ATTACKS, Need

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.references import References

# An attack that asks models trained on halves may lack such models for a row; no other may leave one out.
MAY_LEAVE_ROWS_OUT = frozenset({Need.REFERENCES, Need.REFERENCE_LIKELIHOOD})
_ROOM = "mlflow_privacy_gate.attacks"
_WHERE: Mapping[str, str] = MappingProxyType(
    {
        "confidence": "confidence:scores",
        "loss": "loss:scores",
        "entropy": "entropy:scores",
        "modified_entropy": "modified_entropy:scores",
        "margin_gap": "margin_gap:scores",
        "correctness": "correctness:scores",
        "error": "error:scores",
        "likelihood": "likelihood:scores",
        "likelihood_ratio": "likelihood_ratio:scores",
        "likelihood_ratio_z": "likelihood_ratio:z_scores",
        "calibrated": "calibrated:scores",
        "lira_offline": "lira:offline_scores",
        "lira_offline_two_sided": "lira:offline_two_sided_scores",
        "lira_online": "lira:online_scores",
        "rmia": "rmia:scores",
        "shadow": "shadow:scores",
        "shadow_protocol": "shadow_protocol:scores",
        "quantile": "quantile:scores",
    }
)


def scores(
    name: str,
    observations: Observations,
    references: References | None = None,
    *,
    features: pd.DataFrame | None = None,
    is_member: BoolArray | None = None,
    rng: np.random.Generator | None = None,
) -> FloatArray:
    """Score n rows with the named attack: float64 (n,), higher = more likely a member.

    UsageError for an unknown name. ObservationError, which says what the attack needs, where it cannot be made with what is given.
    """
    attack = _find(name)
    given = Given(references, features, is_member, rng)
    lacking = _lacking(name, observations, given)
    if lacking:
        raise ObservationError(f"the attack `{name}` {_needs(lacking, observations)}")
    named = _asked_for(attack, given)
    absent = [argument for argument, value in named.items() if value is None]
    if absent:
        raise UsageError(f"the attack `{name}` also needs {' and '.join(absent)}")
    answer = attack(observations, **named)
    if answer.shape != (observations.n,) or answer.dtype != np.float64:
        raise InternalError(
            f"the attack `{name}` gave {answer.dtype} of shape {answer.shape} for {observations.n} rows"
        )
    if not MAY_LEAVE_ROWS_OUT & ATTACKS[name].needs and np.isnan(answer).any():
        raise InternalError(f"the attack `{name}` gave NaN for {np.isnan(answer).sum()} of {observations.n} rows")
    return answer


def what_is_missing(name: str, observations: Observations, given: Given | None = None) -> str | None:
    """Say in half a sentence what this attack lacks, or None where it can be made."""
    given = given or Given()
    lacking = _lacking(name, observations, given)
    if lacking:
        return _needs(lacking, observations)
    absent = [argument for argument, value in _asked_for(_find(name), given).items() if value is None]
    return f"needs {' and '.join(absent)}" if absent else None


def learns_membership(name: str) -> bool:
    """Whether this attack is told which rows are members, so that one row's score may depend on another's membership."""
    return "is_member" in inspect.signature(_find(name)).parameters


def applicable(
    wanted: Iterable[str], observations: Observations, given: Given | None = None
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Part the wanted attacks into those that can be made and those that cannot, each of these with its reason."""
    reasons = {name: what_is_missing(name, observations, given) for name in wanted}
    possible = tuple(name for name, reason in reasons.items() if reason is None)
    return possible, {name: reason for name, reason in reasons.items() if reason is not None}


def _lacking(name: str, observations: Observations, given: Given) -> tuple[Need, ...]:
    held = _held(observations, given)
    return tuple(sorted(need for need in ATTACKS[_known(name)].needs if need not in held))


def _needs(lacking: tuple[Need, ...], observations: Observations) -> str:
    return f"needs {' and '.join(lacking)}; a {observations.kind} model gave {observations.basis}"


def _asked_for(attack: Attack, given: Given) -> dict[str, object]:
    """Return what an attack asks for by naming it as a parameter."""
    asked = inspect.signature(attack).parameters
    return {field.name: getattr(given, field.name) for field in fields(given) if field.name in asked}


def _held(observations: Observations, given: Given) -> frozenset[Need]:
    by_kind = {
        "classification": {Need.PROBABILITIES, Need.LABELS_ONLY},
        "label_only": {Need.LABELS_ONLY},
        "regression": {Need.PREDICTIONS},
        "density": {Need.LOG_LIKELIHOOD},
    }
    held = set(by_kind[observations.kind])
    if observations.reference_log_likelihood is not None:
        held.add(Need.REFERENCE_LIKELIHOOD)
    if given.references is not None:
        held.add(Need.REFERENCES)
    if given.features is not None:
        held.add(Need.FEATURES)
    return frozenset(held)


def _known(name: str) -> str:
    if name not in _WHERE:
        near = difflib.get_close_matches(name, _WHERE, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(_WHERE)}"
        raise UsageError(f"no attack is named `{name}` ({hint})")
    return name


def _find(name: str) -> Attack:
    module, _, function = _WHERE[_known(name)].partition(":")
    return cast(Attack, getattr(importlib.import_module(f"{_ROOM}.{module}"), function))
