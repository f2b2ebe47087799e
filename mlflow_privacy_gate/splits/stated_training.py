"""What an author may state of the training besides the rows: a function that trains, and models that were trained before.

Both are the author's word. They serve for reference models only where the policy admits them (``attacks.reference_origins``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ConfigDict, Field

from mlflow_privacy_gate.errors import SplitsUnavailable, UsageError
from mlflow_privacy_gate.splits._interface import ReferenceModels, TrainingFunction
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.readers import readings

FEWEST_MODELS = 2
MASKS_FILE = "reference_masks.parquet"
FUNCTION_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
_STRICT = ConfigDict(extra="forbid", strict=True)
_Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LoggedReferences:
    """Models trained before on parts of the same rows: their ``uris``, and where it stands which rows each was trained on.

    ``masks``: a parquet file's URI, one boolean column a model (named ``0``, ``1``, …), one line a row, members first, each side in the
    order of its content (:class:`mlflow_privacy_gate.evidence.rowset.SharedRows`), so that files may be sorted anew. ``masks_sha256``
    is of those bits.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    uris: Annotated[list[Annotated[str, Field(pattern=r"^(models|runs):/")]], Field(min_length=FEWEST_MODELS)]
    masks: Annotated[str, Field(min_length=1)]
    masks_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    def models(self, access: SourceAccess, *, rows: int) -> ReferenceModels:
        """Give the models as a check takes them; the masks, of ``rows`` rows, are read when they are asked for."""
        return ReferenceModels(tuple(self.uris), lambda: self._read(access, rows))

    def _read(self, access: SourceAccess, rows: int) -> _Masks:
        with access.open(self.masks) as path:
            table = next(readings(path))
        names = [str(number) for number in range(len(self.uris))]
        if list(table.columns) != names or len(table) != rows or any(table[name].dtype != np.bool_ for name in names):
            raise SplitsUnavailable(
                f"{self.masks}: expected {len(names)} columns of true and false for {rows:,} rows, found {table.shape[1]} columns of "
                f"{len(table):,} rows; log the splits and their reference models again"
            )
        masks: _Masks = table.to_numpy(dtype=np.bool_).T
        if masks_sha256(masks) != self.masks_sha256:
            raise SplitsUnavailable(f"{self.masks}: these are not the masks that were logged with the splits")
        return masks


@dataclass(frozen=True)
class NamedModel:
    """One earlier model as ``log_splits`` was given it: its URI and which rows it was trained on, (rows,) bool, members first."""

    uri: str
    trained_on: _Masks


def function_name(function: str | Callable[..., Any]) -> str:
    """Return ``package.module:function`` for a training function or its name; UsageError where it could not be imported elsewhere."""
    name = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"training_function: expected `package.module:function`, got {name!r}")
    if module == "__main__":
        raise UsageError(
            f"training_function: {name!r} is in the script itself, where a check cannot import it; put it in a module"
        )
    return name


def stated_function(name: str | None, seed: int | None) -> TrainingFunction | None:
    """Give the training function as a check takes it, None where none is named."""
    return None if name is None else TrainingFunction(name, seed)


def named_models(given: Sequence[Mapping[str, object]], *, rows: int) -> tuple[NamedModel, ...]:
    """Read ``log_splits``' list of ``{"uri": …, "trained_on": …}``; UsageError where a model or its rows cannot be meant."""
    if len(given) < FEWEST_MODELS:
        raise UsageError(f"reference_models: expected {FEWEST_MODELS} or more, got {len(given)}")
    models = tuple(_named_model(one, rows) for one in given)
    twice = {model.uri for model in models if sum(other.uri == model.uri for other in models) > 1}
    if twice:
        raise UsageError(f"reference_models: {', '.join(sorted(twice))} stand more than once")
    return models


def mask_table(models: Sequence[NamedModel], by_content: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Lay the masks out as they are stored: a column a model, rows in the order of their content."""
    table: pd.DataFrame = pd.DataFrame({str(n): model.trained_on[by_content] for n, model in enumerate(models)})
    return table


def masks_sha256(masks: _Masks) -> str:
    """Return the sha256 (hex) of masks (K, rows), bit by bit, row after row of the matrix."""
    return hashlib.sha256(np.packbits(masks, axis=1).tobytes()).hexdigest()


def _named_model(given: Mapping[str, object], rows: int) -> NamedModel:
    if not isinstance(given, Mapping) or set(given) != {"uri", "trained_on"}:
        raise UsageError('reference_models: expected a list of {"uri": …, "trained_on": …}')
    uri, mask = str(given["uri"]), np.asarray(given["trained_on"])
    if not uri.startswith(("models:/", "runs:/")) or "@" in uri:
        raise UsageError(
            f"reference_models: {uri!r}: expected models:/name/version, models:/m-… or runs:/…/name, which stay what they are"
        )
    if mask.dtype != np.bool_ or mask.shape != (rows,):
        raise UsageError(
            f"reference_models: {uri}: trained_on: expected true or false for each of {rows:,} rows (members first), "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    return NamedModel(uri, mask)
