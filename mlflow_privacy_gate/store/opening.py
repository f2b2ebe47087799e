"""Opening ``privacy-gate:<inner uri>``: the inner store itself, with its promoting methods guarded."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.policy.location import server_policy_file
from mlflow_privacy_gate.policy.model import Mode
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.first_use import opening
from mlflow_privacy_gate.registry.model_folder import version_folder
from mlflow_privacy_gate.registry.server_bytes import served_folder
from mlflow_privacy_gate.registry.stores import SCHEME, said_without_credentials
from mlflow_privacy_gate.store.guarded_methods import GuardedMethods
from mlflow_privacy_gate.store.promotion_guard import PromotionGuard
from mlflow_privacy_gate.store.recording import Asker
from mlflow_privacy_gate.store.turns import turns_at

if TYPE_CHECKING:
    from mlflow.store.model_registry.abstract_store import AbstractStore

    from mlflow_privacy_gate.policy.location import PolicyFile
    from mlflow_privacy_gate.store.measuring import FolderAt

_logger = logging.getLogger(__name__)
# A server shows what its own logger says at this level, and nothing of loggers it does not know.
_start_log = logging.getLogger("mlflow.privacy_gate")


def open_gated_store(store_uri: str, tracking_uri: str | None = None, **_: object) -> AbstractStore:
    """Open the registry store behind ``privacy-gate:`` so that promotions without valid passing evidence are refused.

    The store is an instance of a subclass of the inner store's own class and shares its state, so everything that is not a promotion is the
    inner store's. This is what MLflow calls for the scheme, in a client and in ``mlflow server``.
    """
    inner_uri = store_uri.removeprefix(f"{SCHEME}:")
    if inner_uri in {store_uri, ""}:
        raise MlflowException(
            f"{said_without_credentials(store_uri)}: expected {SCHEME}: and the registry's own URI after it, "
            f"such as {SCHEME}:sqlite:///mlflow.db",
            error_code=INVALID_PARAMETER_VALUE,
        )
    policy_file = server_policy_file(os.environ)
    with opening(inner_uri):
        inner = mlflow_private.inner_store(inner_uri, tracking_uri)
        turns = turns_at(inner)
    guard = PromotionGuard(policy_file, _folders(tracking_uri), turns, partial(_asker, inner))
    _announce(policy_file, inner_uri)
    return gated(inner, guard)


def gated(inner: AbstractStore, guard: PromotionGuard) -> AbstractStore:
    """Return the same store as a subclass of its own class whose promoting methods ask the guard first."""
    kind = type(inner)
    guarded: Any = type(f"Gated{kind.__name__}", (GuardedMethods, kind), {"_privacy_gate": guard})
    store: AbstractStore = guarded.__new__(guarded)
    store.__dict__ = inner.__dict__
    return store


def _asker(inner: AbstractStore) -> Asker:
    """Say who makes the request at hand."""
    return Asker(mlflow_private.request_user() or "unauthenticated", mlflow_private.active_workspace(inner))


def _folders(tracking_uri: str | None) -> FolderAt:
    """Choose how models' bytes are read: inside the server from where it keeps them, in a client as a client loads them, however large."""
    if mlflow_private.in_server():
        return served_folder
    asked = tracking_uri or mlflow.get_tracking_uri()
    return lambda location, version_location, _: version_folder(location, version_location, tracking_uri=asked)


def _announce(policy_file: PolicyFile, inner_uri: str) -> None:
    """Say at start what stands guard, loudly where it does not."""
    store = said_without_credentials(inner_uri)
    named = policy_file.path if policy_file.path is not None else "the built-in policy"
    try:
        mode = policy_file.current().mode
    except PolicyError as exc:
        _logger.error(
            "privacy gate: every promotion in %s will be refused (PG901), %s cannot be used:\n%s", store, named, exc
        )
        return
    if mode is Mode.ENFORCE:
        _start_log.info("privacy gate: promotions in %s are guarded by %s", store, named)
    elif mode is Mode.WARN:
        _logger.warning("privacy gate: mode is warn in %s: promotions in %s are NOT refused, only said", named, store)
    else:
        _logger.warning("privacy gate: mode is off in %s: promotions in %s are NOT guarded", named, store)
