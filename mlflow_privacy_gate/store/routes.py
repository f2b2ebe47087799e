"""The ways a version becomes production: when a policy guards each, and what the gate is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mlflow.entities.model_registry.model_version_stages import STAGE_ARCHIVED, STAGE_NONE

from mlflow_privacy_gate import gate
from mlflow_privacy_gate.policy.model import Policy


class Request(Protocol):
    """A request that may be a promotion."""

    @property
    def name(self) -> str:
        """The registered model that was asked for."""

    @property
    def route(self) -> gate.Route:
        """The way to production."""

    @property
    def value(self) -> str:
        """The stage, the alias or the name."""

    def guarded_by(self, policy: Policy) -> bool:
        """Whether this is a promotion under a policy."""

    def guarded_blindly(self, last: Policy | None) -> bool:
        """Whether this must be taken for a promotion while the policy cannot be read; ``last`` is the one read before, if any."""


@dataclass(frozen=True)
class ToStage:
    """A version goes to a stage, named as MLflow itself writes it."""

    name: str
    value: str
    route: gate.Route = gate.Route.STAGE

    def guarded_by(self, policy: Policy) -> bool:
        """Whether the stage is guarded."""
        return gate.guarded_stage(policy, self.value)

    def guarded_blindly(self, last: Policy | None) -> bool:  # noqa: ARG002 - the same under every policy
        """Any stage but the two that take a version out of use."""
        return self.value not in {STAGE_NONE, STAGE_ARCHIVED}


@dataclass(frozen=True)
class ToAlias:
    """A version gets an alias."""

    name: str
    value: str
    route: gate.Route = gate.Route.ALIAS

    def guarded_by(self, policy: Policy) -> bool:
        """Whether the alias, or one it could be taken for, is guarded."""
        return gate.guarded_alias(policy, self.value)

    def guarded_blindly(self, last: Policy | None) -> bool:  # noqa: ARG002 - the same under every policy
        """Any alias."""
        return True


@dataclass(frozen=True)
class IntoName:
    """A version comes to be under a registered model's name: created, copied or renamed.

    ``stored`` answers with the name as the registry has it (a database may take two spellings for one), None where there is no
    such model yet.
    """

    name: str
    value: str
    route: gate.Route
    stored: Callable[[], str | None]

    def guarded_by(self, policy: Policy) -> bool:
        """Whether the name, as asked for or as stored, is guarded; the registry is asked only where any name is."""
        if not policy.guard.registered_models:
            return False
        if gate.guarded_name(policy, self.value):
            return True
        stored = self.stored()
        return stored is not None and gate.guarded_name(policy, stored)

    def guarded_blindly(self, last: Policy | None) -> bool:
        """What the last readable policy guarded; any name where none has been read."""
        return last is None or self.guarded_by(last)
