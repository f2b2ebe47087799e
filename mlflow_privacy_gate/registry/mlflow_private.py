"""Every private name of MLflow that this project touches, in one place, each asked for with a clear message.

MLflow gives no public way to read a proxied artifact from inside the server that serves it, or to build a registry store as the
process at hand would. The names below were tried on MLflow 3.17.2; where a version lacks one, the gate says which, and refuses.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from sqlalchemy.orm import sessionmaker

from mlflow_privacy_gate.errors import InternalError
from mlflow_privacy_gate.vocabulary import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.store.artifact.artifact_repo import ArtifactRepository
    from mlflow.store.model_registry.abstract_store import AbstractStore
    from mlflow.store.tracking.abstract_store import AbstractStore as AbstractTrackingStore
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

_SERVER_HANDLERS = "mlflow.server.handlers"
_BACKEND_VARIABLE = "_MLFLOW_SERVER_FILE_STORE"
_ARTIFACT_ROOT_VARIABLE = "_MLFLOW_SERVER_ARTIFACT_ROOT"
_ARTIFACTS_ROUTE = "/api/2.0/mlflow-artifacts/artifacts/"
_AMBIGUOUS = re.compile(r"[%\x00-\x1f\x7f]")


def _private(module: str, name: str) -> Any:
    """Return a private object of MLflow; InternalError names what this MLflow lacks."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as exc:
        import mlflow

        raise InternalError(
            f"MLflow {mlflow.__version__} has no {module}.{name}, which the privacy gate needs here; "
            "use an MLflow version that this release of mlflow-privacy-gate names as tested"
        ) from exc


def in_server() -> bool:
    """Whether this process is a tracking server at work (its request code loaded, its own environment set)."""
    return _SERVER_HANDLERS in sys.modules and _BACKEND_VARIABLE in os.environ


def inner_store(inner_uri: str, tracking_uri: str | None) -> AbstractStore:
    """Build the registry store behind ``privacy-gate:`` exactly as this process would have built it without the gate."""
    if in_server():
        registry = _private(_SERVER_HANDLERS, "_model_registry_store_registry")
    else:
        registry = _private("mlflow.tracking._model_registry.utils", "_get_store_registry")()
    builder = registry.get_store_builder(inner_uri)
    accepted = set(inspect.signature(builder).parameters)
    # MLflow hands the tracking URI on only to the builders that name it; a bare **kwargs does not ask for it.
    if "tracking_uri" in accepted:
        return cast("AbstractStore", builder(store_uri=inner_uri, tracking_uri=tracking_uri))
    return cast("AbstractStore", builder(store_uri=inner_uri))


def keeps_sql(store: AbstractStore) -> bool:
    """Whether a registry store keeps everything in a database and opens its sessions in one place, so that they can be joined."""
    return hasattr(store, "engine") and hasattr(store, "ManagedSessionMaker") and hasattr(store, "db_type")


def managed_sessions(connection: Connection, db_type: str) -> Callable[..., AbstractContextManager[Session]]:
    """Return MLflow's own maker of sessions, on a connection whose transaction is somebody else's: they commit and roll back savepoints."""
    maker = sessionmaker(bind=connection, join_transaction_mode="create_savepoint")
    wrapped: Callable[..., AbstractContextManager[Session]] = _private(
        "mlflow.store.db.utils", "_get_managed_session_maker"
    )(maker, db_type)
    return wrapped


def version_and_location(store: Any, name: str, version: str) -> tuple[ModelVersion, str]:
    """Return a registry store's version with its tags (a store in a database leaves its aliases out) and where clients load its bytes from.

    In a database both are columns of one row: a promotion looks twice, so it is read once each time, not as MLflow's two methods do.
    A store with methods of its own for it is asked by them, since clients load the bytes from where they say.
    """
    if not _reads_rows(store):
        found = store.get_model_version(name, version)
        return found, str(store.get_model_version_download_uri(found.name, found.version))
    with store.ManagedSessionMaker() as session:
        row = store._get_sql_model_version(session, name, version)
        return row.to_mlflow_entity(), str(row.storage_location or row.source)


def _reads_rows(store: object) -> bool:
    """Whether a store answers for versions as MLflow's own database store does, from rows that can be read."""
    own = sys.modules.get("mlflow.store.model_registry.sqlalchemy_store")
    rows = getattr(own, "SqlAlchemyStore", None)
    methods = ("get_model_version", "get_model_version_download_uri", "_get_sql_model_version")
    return rows is not None and all(
        hasattr(rows, name) and getattr(store, name, None) == getattr(rows, name).__get__(store) for name in methods
    )


def active_workspace(store: AbstractStore) -> str:
    """Return the workspace of the request at hand; a store that only asks a server asks in the client's own workspace."""
    active = getattr(store, "_get_active_workspace", None)
    if active is not None:
        return str(active())
    try:
        context = importlib.import_module("mlflow.utils.workspace_context")
    except ImportError:  # before MLflow 3.9 there is but one
        return DEFAULT_WORKSPACE
    return str(context.get_request_workspace() or DEFAULT_WORKSPACE)


def workspace_of(found: ModelVersion) -> str:
    """Return the workspace in which a version is registered, as the client that looked it up knows it."""
    return str(getattr(found, "workspace", DEFAULT_WORKSPACE))


