"""What a fitted scikit-learn estimator is made of, at any depth: its parts, the training rows it keeps, the numbers it learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# Fitted attributes that hold rows of the training data as they were (or as the steps before transformed them).
_ROWS_KEPT: Mapping[str, str] = {
    "_fit_X": "its training rows",
    "X_fit_": "its training rows",
    "X_train_": "its training rows",
    "X_": "its training rows",
    "support_vectors_": "training rows as support vectors",
    "example_": "a training row",
}
_ROW_TREES = {"KDTree": "its training rows", "BallTree": "its training rows"}
_COEFFICIENTS = ("coef_", "intercept_", "coefs_", "intercepts_")


def parts(estimator: object) -> Iterator[Any]:
    """Yield an estimator and every estimator inside it (pipeline steps, members of an ensemble, …), each once."""
    seen: set[int] = set()
    waiting: list[Any] = [estimator]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple, set)):
            waiting.extend(one)
        elif isinstance(one, np.ndarray):
            waiting.extend(one.ravel().tolist() if one.dtype == object and not _plain(one) else ())
        elif hasattr(one, "get_params") and not isinstance(one, type):
            yield one
            waiting.extend(getattr(one, "__dict__", {}).values())


def _plain(array: np.ndarray[Any, Any]) -> bool:
    return array.size > 0 and isinstance(array.flat[0], (str, bytes, int, float, bool))


def training_rows_kept(estimator: object) -> str | None:
    """Say which parts of an estimator hold training rows themselves, or None where none is known to."""
    found: dict[str, None] = {}
    for part in parts(estimator):
        for name, value in getattr(part, "__dict__", {}).items():
            what = _ROW_TREES.get(type(value).__name__) or (_ROWS_KEPT.get(name) if _has_rows(value) else None)
            if what is not None:
                found.setdefault(f"{type(part).__name__} keeps {what}")
    return "; ".join(found) or None


def _has_rows(value: object) -> bool:
    shape = getattr(value, "shape", None)  # a dense or sparse array
    return isinstance(shape, tuple) and len(shape) in (1, 2) and bool(shape[0])


def learned_parameters(estimator: object) -> int | None:
    """Count coefficients and tree nodes of an estimator and its parts; None where it has neither."""
    count = sum(_own_parameters(part) for part in parts(estimator))
    return count or None


def _own_parameters(part: object) -> int:
    own: Mapping[str, Any] = getattr(part, "__dict__", {})
    count = sum(_size(own.get(name)) for name in _COEFFICIENTS)
    count += int(getattr(own.get("tree_"), "node_count", 0))
    for iteration in own.get("_predictors", ()) if isinstance(own.get("_predictors"), list) else ():
        count += sum(len(tree.nodes) for tree in iteration)
    return count


def _size(value: object) -> int:
    if isinstance(value, list):
        return sum(_size(one) for one in value)
    return int(np.size(value)) if isinstance(value, (np.ndarray, np.number, float)) else 0
