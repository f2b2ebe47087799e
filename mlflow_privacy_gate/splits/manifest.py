"""The split manifest: which rows were members and non-members of which model, as ``privacy_gate/splits.json`` beside the run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.splits.columns import Kind
from mlflow_privacy_gate.splits.stated_training import FUNCTION_PATTERN, LoggedReferences
from mlflow_privacy_gate.vocabulary import ARTIFACT_FOLDER, MANIFEST_ARTIFACT, ReasonCode

SCHEMA: Final = "mlflow-privacy-gate/splits/v1"
_OPTIONAL = frozenset({"training_function", "training_seed", "reference_models"})
_STRICT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True)
class LoggedSplit:
    """One side as it was logged: where its rows are, how many, their digest, and what kind of value each column holds.

    ``source`` is a path or URI. ``digest`` is ``rowset-sha256/v1:<hex>`` over all rows and columns. ``mlflow_digest`` is MLflow's own,
    which covers the first 10,000 rows of some columns. ``columns`` maps each name to its kind, in the order of the frame.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    source: Annotated[str, Field(min_length=1)]
    rows: Annotated[int, Field(ge=1)]
    digest: Annotated[str, Field(pattern=r"^rowset-sha256/v1:[0-9a-f]{64}$")]
    columns: Annotated[dict[str, Kind], Field(min_length=1)]
    mlflow_name: str | None = None
    mlflow_digest: str | None = None


@dataclass(frozen=True)
class SplitManifest:
    """Members and non-members of one model; ``model_id`` None = the only model of its run, logged later than the splits.

    ``training_function`` (``package.module:function``), ``training_seed`` and ``reference_models`` are optional, and written only where
    they were given.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    schema: Literal["mlflow-privacy-gate/splits/v1"]
    target: Annotated[str, Field(min_length=1)]
    members: LoggedSplit
    non_members: LoggedSplit
    group: str | None = None
    model_id: str | None = None
    training_function: Annotated[str, Field(pattern=FUNCTION_PATTERN)] | None = None
    training_seed: int | None = None
    reference_models: LoggedReferences | None = None

    def to_json(self) -> bytes:
        """Return the manifest's exact bytes as they are stored; the same manifest gives the same bytes."""
        stated = {key: value for key, value in asdict(self).items() if value is not None or key not in _OPTIONAL}
        return (json.dumps(stated, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes, *, where: str = MANIFEST_ARTIFACT) -> SplitManifest:
        """Read a manifest strictly; SplitsUnavailable names every key that is missing, unknown, doubled or of the wrong type."""
        try:
            json.loads(text, object_pairs_hook=_no_key_twice)
            manifest = TypeAdapter(cls).validate_json(text)
        except ValidationError as exc:
            raise _unreadable(where, "; ".join(_problem(dict(error)) for error in exc.errors())) from exc
        except ValueError as exc:
            raise _unreadable(where, str(exc)) from exc
        for side in ("members", "non_members"):
            for key in ("target", "group"):
                column = getattr(manifest, key)
                if column is not None and column not in getattr(manifest, side).columns:
                    raise _unreadable(where, f"{key}: {column!r} is not among {side}.columns")
        return manifest


def manifest_sha256(text: bytes) -> str:
    """Return the sha256 (hex) of a manifest's stored bytes."""
    return hashlib.sha256(text).hexdigest()


def folder_of(model_id: str | None) -> str:
    """Return the run's artifact folder for a model that is not the run's first with splits; the first has ``privacy_gate`` itself."""
    return ARTIFACT_FOLDER if model_id is None else f"{ARTIFACT_FOLDER}/{model_id}"


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{key}: stands more than once")
    return dict(pairs)


def _problem(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "the whole file"
    got = "" if error["type"] == "missing" else f", got {error['input']!r:.80}"
    return f"{where}: {error['msg']}{got}"


def _unreadable(where: str, why: str) -> SplitsUnavailable:
    return SplitsUnavailable(
        f"{where} cannot be used: {why}. Log the splits again with `log_splits`, or hand them in with --members and --non-members.",
        code=ReasonCode.PG104,
    )
