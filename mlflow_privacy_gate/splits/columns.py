"""What kind of value each column of a logged split holds, so that a text file can be read back as the very same table.

A ``number`` has double precision and a ``single`` has single precision: text written from a single names the double nearest to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

import numpy as np
import pandas as pd

Kind: TypeAlias = Literal["number", "single", "integer", "boolean", "text", "datetime", "other"]

_EXACT_IN_FLOAT = 2**53
_INFERRED: Mapping[str, Kind] = {
    "string": "text",
    "boolean": "boolean",
    "integer": "integer",
    "floating": "number",
    "mixed-integer-float": "number",
    "datetime": "datetime",
    "datetime64": "datetime",
}
_MLFLOW_TYPES: Mapping[str, Kind] = {
    "integer": "integer",
    "long": "integer",
    "float": "single",
    "double": "number",
    "boolean": "boolean",
    "string": "text",
    "datetime": "datetime",
}


def column_kinds(frame: pd.DataFrame) -> dict[str, Kind]:
    """Return the kind of every column by name, in the frame's order; a categorical has the kind of its categories."""
    return {str(name): _kind(frame[name]) for name in frame.columns}


def _kind(values: pd.Series) -> Kind:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _kind(dtype.categories.to_series())
    if dtype in ("float32", "Float32"):
        return "single"
    for kind, test in (
        ("boolean", pd.api.types.is_bool_dtype),
        ("integer", pd.api.types.is_integer_dtype),
        ("number", pd.api.types.is_float_dtype),
        ("datetime", pd.api.types.is_datetime64_any_dtype),
    ):
        if test(dtype):
            return cast(Kind, kind)
    return _INFERRED.get(pd.api.types.infer_dtype(values, skipna=True), "other")


def kinds_of_mlflow_schema(schema: str | None) -> dict[str, Kind] | None:
    """Return the kinds that MLflow's dataset schema (JSON) names, or None where it names no columns."""
    if not schema:
        return None
    columns = json.loads(schema).get("mlflow_colspec")
    if not columns or any("name" not in column for column in columns):
        return None
    return {str(column["name"]): _MLFLOW_TYPES.get(str(column.get("type")), "other") for column in columns}


def conform(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """Return the logged columns only, in the logged order, with dates and booleans read as such where nothing is lost by it."""
    chosen = frame if list(frame.columns) == list(kinds) else frame[list(kinds)]
    changed = {name: read(chosen[name]) for name, read in _to_read(chosen, kinds)}
    return with_plain_integers(chosen.assign(**changed) if changed else chosen)


def _to_read(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> Iterator[tuple[str, Callable[[pd.Series], pd.Series]]]:
    for name, kind in kinds.items():
        dtype = frame[name].dtype
        if kind == "datetime" and not pd.api.types.is_datetime64_any_dtype(dtype):
            yield name, _as_dates
        if kind == "boolean" and pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
            yield name, _as_flags
        if kind == "single" and dtype == "float64":
            yield name, _as_singles


def _as_dates(values: pd.Series) -> pd.Series:
    for utc in (False, True):  # one zone with summer time is written with two offsets, which only UTC holds
        try:
            dates: pd.Series = pd.to_datetime(values, format="ISO8601", utc=utc)
        except (ValueError, TypeError):
            continue
        return dates
    return values


def _as_singles(values: pd.Series) -> pd.Series:
    with np.errstate(over="ignore"):
        singles: pd.Series = values.astype("float32")
    return singles


def _as_flags(values: pd.Series) -> pd.Series:
    flags: pd.Series = values.astype("bool") if values.isin([0, 1]).all() else values
    return flags


def with_plain_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose nullable integer columns are plain ones wherever every value survives that."""
    nullable = [name for name, dtype in frame.dtypes.items() if isinstance(dtype, (pd.Int64Dtype, pd.UInt64Dtype))]
    return frame.assign(**{str(name): plain_integers(frame[name]) for name in nullable}) if nullable else frame


def plain_integers(values: pd.Series) -> pd.Series:
    """Return a nullable integer column as plain integers, or as float64 with NaN, wherever every value survives that."""
    if not isinstance(values.dtype, (pd.Int64Dtype, pd.UInt64Dtype)):
        return values
    if not values.isna().any():
        whole = "uint64" if isinstance(values.dtype, pd.UInt64Dtype) else "int64"
        plain: pd.Series = pd.Series(values.to_numpy(dtype=whole), name=values.name)
        return plain
    known = values.dropna()
    exact = known.empty or (known.max() <= _EXACT_IN_FLOAT and known.min() >= -_EXACT_IN_FLOAT)
    return pd.Series(values.to_numpy(dtype="float64", na_value=np.nan), name=values.name) if exact else values
