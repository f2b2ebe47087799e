"""Changes to a recipe that make a model remember less: families of parameters by the names that scikit-learn's interface gives them.

Each family is an ordered list of steps, mild ones first; whoever measures them may stop at the first that is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

# A parameter of a recipe as far as it matters here; None stands for "no limit" or "the library's default".
Parameter: TypeAlias = float | int | None

Changes: TypeAlias = Mapping[str, float | int]
NO_CHANGES: Changes = MappingProxyType({})

_FEWEST_LEAVES = 10  # a leaf never takes more than a tenth of the training rows


@dataclass(frozen=True)
class RecipeChange:
    """One change: what it does in words, and the new value of each parameter it touches."""

    description: str
    values: Changes


@dataclass(frozen=True)
class _Family:
    """Parameters of one meaning: their ``names``, what a change does, and a parameter's next values (mild first) from its present one."""

    names: frozenset[str]
    does: str
    steps: Callable[[Parameter, int], tuple[float | int, ...]]


def recipe_changes(parameters: Mapping[str, Parameter], *, training_rows: int) -> tuple[tuple[RecipeChange, ...], ...]:
    """Give the families of changes that fit a recipe with these ``parameters``, named as ``step__parameter``."""
    families = (tuple(_changes(family, parameters, training_rows)) for family in _FAMILIES)
    return tuple(family for family in families if family)


def _changes(family: _Family, parameters: Mapping[str, Parameter], rows: int) -> Iterator[RecipeChange]:
    """Change every parameter of the family together, step by step."""
    ladders = {
        name: family.steps(value, rows)
        for name, value in parameters.items()
        if _last(name) in family.names and not _means_something_else(name, parameters)
    }
    for step in range(max((len(ladder) for ladder in ladders.values()), default=0)):
        values = {name: ladder[min(step, len(ladder) - 1)] for name, ladder in ladders.items() if ladder}
        words = ", ".join(f"{name} {_word(parameters[name])} → {_word(value)}" for name, value in values.items())
        yield RecipeChange(f"{family.does}: {words}", MappingProxyType(values))


def _means_something_else(name: str, parameters: Mapping[str, Parameter]) -> bool:
    """Boosting has an ``alpha`` of its own: a quantile of its loss."""
    owner = name.rpartition("__")[0]
    return _last(name) == "alpha" and (f"{owner}__n_estimators" if owner else "n_estimators") in parameters


def _weaker(value: Parameter, _rows: int) -> tuple[float, ...]:
    return () if value is None or value <= 0 else tuple(_tidy(value / factor) for factor in (10, 100, 1000))


def _stronger(value: Parameter, _rows: int) -> tuple[float, ...]:
    return tuple(_tidy((value or 1.0) * factor) for factor in (10, 100, 1000))


def _shallower(value: Parameter, _rows: int) -> tuple[int, ...]:
    limit = float("inf") if value is None or value <= 0 else value
    return tuple(depth for depth in (8, 4, 2) if depth < limit)


def _larger_leaves(value: Parameter, rows: int) -> tuple[int, ...]:
    if isinstance(value, float) and value < 1:  # a share of the rows
        return ()
    return tuple(least for least in (10, 30, 100) if (value or 1) < least <= rows // _FEWEST_LEAVES)


def _more_neighbours(value: Parameter, rows: int) -> tuple[int, ...]:
    return tuple(count for factor in (5, 25) if (count := int(value or 5) * factor) <= rows // 2)


_FAMILIES = (
    _Family(frozenset({"C"}), "stronger regularisation", _weaker),
    _Family(
        frozenset({"alpha", "reg_lambda", "lambda_l2", "l2_regularization", "l2_leaf_reg", "weight_decay"}),
        "stronger regularisation",
        _stronger,
    ),
    _Family(frozenset({"max_depth", "depth"}), "smaller trees", _shallower),
    _Family(frozenset({"min_samples_leaf", "min_child_samples", "min_data_in_leaf"}), "larger leaves", _larger_leaves),
    _Family(frozenset({"n_neighbors"}), "more neighbours an answer", _more_neighbours),
)


def _last(name: str) -> str:
    return name.rpartition("__")[2]


def _tidy(value: float) -> float:
    return float(f"{value:.6g}")


def _word(value: Parameter) -> str:
    return "none" if value is None else f"{value:g}"
