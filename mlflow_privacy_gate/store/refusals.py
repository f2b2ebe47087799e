"""How a refusal leaves the store: always MlflowException with the protobuf constant, so that clients see 403 at once and do not retry."""

from __future__ import annotations

import logging

from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import PERMISSION_DENIED

from mlflow_privacy_gate import gate
from mlflow_privacy_gate.errors import PolicyError, PrivacyGateError
from mlflow_privacy_gate.registry.translation import is_database_failure
from mlflow_privacy_gate.store.routes import Request
from mlflow_privacy_gate.store.subjects import Subject
from mlflow_privacy_gate.vocabulary import DEFAULT_WORKSPACE, Finding, ReasonCode

_ANY_VERSION = "any"  # a rename that failed before its versions were looked up
_NEW_VERSION = "new"
_logger = logging.getLogger(__name__)


def refused(message: str) -> MlflowException:
    """Return the refusal as MLflow must raise it: HTTP 403. (A string for the code would become 500, and minutes of retries.)"""
    return MlflowException(message, error_code=PERMISSION_DENIED)


def is_an_answer(error: Exception) -> bool:
    """Whether an error is MLflow's own answer to the request (no such version, bad name), rather than a failure on the way."""
    if not isinstance(error, MlflowException) or is_database_failure(error):
        return False
    return int(error.get_http_status_code()) < 500  # type: ignore[no-untyped-call]


def finding_of(error: Exception) -> Finding:
    """Return the one finding that an error on the way to a decision amounts to; what is not understood is PG909."""
    if isinstance(error, PolicyError):
        return Finding(ReasonCode.PG901, error.message)
    if isinstance(error, PrivacyGateError):
        return Finding(error.code or ReasonCode.PG909, error.message)
    if is_database_failure(error) or isinstance(error, MlflowException):
        _logger.error("privacy gate: the registry's database failed during a promotion", exc_info=error)
        return Finding(
            ReasonCode.PG902,
            "the registry or its database failed; nothing was promoted. The server's log has the details",
        )
    _logger.error("privacy gate: internal fault during a promotion", exc_info=error)
    return Finding(
        ReasonCode.PG909,
        f"{type(error).__name__} inside the gate; nothing was promoted. The server's log has the details",
    )


def target_of(
    request: Request,
    subject: Subject | None = None,
    digest: str | None = None,
    digest_problem: str | None = None,
    *,
    version: str | None = None,
    workspace: str = DEFAULT_WORKSPACE,
) -> gate.PromotionTarget:
    """Describe to the gate what is asked for: a version that was looked up, or only what the request says (``version`` too)."""
    unnamed = _ANY_VERSION if request.route is gate.Route.RENAME else _NEW_VERSION
    return gate.PromotionTarget(
        name=request.name if subject is None else subject.name,
        version=(subject.version if subject is not None else version) or unnamed,
        route=request.route,
        value=request.value,
        model_digest=digest,
        model_digest_problem=digest_problem,
        evidence_location=subject.evidence_location if subject is not None else None,
        workspace=workspace,
    )