def request_user() -> str | None:
    """Return the account of the request at hand under ``--app-name basic-auth``, None outside of that."""
    flask = sys.modules.get("flask")  # where it was not loaded there is no request
    if flask is None or not flask.has_request_context():
        return None
    user = getattr(flask.g, "mlflow_authenticated_user", None)
    return None if user is None else str(user)


def server_tracking_store() -> AbstractTrackingStore:
    """Return the tracking store of the server this process is."""
    return cast("AbstractTrackingStore", _private(_SERVER_HANDLERS, "_get_tracking_store")())


def artifact_roots() -> tuple[str, ...]:
    """Return where the operator lets experiments keep their artifacts, in the workspace of the request.

    The default workspace also holds experiments from before there were workspaces, right under ``--default-artifact-root``.
    """
    store = server_tracking_store()
    located = getattr(store, "_get_artifact_location", None)  # gives what an experiment of that id would get
    roots = [str(located("0")).rpartition("/")[0]] if located is not None else []
    if located is None or active_workspace(cast("AbstractStore", store)) == DEFAULT_WORKSPACE:
        roots.append(os.environ.get(_ARTIFACT_ROOT_VARIABLE, ""))
    return tuple(root for root in roots if root)


def is_proxied(location: str) -> bool:
    """Whether this server itself serves what lies at ``location`` (``mlflow-artifacts:``, ``http(s):``)."""
    return bool(_private(_SERVER_HANDLERS, "_is_servable_proxied_run_artifact_root")(location))


def names_this_server(location: str) -> bool:
    """Whether clients that read a proxied ``location`` ask this server and see the very path the server maps it to.

    A location without a host means the server in use. One with a host is believed only where it begins like the default artifact root that
    the server's operator set: anybody may create an experiment whose artifacts lie on a host of their own. Escapes, queries,
    fragments and control characters are read differently by clients and servers, so a location that holds any names nothing for certain.
    """
    here, root = urlsplit(location), urlsplit(os.environ.get(_ARTIFACT_ROOT_VARIABLE, ""))
    if here.query or here.fragment or _AMBIGUOUS.search(location) or ".." in here.path.split("/"):
        return False
    if here.scheme.lower() == "mlflow-artifacts" and not here.netloc:
        return True
    same_host = (here.scheme.lower(), here.netloc.lower()) == (root.scheme.lower(), root.netloc.lower())
    route = (
        root.path[: root.path.find(_ARTIFACTS_ROUTE) + len(_ARTIFACTS_ROUTE)] if _ARTIFACTS_ROUTE in root.path else "/"
    )
    return bool(here.netloc) and same_host and here.path.startswith(route)


def destination_repository() -> ArtifactRepository:
    """Return the repository in which this server keeps the artifacts it serves (``--artifacts-destination``)."""
    return cast("ArtifactRepository", _private(_SERVER_HANDLERS, "_get_artifact_repo_mlflow_artifacts")())


def destination_path(location: str) -> str:
    """Map a proxied location to its path in :func:`destination_repository`, inside the workspace of the request."""
    path = _private(_SERVER_HANDLERS, "_get_proxied_run_artifact_destination_path")(location)
    if hasattr(sys.modules[_SERVER_HANDLERS], "_get_workspace_scoped_repo_path_if_enabled"):  # since MLflow 3.9
        path = _private(_SERVER_HANDLERS, "_get_workspace_scoped_repo_path_if_enabled")(path)
    return str(path)


def repository_of(location: str) -> ArtifactRepository:
    """Return the repository at a stored location, refusing hosts the server may not reach where MLflow knows such a rule."""
    if in_server() and hasattr(sys.modules[_SERVER_HANDLERS], "_get_artifact_repository_for_uri"):
        name, module = "_get_artifact_repository_for_uri", _SERVER_HANDLERS
    else:
        name, module = "get_artifact_repository", "mlflow.store.artifact.artifact_repository_registry"
    return cast("ArtifactRepository", _private(module, name)(location))


def parse_model_uri(uri: str) -> Any:
    """Parse ``models:/…`` as MLflow does: ``model_id``, ``name``, ``version``, ``stage``, ``alias``."""
    return _private("mlflow.store.artifact.utils.models", "_parse_model_uri")(uri)


def open_registry(client: MlflowClient) -> None:
    """Open the registry store of a client, which by itself waits for the first question."""
    client._get_registry_client()  # type: ignore[no-untyped-call]


def latest_versions(client: MlflowClient, name: str, stage: str | None) -> list[ModelVersion]:
    """Return the newest version of a stage (or of each stage) without the client's notice that stages are deprecated."""
    registry_client = client._get_registry_client()  # type: ignore[no-untyped-call]
    return list(registry_client.get_latest_versions(name, None if stage is None else [stage]))


def transition_stage(client: MlflowClient, name: str, version: str, stage: str) -> ModelVersion:
    """Move a version to a stage without the client's notice that stages are deprecated."""
    registry_client = client._get_registry_client()  # type: ignore[no-untyped-call]
    moved: ModelVersion = registry_client.transition_model_version_stage(name, version, stage, False)
    return moved
