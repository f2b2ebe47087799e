"""What a privacy officer states under signature: a sign-off, a waiver, an exemption.

A sign-off and a waiver name one test by the sha256 of its envelope, and one way to production of one registered model: another test,
another name, another alias or another workspace needs another statement. An exemption names the model's bytes, in one workspace.
Times are timezone-aware. An object that contradicts itself cannot be made (UsageError); whether it counts now, under this policy,
is the gate's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.in_toto import check_sha256
from mlflow_privacy_gate.vocabulary import ReasonCode, StrEnum


class ScopeKind(StrEnum):
    """What makes a version production: a stage, an alias, or the registered model's own name."""

    STAGE = "stage"
    ALIAS = "alias"
    NAME = "name"


@dataclass(frozen=True)
class Scope:
    """The one way to production that a statement is for.

    ``registered_model`` is the model's name at the promotion. ``value`` is the stage, the alias, or for ``name`` the guarded name itself.
    ``workspace`` is where the model is registered: two workspaces may each hold a model of that name. None is the default one,
    of which a statement says nothing.
    """

    registered_model: str
    kind: ScopeKind
    value: str
    workspace: str | None = None

    def __post_init__(self) -> None:
        _check_said(self, ("registered_model", "value"))

    def __str__(self) -> str:
        where = f" in workspace {self.workspace}" if self.workspace else ""
        if self.kind is ScopeKind.NAME:
            return f"the guarded name {self.value}{where}"
        return f"{self.kind} {self.value} of {self.registered_model}{where}"


@dataclass(frozen=True)
class SignOff:
    """A privacy officer has read this test and agrees to this promotion. It lifts no finding."""

    evidence_sha256: str
    scope: Scope
    signed_by: str
    stated_at: datetime
    remark: str | None = None

    def __post_init__(self) -> None:
        check_sha256("evidence_sha256", self.evidence_sha256)
        _check_said(self, ("signed_by",))
        _check_times(self, ("stated_at",))


@dataclass(frozen=True)
class Waiver:
    """A permission to promote in spite of the named findings, from ``effective_on`` until ``effective_until`` and no longer.

    ``reference`` is where the decision is filed (a ticket, minutes). ``compensating_controls`` says what protects the people in
    the data meanwhile. ``requested_by`` and ``approved_by`` are two persons.
    """

    evidence_sha256: str
    findings: tuple[ReasonCode, ...]
    reason: str
    reference: str
    compensating_controls: str
    requested_by: str
    approved_by: str
    scope: Scope
    effective_on: datetime
    effective_until: datetime
    stated_at: datetime

    def __post_init__(self) -> None:
        check_sha256("evidence_sha256", self.evidence_sha256)
        _check_said(self, ("reason", "reference", "compensating_controls", "requested_by", "approved_by"))
        _check_times(self, ("effective_on", "effective_until", "stated_at"))
        if not self.findings or len(set(self.findings)) != len(self.findings):
            raise UsageError("findings: expected at least one reason code, each once")
        if self.effective_until <= self.effective_on:
            raise UsageError(f"effective_until: {self.effective_until} is not after effective_on {self.effective_on}")


@dataclass(frozen=True)
class Exemption:
    """These very bytes were trained on no personal data, whatever they are called in their workspace and however they are promoted."""

    model_digest: str
    reason: str
    signed_by: str
    stated_at: datetime
    workspace: str | None = None

    def __post_init__(self) -> None:
        check_sha256("model_digest", self.model_digest)
        _check_said(self, ("reason", "signed_by"))
        _check_times(self, ("stated_at",))


def _check_said(statement: object, names: Iterable[str]) -> None:
    for name in names:
        if not getattr(statement, name).strip():
            raise UsageError(f"{name}: is empty; a statement must say it")


def _check_times(statement: object, names: Iterable[str]) -> None:
    for name in names:
        moment = getattr(statement, name)
        if moment.tzinfo is None:
            raise UsageError(f"{name}: expected a time with its timezone, got {moment}")
