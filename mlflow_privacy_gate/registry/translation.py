"""Foreign exceptions on their way in: what MLflow, its database and the network raise, as this project's errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.errors import CouldNotLook, PrivacyGateError, UsageError

_T = TypeVar("_T")

# Waits between tries, in seconds; SQLite's own busy timeout (20 s in MLflow) comes before each.
_WAITS = (0.2, 0.5, 1.0)
_MISSING = frozenset({"RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "ENDPOINT_NOT_FOUND"})
_PASSING = frozenset(
    {"TEMPORARILY_UNAVAILABLE", "DEADLINE_EXCEEDED", "REQUEST_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED"}
)
_DATABASES = frozenset({"sqlalchemy", "alembic", "sqlite3", "psycopg2", "psycopg", "pymysql"})
_MEANT_WRONGLY = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "FEATURE_DISABLED"})


def is_missing(error: MlflowException) -> bool:
    """Whether MLflow looked and found nothing (unlike: could not look)."""
    return error.error_code in _MISSING


def is_database_failure(error: BaseException) -> bool:
    """Whether an error says that a database failed or was locked, rather than that a request was wrong."""
    if isinstance(error, MlflowException):
        # MLflow's SQL stores raise their own error from the database's; over REST only the code and the text are left.
        from_database = error.__cause__ is not None and is_database_failure(error.__cause__)
        return from_database or error.error_code in _PASSING or "(sqlite3." in error.message
    return type(error).__module__.partition(".")[0] in _DATABASES


def is_conflict(error: BaseException) -> bool:
    """Whether a database gave one of two transactions up for the other (a deadlock): the same again may well succeed."""
    if isinstance(error, MlflowException):
        return error.__cause__ is not None and is_conflict(error.__cause__)
    driver = getattr(error, "orig", None)
    state = getattr(driver, "pgcode", None) or getattr(driver, "sqlstate", None)
    number = driver.args[0] if driver is not None and driver.args else None
    return state in {"40P01", "40001"} or number in {1205, 1213}  # PostgreSQL; MySQL


def asking(where: str, question: Callable[[], _T], *, missing: Callable[[str], PrivacyGateError] | None = None) -> _T:
    """Put one question to a server or store, again after a short wait where it is busy, and translate what it raises.

    Only idempotent questions may be asked this way. ``where`` names the server in messages. ``missing`` builds the error for "there is no
    such thing"; without it that is a UsageError. Everything else that fails is CouldNotLook: nothing is known, and a retry may help.
    """
    for wait in (*_WAITS, None):
        try:
            return question()
        except PrivacyGateError:
            raise
        except MlflowException as exc:
            if wait is not None and is_database_failure(exc):
                time.sleep(wait)
                continue
            raise _translated(where, exc, missing) from exc
        except Exception as exc:
            if wait is not None and is_database_failure(exc):
                time.sleep(wait)
                continue
            raise CouldNotLook(f"could not ask {where}: {type(exc).__name__}: {exc}") from exc
    raise AssertionError("unreachable: the last try either answers or raises")


def _translated(
    where: str, exc: MlflowException, missing: Callable[[str], PrivacyGateError] | None
) -> PrivacyGateError:
    if is_missing(exc):
        return missing(exc.message) if missing is not None else UsageError(f"{where} says: {exc.message}")
    if exc.error_code in _MEANT_WRONGLY and not is_database_failure(exc):
        return UsageError(f"{where} says: {exc.message}")
    return CouldNotLook(f"could not ask {where}: {exc.message}")
