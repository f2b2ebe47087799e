"""Laying out a split's columns as the model was trained on them: named or by position, in order, in its types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.mlmodel import InputColumn

_DTYPES = {"double": "float64", "float": "float32", "long": "int64", "integer": "int32", "boolean": "bool"}


@dataclass(frozen=True)
class ColumnLayout:
    """What an estimator takes.

    ``names``: its columns in order, None where only their number is known. ``named``: whether it was trained on named columns (a
    frame) and so takes a frame, or on an array. ``count``: how many columns it takes, where known. ``types``: the signature's, by name.
    """

    names: tuple[str, ...] | None
    named: bool
    count: int | None
    types: dict[str, str]

    @classmethod
    def of(cls, estimator: object, signature: Sequence[InputColumn] | None) -> ColumnLayout:
        """Read the layout off a fitted estimator, and off the signature where the estimator does not say."""
        fitted = getattr(estimator, "feature_names_in_", None)
        count = getattr(estimator, "n_features_in_", None)
        signed = None if signature is None else tuple(column.name for column in signature)
        names = tuple(str(name) for name in fitted) if fitted is not None else signed
        if fitted is None and signed is not None and count is not None and len(signed) != count:
            raise ModelUnusable(
                f"the model takes {count} columns and its signature names {len(signed)}; log it again with the signature of its input"
            )
        # Without a word from the estimator, a signature with names was inferred from a frame.
        named = fitted is not None or (count is None and signed is not None)
        return cls(names, named, count, {column.name: column.type for column in signature or ()})

    def arrange(self, features: pd.DataFrame) -> tuple[Any, tuple[str, ...]]:
        """Return the (n, d) features as the model takes them (frame or array), and notes on columns left as they are.

        ModelUnusable names every column that is missing. Columns that the model does not take are left out.
        """
        if self.names is None:
            return self._by_position(features), ()
        missing = [name for name in self.names if name not in features.columns]
        if missing:
            raise ModelUnusable(
                f"the splits lack {len(missing)} of the model's {len(self.names)} columns: {', '.join(map(repr, missing[:8]))}; "
                "log splits with every column that the model was trained on"
            )
        names = list(self.names)
        frame = features if list(features.columns) == names else features[names]
        cast = {name: _cast(frame[name], self.types[name]) for name in names if name in self.types}
        other = sorted(name for name, values in cast.items() if not _is(values, self.types[name]))
        notes = (
            (f"columns that are not of the signature's type, scored as they are: {', '.join(other[:8])}",)
            if other
            else ()
        )
        frame = frame.assign(**{name: values for name, values in cast.items() if values.dtype != frame[name].dtype})
        # The last bits of a matrix product hang on how a frame lies in memory, which is where it came from and no property of the rows.
        if not self.named:
            return _array(frame), notes
        return (frame if _column_by_column(frame) else laid_out(list(_columns(frame)), frame)), notes

    def _by_position(self, features: pd.DataFrame) -> Any:
        width = features.shape[1]
        if self.count is not None and width != self.count:
            raise ModelUnusable(
                f"the model takes {self.count} columns without names, the splits have {width} beside the label; "
                "log the splits with the model's columns only, or the model with a signature that names them"
            )
        return _array(features)


def laid_out(columns: Sequence[pd.Series], like: pd.DataFrame) -> pd.DataFrame:
    """Put columns together under the names and index of ``like``; the frame lies in memory in one way, column by column."""
    frame: pd.DataFrame = pd.DataFrame(dict(enumerate(columns)), index=like.index)
    frame.columns = like.columns
    return frame


def _column_by_column(frame: pd.DataFrame) -> bool:
    """Whether a frame is laid out already: all columns of one type, one after the other in one piece of memory."""
    if frame.empty or frame.dtypes.nunique() != 1:
        return False
    whole = frame.to_numpy(copy=False)
    return bool(whole.flags.f_contiguous) and np.shares_memory(whole, frame.iloc[:, 0].to_numpy(copy=False))


def _columns(frame: pd.DataFrame) -> Iterator[pd.Series]:
    return (frame.iloc[:, at] for at in range(frame.shape[1]))


def _cast(values: pd.Series, type_: str | None) -> pd.Series:
    """Return values in the signature's type where every one of them survives that, else as they are."""
    dtype = _DTYPES.get(type_ or "")
    if dtype is None or values.dtype == dtype or not pd.api.types.is_numeric_dtype(values.dtype):
        return values
    if not dtype.startswith("float") and values.isna().any():
        return values
    plain = (
        values.to_numpy(dtype="float64", na_value=np.nan)
        if pd.api.types.is_extension_array_dtype(values.dtype)
        else values
    )
    with np.errstate(all="ignore"):
        cast = np.asarray(plain).astype(dtype)
        same = np.array_equal(
            cast.astype(np.asarray(plain).dtype), np.asarray(plain), equal_nan=dtype.startswith("float")
        )
    return pd.Series(cast, index=values.index, name=values.name) if same else values


def _is(values: pd.Series, type_: str) -> bool:
    return type_ not in _DTYPES or values.dtype == _DTYPES[type_]


def _array(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Return a frame as a row-by-row array, as a model trained on arrays got it: numbers where all are, else objects."""
    return np.ascontiguousarray(frame.to_numpy(na_value=np.nan) if _nullable(frame) else frame.to_numpy())


def _nullable(frame: pd.DataFrame) -> bool:
    return any(
        pd.api.types.is_extension_array_dtype(dtype) and pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes
    )
