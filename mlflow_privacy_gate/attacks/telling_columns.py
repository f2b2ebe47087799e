"""How much each column says about the label, from the training rows alone: which columns to do without first."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import f_classif, f_regression

from mlflow_privacy_gate.attacks.encoding import encode

if TYPE_CHECKING:
    import pandas as pd


def most_telling_first(features: pd.DataFrame, labels: pd.Series[Any], *, of_classes: bool) -> tuple[str, ...]:
    """Order the columns of ``features`` (n, d) by the F test of each alone on ``labels`` (n,), classes or numbers.

    A missing value counts as its column's median; a column without variance comes last. Equal ones keep the order they stand in.
    """
    numbers = np.column_stack([_filled(encode(name, features[name]).numbers) for name in features.columns])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant column has no F, and is put last
        found = f_classif(numbers, labels.astype(str)) if of_classes else f_regression(numbers, labels)
    telling = np.nan_to_num(found[0], nan=-1.0, posinf=np.finfo(np.float64).max)
    return tuple(str(features.columns[at]) for at in np.argsort(-telling, kind="stable"))


def held_constant(features: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Give every row the same value in these columns, so that a model of any kind learns nothing from them and still finds them.

    Numbers become their median, everything else the first value that stands there.
    """
    import pandas as pd

    constant: pd.DataFrame = features.copy(deep=False)
    for name in names:
        column = features[name]
        numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        known = column.dropna()
        if known.empty:
            continue
        value = known.quantile(0.5, interpolation="lower") if numeric else known.iloc[0]
        constant[name] = pd.Series([value] * len(features), index=features.index, dtype=column.dtype)
    return constant


def _filled(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    known = numbers[~np.isnan(numbers)]
    return np.where(np.isnan(numbers), np.median(known) if known.size else 0.0, numbers)
