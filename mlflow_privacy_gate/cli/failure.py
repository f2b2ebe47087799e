"""How a command that was stopped by an error says so: one line or more for people, one JSON object for machines."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import click

from mlflow_privacy_gate.errors import EvidenceRejected, InternalError, PrivacyGateError
from mlflow_privacy_gate.vocabulary import REASONS, ReasonCode


@dataclass(frozen=True)
class Failure:
    """Why a command ended without a result; ``code`` None: a call that cannot be meant has no reason code."""

    code: str | None
    message: str
    remedy: str
    exit_code: int

    def text(self) -> str:
        """Say it to a person."""
        return f"{self.code}: {self.message}" if self.code else self.message

    def as_json(self) -> str:
        """Give it as one JSON object."""
        return json.dumps({"error": asdict(self)}, indent=2)


def failure_of(error: Exception, command: str) -> Failure:
    """Say what an error ends with; ``command`` is the one that was called, as its user typed it."""
    if isinstance(error, click.ClickException):
        return Failure(None, error.format_message(), _help(command), error.exit_code)
    if isinstance(error, PrivacyGateError):
        own = error.remedy if isinstance(error, EvidenceRejected) else None
        remedy = own or (REASONS[error.code].remedy if error.code else _help(command))
        return Failure(str(error.code) if error.code else None, error.message, remedy, error.exit_code)
    code = ReasonCode.PG909
    said = f"a fault of mlflow-privacy-gate, please report it: {error!r}"
    return Failure(str(code), said, REASONS[code].remedy, InternalError.exit_code)


def _help(command: str) -> str:
    return f"correct the call as the message says (`{command} --help`)"
