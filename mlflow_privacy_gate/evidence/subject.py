"""The subject of a test: one model of a registry or run, and the datasets its run names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlflow_privacy_gate.vocabulary import DEFAULT_WORKSPACE


@dataclass(frozen=True)
class ResolvedModel:
    """One model URI, resolved once; only what stands here is used afterwards.

    ``uri`` is as the user typed it. ``name`` and ``version`` are None for a model that is not registered. ``source`` is the version's
    immutable source; ``artifact_uri`` is where its bytes lie. ``run_id`` and ``model_id`` are None where there is no lineage (and
    ``lineage_note`` says why). ``tags`` and ``description`` are the version's own at that moment. ``workspace`` is where
    it is registered.
    """

    uri: str
    artifact_uri: str
    name: str | None = None
    version: str | None = None
    model_id: str | None = None
    run_id: str | None = None
    source: str | None = None
    description: str | None = None
    tags: Mapping[str, str] | None = None
    stage: str | None = None
    aliases: tuple[str, ...] = ()
    lineage_note: str | None = None
    workspace: str = DEFAULT_WORKSPACE

    @property
    def versioned(self) -> bool:
        """Whether this is a registered version, so that tags can be written and a promotion is possible."""
        return self.name is not None and self.version is not None


@dataclass(frozen=True)
class DatasetInput:
    """One dataset input of a run as MLflow recorded it (nothing loaded).

    ``schema`` is MLflow's schema JSON, ``model_id`` its tie if any.
    """

    name: str
    digest: str
    context: str | None
    source_type: str
    source: str
    schema: str | None = None
    num_rows: int | None = None
    model_id: str | None = None
