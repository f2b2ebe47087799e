"""Where the ledger of a registry is, under a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger
from mlflow_privacy_gate.registry.ledger.sql_ledger import SqlLedger
from mlflow_privacy_gate.registry.stores import SCHEME, said_without_credentials

if TYPE_CHECKING:
    from mlflow_privacy_gate.policy.model import Policy
    from mlflow_privacy_gate.registry.ledger._interface import Ledger

FILE_NAME = "privacy-gate-ledger.jsonl"
_DATABASES = frozenset({"sqlite", "postgresql", "mysql", "mssql"})


def ledger_file(policy: Policy, *, beside: bool = False) -> Path | None:
    """Give the file that the policy names for the ledger; else, with ``beside``, the one beside the policy file; else None."""
    if policy.ledger is not None:
        return policy.locate(policy.ledger)
    return policy.folder / FILE_NAME if beside and policy.folder is not None else None


def reachable_ledger(registry_uri: str, policy: Policy) -> Ledger | None:
    """Give the ledger of a registry as far as it can be read from here; None where only a server can reach it.

    CouldNotLook where the database cannot be opened.
    """
    named = ledger_file(policy)
    if named is not None:
        return FileLedger(named) if named.exists() else None
    inner = registry_uri.removeprefix(f"{SCHEME}:")
    if inner.partition(":")[0].partition("+")[0] in _DATABASES:
        try:
            return SqlLedger(create_engine(make_url(inner), poolclass=NullPool), inner)
        except (SQLAlchemyError, ArgumentError, ImportError) as exc:
            raise CouldNotLook(f"{said_without_credentials(inner)} cannot be opened: {exc}") from exc
    beside = ledger_file(policy, beside=True)
    return FileLedger(beside) if beside is not None and beside.exists() else None
