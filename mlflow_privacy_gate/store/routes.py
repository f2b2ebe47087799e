"""The ways a version becomes production: when a policy guards each, and what the gate is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mlflow.entities.model_registry.model_version_stages import STAGE_ARCHIVED, STAGE_NONE
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from mlflow_privacy_gate import gate
from mlflow_privacy_gate.policy.model import Policy

LONGEST_VALUE = (
    1_000  # characters; MLflow's own limit is 255 for an alias, and three times that for a name in three parts
)


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


def check_length(request: Request) -> None:
    """Answer for an alias or name that no registry takes before it is compared with anything.

    Unicode's forms of a text can take a time that grows with the square of its length, in which a worker does nothing else.
    """
    if len(request.value) > LONGEST_VALUE:
        raise MlflowException(
            f"{request.route}: expected at most {LONGEST_VALUE:,} characters, got {len(request.value):,}",
            INVALID_PARAMETER_VALUE,
        )
