"""Resolving a model URI once: to name, version, logged model, run and the place where its bytes lie.

``models:/n/1``, ``models:/n@alias``, ``models:/n/Production``, ``models:/n/latest``, ``models:/m-…`` and ``runs:/…/model`` all end as
one ResolvedModel; whatever moves afterwards (an alias, a stage, a new version) is not asked for again.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.errors import CouldNotLook, PrivacyGateError, UsageError
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.locations import follow
from mlflow_privacy_gate.registry.translation import asking, is_missing

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion

URI_FORMS = "models:/NAME/VERSION, models:/NAME@ALIAS, models:/NAME/STAGE, models:/NAME/latest, models:/MODEL_ID or runs:/RUN_ID/NAME"

# A prompt shares the registry's tables; only its own immutable source says that it is one.
# MLflow's client and UI write the first word, its stores the second.
PROMPT_SOURCES = frozenset({"dummy-source", "prompt-template"})


@dataclass(frozen=True)
class Lineage:
    """The logged model and run behind a version; ``note`` says why where there is none."""

    model_id: str | None = None
    run_id: str | None = None
    note: str | None = None


def resolve(model_uri: str, client: MlflowClient, where: str) -> ResolvedModel:
    """Resolve any model URI once.

    UsageError for a URI that means nothing, or that names what the store asked does not hold; CouldNotLook where no answer was to be
    had, or where that store holds no registered model at all. Both name the store, for a wrong one looks exactly like a missing model.
    """
    scheme = urlsplit(model_uri).scheme
    if scheme == "runs":
        return _of_run(model_uri, client, where)
    if scheme != "models":
        raise UsageError(f"{model_uri!r} is no model URI: expected {URI_FORMS}")
    try:
        parsed = mlflow_private.parse_model_uri(model_uri)
    except MlflowException as exc:
        raise UsageError(f"{model_uri!r} is no model URI: expected {URI_FORMS}") from exc
    if parsed.model_id is not None:
        return _of_logged_model(model_uri, parsed.model_id, client, where)
    return _of_version(model_uri, _version(model_uri, parsed, client, where), client, where)


def _version(model_uri: str, parsed: object, client: MlflowClient, where: str) -> ModelVersion:
    """Ask for the one version a ``models:/name…`` URI names now."""
    name, version, stage, alias = (getattr(parsed, part) for part in ("name", "version", "stage", "alias"))
    asking(where, lambda: client.get_registered_model(name), missing=lambda _: no_such_model(name, client, where))

    def nothing(what: str) -> PrivacyGateError:
        return UsageError(f"{model_uri}: {where} holds registered model {name!r}, but {what}")

    if version is not None:
        return asking(
            where, lambda: client.get_model_version(name, version), missing=lambda _: nothing(f"no version {version}")
        )
    if alias is not None:
        found = asking(where, lambda: _by_alias(client, name, alias))
        if found is None:
            raise nothing(f"no alias {alias!r}")
        return found
    latest = asking(where, partial(mlflow_private.latest_versions, client, name, stage))
    if not latest:
        raise nothing("no versions" if stage is None else f"no version in stage {stage!r}")
    newest = max(latest, key=lambda candidate: int(candidate.version))
    return asking(where, lambda: client.get_model_version(name, newest.version))


def _by_alias(client: MlflowClient, name: str, alias: str) -> ModelVersion | None:
    try:
        return client.get_model_version_by_alias(name, alias)
    except MlflowException as exc:
        if is_missing(exc) or (exc.error_code == "INVALID_PARAMETER_VALUE" and "not found" in exc.message):
            return None
        raise


def no_such_model(name: str, client: MlflowClient, where: str) -> UsageError | CouldNotLook:
    """Say which store was asked, and whether it holds anything at all.

    UsageError where it does; CouldNotLook where it does not, for then it is most likely the wrong store.
    """
    holds_any = asking(where, lambda: bool(client.search_registered_models(max_results=1)))
    what = "it holds other registered models" if holds_any else "it holds no registered model at all"
    error = UsageError if holds_any else CouldNotLook
    return error(
        f"no registered model {name!r} in {where}; {what}. "
        "Check --tracking-uri / --registry-uri (MLFLOW_TRACKING_URI, MLFLOW_REGISTRY_URI) and the name"
    )


def _of_version(model_uri: str, found: ModelVersion, client: MlflowClient, where: str) -> ResolvedModel:
    if found.source in PROMPT_SOURCES:
        raise UsageError(f"{model_uri}: version {found.version} of {found.name!r} is a prompt, not a model")
    name, version = found.name, str(found.version)
    location = asking(where, lambda: client.get_model_version_download_uri(name, version))
    lineage = _lineage(found, client, where)
    return ResolvedModel(
        uri=model_uri,
        artifact_uri=_artifact_location(location, client, where),
        name=name,
        version=version,
        model_id=lineage.model_id,
        run_id=lineage.run_id,
        source=found.source,
        description=found.description or None,
        tags=dict(found.tags),
        stage=found.current_stage,
        aliases=tuple(found.aliases),
        lineage_note=lineage.note,
        workspace=mlflow_private.workspace_of(found),
    )


def _artifact_location(location: str, client: MlflowClient, where: str) -> str:
    """Follow ``models:/…`` locations (older servers hand them out) to the place itself."""
    return follow(
        location,
        version_location=lambda name, version: asking(
            where, lambda: client.get_model_version_download_uri(name, version)
        ),
        logged_model_location=lambda model_id: _logged_model(model_id, client, where).artifact_location,
    )


def _lineage(found: ModelVersion, client: MlflowClient, where: str) -> Lineage:
    """Follow ``source`` through copies to the logged model and its run; what cannot be found is said, never guessed."""
    model_id, run_id, source = found.model_id or None, found.run_id or None, found.source or ""
    seen: set[str] = set()
    while model_id is None and urlsplit(source).scheme == "models" and source not in seen:
        seen.add(source)
        try:
            parsed = mlflow_private.parse_model_uri(source)
            model_id = parsed.model_id
            if model_id is None:
                copied = client.get_model_version(parsed.name, parsed.version)
                model_id, run_id, source = copied.model_id or None, run_id or copied.run_id or None, copied.source or ""
        except MlflowException as exc:
            if not is_missing(exc):
                raise CouldNotLook(f"could not ask {where}: {exc.message}") from exc
            return _with_live_run(
                Lineage(None, run_id, f"the version it was copied from ({source}) is gone"), client, where
            )
    logged = _logged_model_or_none(model_id, client, where) if model_id is not None else None
    if logged is not None and logged.source_run_id:
        run_id = logged.source_run_id  # whoever registers a version may name any run beside it
    return _with_live_run(Lineage(model_id, run_id), client, where)


def _with_live_run(lineage: Lineage, client: MlflowClient, where: str) -> Lineage:
    """Drop a run that is gone: nothing can be read from it or written to it."""
    if not lineage.run_id:
        return Lineage(lineage.model_id, None, lineage.note or "no run is recorded for this model")
    run_id = lineage.run_id
    try:
        run = client.get_run(run_id)
    except MlflowException as exc:
        if is_missing(exc):
            return Lineage(lineage.model_id, None, f"its run {run_id} is not in {where}")
        raise CouldNotLook(f"could not ask {where}: {exc.message}") from exc
    if run.info.lifecycle_stage == "deleted":
        return Lineage(lineage.model_id, None, f"its run {run_id} was deleted")
    return lineage


def _logged_model(model_id: str, client: MlflowClient, where: str) -> LoggedModel:
    return asking(
        where,
        lambda: client.get_logged_model(model_id),
        missing=lambda _: UsageError(
            f"no logged model {model_id!r} in {where}. Check --tracking-uri (MLFLOW_TRACKING_URI)"
        ),
    )


def _logged_model_or_none(model_id: str, client: MlflowClient, where: str) -> LoggedModel | None:
    try:
        return client.get_logged_model(model_id)
    except MlflowException as exc:
        if is_missing(exc):
            return None
        raise CouldNotLook(f"could not ask {where}: {exc.message}") from exc


def _of_logged_model(model_uri: str, model_id: str, client: MlflowClient, where: str) -> ResolvedModel:
    logged = _logged_model(model_id, client, where)
    lineage = _with_live_run(Lineage(model_id, logged.source_run_id or None), client, where)
    return ResolvedModel(
        uri=model_uri,
        artifact_uri=logged.artifact_location,
        model_id=model_id,
        run_id=lineage.run_id,
        source=model_uri,
        lineage_note=lineage.note,
    )


def _of_run(model_uri: str, client: MlflowClient, where: str) -> ResolvedModel:
    """Resolve ``runs:/RUN_ID/NAME``: the run's own artifact folder where it holds a model, else the logged model of that name."""
    run_id, _, path = urlsplit(model_uri).path.lstrip("/").partition("/")
    if not run_id or not path or urlsplit(model_uri).netloc:
        raise UsageError(f"{model_uri!r} is no model URI: expected {URI_FORMS}")
    run = asking(
        where,
        lambda: client.get_run(run_id),
        missing=lambda _: UsageError(f"no run {run_id!r} in {where}. Check --tracking-uri (MLFLOW_TRACKING_URI)"),
    )
    if model := _logged_by_run(run.info.experiment_id, run_id, path, client, where):
        return _of_logged_model(model_uri, model, client, where)
    root = f"{run.info.artifact_uri.rstrip('/')}/{path}"
    listed = asking(where, lambda: client.list_artifacts(run_id, path))
    if "MLmodel" not in {posixpath.basename(item.path) for item in listed}:
        raise UsageError(f"{model_uri}: run {run_id} in {where} has no model named {path!r}")
    return ResolvedModel(uri=model_uri, artifact_uri=root, run_id=run_id, source=model_uri)


def _logged_by_run(experiment_id: str, run_id: str, name: str, client: MlflowClient, where: str) -> str | None:
    """Find the newest logged model of that name among a run's own."""
    token: str | None = None
    while True:
        page = asking(
            where,
            partial(
                client.search_logged_models,
                experiment_ids=[experiment_id],
                filter_string=f"source_run_id = '{run_id}'",
                page_token=token,
            ),
        )
        named = [model for model in page if model.name == name]
        if named:
            return str(max(named, key=lambda model: model.creation_timestamp).model_id)
        if not page.token:
            return None
        token = page.token
