"""What is to be promoted, as the store itself knows it: which version, where its bytes lie, which evidence it carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST

from mlflow_privacy_gate.evidence.officer_statements import Attached, attached
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.resolution import PROMPT_SOURCES
from mlflow_privacy_gate.registry.translation import is_missing
from mlflow_privacy_gate.vocabulary import (
    ATTESTATION_ARTIFACT,
    ATTESTATION_TAG,
    EXEMPTION_TAG,
    SIGN_OFF_TAG,
    WAIVER_TAG,
)

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

    from mlflow_privacy_gate.store._interface import RegistryStore


LARGEST_VERSION = 2**31 - 1  # a 32-bit integer in MLflow's tables
_STATEMENT_TAGS = tuple(f"{tag}." for tag in (WAIVER_TAG, SIGN_OFF_TAG, EXEMPTION_TAG))


class Tag(Protocol):
    """A tag as callers hand it over: MLflow's entity or its protocol message."""

    key: str
    value: str


@dataclass(frozen=True)
class Subject:
    """One version (``version`` None: not created yet), the location of its bytes, and its raw, untrusted evidence tags."""

    name: str
    version: str | None
    location: str
    evidence_tags: Mapping[str, str]
    run_id: str | None = None

    @property
    def attestations(self) -> tuple[str, ...]:
        """The envelopes of the evidence to be looked at."""
        attestation = self.evidence_tags.get(ATTESTATION_TAG)
        return () if attestation is None else (attestation,)

    @property
    def papers(self) -> Attached:
        """The officers' statements."""
        return attached(self.evidence_tags)

    @property
    def evidence_location(self) -> str | None:
        """Where a person finds the evidence: the run's artifact, else the tag; None where there is none."""
        if not self.attestations:
            return None
        return f"runs:/{self.run_id}/{ATTESTATION_ARTIFACT}" if self.run_id else f"the version's tag {ATTESTATION_TAG}"


def existing_version(store: RegistryStore, name: str, version: str) -> tuple[Subject, ...]:
    """Look one version up; empty when it is a prompt. MLflow's own error when there is none."""
    _check_reach(name, version)
    found, location = mlflow_private.version_and_location(store, name, version)
    if is_prompt(found.source, location):
        return ()
    return (Subject(found.name, str(found.version), location, evidence_among(found.tags.items()), found.run_id),)


def _check_reach(name: str, version: str) -> None:
    """Answer for a number that no registry can hold as for any other that is not there: databases fail over it."""
    try:
        number = int(version)
    except (TypeError, ValueError):
        return  # MLflow says itself what a version must be
    if not 0 <= number <= LARGEST_VERSION:
        raise MlflowException(f"Model Version (name={name}, version={version}) not found", RESOURCE_DOES_NOT_EXIST)


def every_version(store: RegistryStore, name: str) -> Iterator[Subject]:
    """Look up every version of a registered model that is not a prompt, each when it is asked for.

    By number, because MLflow's search leaves out all versions of a model as soon as one of them carries a prompt's tag.
    """
    newest = max((int(found.version) for found in store.get_latest_versions(name)), default=0)
    for number in range(1, newest + 1):
        try:
            yield from existing_version(store, name, str(number))
        except MlflowException as exc:
            if not is_missing(exc):  # missing: deleted
                raise


def new_version(name: str, source: str, tags: Iterable[Tag] | None) -> tuple[Subject, ...]:
    """Describe a version that is about to be created; empty when it is a prompt."""
    if is_prompt(source, source):
        return ()
    return (Subject(name, None, source, evidence_among((tag.key, tag.value) for tag in tags or ())),)


def copied_version(store: RegistryStore, original: ModelVersion, name: str) -> tuple[Subject, ...]:
    """Describe a copy that is about to be made: the original's stored bytes, with the tags the copy will carry."""
    carried = evidence_among(original.tags.items())
    return tuple(
        replace(subject, name=name, version=None, evidence_tags=carried)
        for subject in existing_version(store, original.name, original.version)
    )


def stored_name(store: RegistryStore, name: str) -> str | None:
    """Return the name of a registered model as the registry has it, None where there is none."""
    try:
        return str(store.get_registered_model(name).name)
    except MlflowException as exc:
        if is_missing(exc):
            return None
        raise


def evidence_among(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Pick the tags that may hold an attestation or an officer's statement."""
    return {key: value for key, value in tags if key == ATTESTATION_TAG or key.startswith(_STATEMENT_TAGS)}


def is_prompt(source: str | None, location: str | None) -> bool:
    """Whether a version is a prompt, by what cannot be changed afterwards; tags are never asked."""
    return source in PROMPT_SOURCES and location in PROMPT_SOURCES
