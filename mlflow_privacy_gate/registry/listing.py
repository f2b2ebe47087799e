"""Everything a registry holds, with what MLflow's search leaves out: aliases, and models that carry a prompt's tag."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.resolution import PROMPT_SOURCES, no_such_model
from mlflow_privacy_gate.registry.translation import asking

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

_PAGE = 200
_DRESSED_AS_PROMPT = "tags.`mlflow.prompt.is_prompt` = 'true'"


def every_version(client: MlflowClient, where: str, name: str | None = None) -> Iterator[ResolvedModel]:
    """Give every version of every registered model, or of the one named, by name and newest first; prompts are left out."""
    for model_name in [name] if name is not None else _model_names(client, where):
        holder = _holder(client, where, model_name)
        aliases: dict[str, list[str]] = {}
        for alias, version in holder.aliases.items():
            aliases.setdefault(str(version), []).append(alias)
        for found in _versions(client, where, model_name):
            number = str(found.version)
            if found.source in PROMPT_SOURCES:
                continue
            location = asking(where, partial(client.get_model_version_download_uri, model_name, number))
            yield ResolvedModel(
                uri=f"models:/{model_name}/{number}",
                artifact_uri=location,
                name=model_name,
                version=number,
                model_id=found.model_id or None,
                run_id=found.run_id or None,
                source=found.source,
                description=found.description or None,
                tags=dict(found.tags),
                stage=found.current_stage,
                aliases=tuple(sorted(aliases.get(number, []))),
                workspace=mlflow_private.workspace_of(found),
            )


def _holder(client: MlflowClient, where: str, name: str) -> RegisteredModel:
    return asking(
        where, lambda: client.get_registered_model(name), missing=lambda _: no_such_model(name, client, where)
    )


def _model_names(client: MlflowClient, where: str) -> list[str]:
    """Name every registered model; asked twice, because MLflow's search leaves out whatever carries a prompt's tag."""
    names: set[str] = set()
    for filter_string in (None, _DRESSED_AS_PROMPT):
        token: str | None = None
        while True:
            search = partial(client.search_registered_models, filter_string, max_results=_PAGE, page_token=token)
            page = asking(where, search)
            names.update(model.name for model in page)
            if not page.token:
                break
            token = page.token
    return sorted(names)


def _versions(client: MlflowClient, where: str, name: str) -> Iterator[ModelVersion]:
    """Give a model's versions by number, newest first; search would leave all of them out where one carries a prompt's tag."""
    newest = asking(where, partial(mlflow_private.latest_versions, client, name, None))
    for number in range(max((int(version.version) for version in newest), default=0), 0, -1):
        try:
            yield asking(where, partial(client.get_model_version, name, str(number)))
        except UsageError:  # the registry looked and found none: deleted
            continue
