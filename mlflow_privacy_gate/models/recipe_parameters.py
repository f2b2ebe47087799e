"""The numeric parameters of an unfitted estimator: read by name, and given other values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from mlflow_privacy_gate.attacks.recipe_changes import Changes, Parameter
from mlflow_privacy_gate.errors import ModelUnusable


def numeric_parameters(recipe: Any) -> Mapping[str, Parameter]:
    """Return every parameter of every part that is a finite number or None, as ``step__parameter``; empty where it cannot say."""
    try:
        found = recipe.get_params(deep=True)
    except Exception:  # the author's code may raise anything; what it cannot say is not changed
        return {}
    return {name: _plain(value) for name, value in found.items() if value is None or _is_number(value)}


def changed(recipe: Any, changes: Changes) -> Any:
    """Give some parameters of an unfitted ``recipe`` other values; ModelUnusable where it has none of that name."""
    try:
        return recipe.set_params(**changes) if changes else recipe
    except ValueError as exc:
        raise ModelUnusable(f"the recipe cannot be changed: {exc}") from exc


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _plain(value: Any) -> Parameter:
    if value is None:
        return None
    return int(value) if isinstance(value, Integral) else float(value)
