"""What is to be promoted, as the store itself knows it: which version, where its bytes lie, which evidence it carries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.evidence.officer_statements import Attached, attached
from mlflow_privacy_gate.registry.resolution import PROMPT_SOURCES
from mlflow_privacy_gate.registry.translation import is_missing
from mlflow_privacy_gate.vocabulary import ATTESTATION_ARTIFACT, ATTESTATION_TAG

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

    from mlflow_privacy_gate.store._interface import RegistryStore


class Tag(Protocol):
    """A tag as callers hand it over: MLflow's entity or its protocol message."""

    key: str
    value: str


@dataclass(frozen=True)
class Subject:
    """One version (``version`` None: not created yet), the location of its bytes, and its raw, untrusted envelopes if any.

    ``attestation`` is the evidence, ``papers`` are the officers' statements.
    """

    name: str
    version: str | None
    location: str
    attestation: str | None
    run_id: str | None = None
    papers: Attached = field(default_factory=Attached)

    @property
    def attestations(self) -> tuple[str, ...]:
        """The envelopes to be looked at."""
        return () if self.attestation is None else (self.attestation,)

    @property
    def evidence_location(self) -> str | None:
        """Where a person finds the evidence: the run's artifact, else the tag; None where there is none."""
        if self.attestation is None:
            return None
        return f"runs:/{self.run_id}/{ATTESTATION_ARTIFACT}" if self.run_id else f"the version's tag {ATTESTATION_TAG}"


def existing_version(store: RegistryStore, name: str, version: str) -> tuple[Subject, ...]:
    """Look one version up; empty when it is a prompt. MLflow's own error when there is none."""
    found = store.get_model_version(name, version)
    location = store.get_model_version_download_uri(found.name, found.version)
    if is_prompt(found.source, location):
        return ()
    tags = found.tags
    return (Subject(found.name, str(found.version), location, tags.get(ATTESTATION_TAG), found.run_id, attached(tags)),)


def every_version(store: RegistryStore, name: str) -> tuple[Subject, ...]:
    """Look up every version of a registered model that is not a prompt.

    By number, because MLflow's search leaves out all versions of a model as soon as one of them carries a prompt's tag.
    """
    newest = max((int(found.version) for found in store.get_latest_versions(name)), default=0)
    subjects: list[Subject] = []
    for number in range(1, newest + 1):
        try:
            subjects.extend(existing_version(store, name, str(number)))
        except MlflowException as exc:
            if not is_missing(exc):  # missing: deleted
                raise
    return tuple(subjects)


def new_version(name: str, source: str, tags: Iterable[Tag] | None) -> tuple[Subject, ...]:
    """Describe a version that is about to be created; empty when it is a prompt."""
    if is_prompt(source, source):
        return ()
    carried = {tag.key: tag.value for tag in tags or ()}
    return (Subject(name, None, source, carried.get(ATTESTATION_TAG), papers=attached(carried)),)


def copied_version(store: RegistryStore, original: ModelVersion, name: str) -> tuple[Subject, ...]:
    """Describe a copy that is about to be made: the original's stored bytes, with the tags the copy will carry."""
    return tuple(
        replace(
            subject,
            name=name,
            version=None,
            attestation=original.tags.get(ATTESTATION_TAG),
            papers=attached(original.tags),
        )
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


def is_prompt(source: str | None, location: str | None) -> bool:
    """Whether a version is a prompt, by what cannot be changed afterwards; tags are never asked."""
    return source in PROMPT_SOURCES and location in PROMPT_SOURCES
