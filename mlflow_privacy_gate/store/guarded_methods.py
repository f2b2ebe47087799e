"""The registry methods that can make a version production, each asking the guard before the inner store writes.

Mixed in before the inner store's own class. Everything that is not a promotion goes straight through. Prompts' aliases arrive here too
(``set_prompt_alias`` sets an ordinary alias) and are told apart by the version's own source.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from mlflow.entities.model_registry.model_version_stages import get_canonical_stage

from mlflow_privacy_gate.gate import Route
from mlflow_privacy_gate.store.promotion_guard import Promotion
from mlflow_privacy_gate.store.routes import IntoName, ToAlias, ToStage
from mlflow_privacy_gate.store.subjects import (
    copied_version,
    every_version,
    evidence_among,
    existing_version,
    new_version,
    stored_name,
)
from mlflow_privacy_gate.vocabulary import TAG_PREFIX

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

    from mlflow_privacy_gate.store._interface import RegistryStore
    from mlflow_privacy_gate.store.promotion_guard import PromotionGuard
    from mlflow_privacy_gate.store.subjects import Tag
else:
    RegistryStore = object  # the inner store's own class follows this one


class GuardedMethods(RegistryStore):
    """The promoting methods of a registry store; ``_privacy_gate`` decides, ``super()`` writes."""

    _privacy_gate: ClassVar[PromotionGuard]

    def transition_model_version_stage(
        self, name: str, version: Any, stage: str, archive_existing_versions: bool
    ) -> ModelVersion:
        """Move a version to a stage; a promotion when the stage is guarded."""
        inner: Any = super()
        promotion: Promotion[ModelVersion] = Promotion(
            ToStage(name, get_canonical_stage(stage)),  # type: ignore[no-untyped-call]
            look=partial(existing_version, self, name, version),
            version_location=self.get_model_version_download_uri,
            write=partial(inner.transition_model_version_stage, name, version, stage, archive_existing_versions),
            version=str(version),
        )
        return self._privacy_gate.promote(promotion)

    def set_registered_model_alias(self, name: str, alias: str, version: Any) -> None:
        """Point an alias to a version; a promotion when the alias is guarded."""
        inner: Any = super()
        self._privacy_gate.promote(
            Promotion(
                ToAlias(name, alias),
                look=partial(existing_version, self, name, version),
                version_location=self.get_model_version_download_uri,
                write=partial(inner.set_registered_model_alias, name, alias, version),
                version=str(version),
            )
        )

    def create_model_version(self, name: str, source: str, *args: Any, **kwargs: Any) -> ModelVersion:
        """Create a version; a promotion when the registered model's name is guarded. A version that is refused is not left behind."""
        inner: Any = super()
        given = inspect.signature(inner.create_model_version).bind(name, source, *args, **kwargs).arguments
        promotion: Promotion[ModelVersion] = Promotion(
            IntoName(name, name, Route.CREATE, partial(stored_name, self, name)),
            look=partial(new_version, name, source, given.get("tags")),
            version_location=self.get_model_version_download_uri,
            write=partial(inner.create_model_version, name, source, *args, **kwargs),
            written=lambda created: existing_version(self, created.name, created.version),
            undo=lambda created: self.delete_model_version(created.name, created.version),
            evidence=evidence_among((tag.key, tag.value) for tag in given.get("tags") or ()),
        )
        return self._privacy_gate.promote(promotion)

    def copy_model_version(self, src_mv: ModelVersion, dst_name: str) -> ModelVersion:
        """Copy a version. What the inner store creates on the way, it creates through this class; it is judged once, here."""
        inner: Any = super()
        promotion: Promotion[ModelVersion] = Promotion(
            IntoName(src_mv.name, dst_name, Route.COPY, partial(stored_name, self, dst_name)),
            look=partial(copied_version, self, src_mv, dst_name),
            version_location=self.get_model_version_download_uri,
            write=partial(inner.copy_model_version, src_mv, dst_name),
            written=lambda created: existing_version(self, created.name, created.version),
            undo=lambda created: self.delete_model_version(created.name, created.version),
        )
        return self._privacy_gate.promote(promotion)

    def rename_registered_model(self, name: str, new_name: str) -> RegisteredModel:
        """Rename a model; a promotion of every one of its versions when the new name is guarded."""
        inner: Any = super()
        promotion: Promotion[RegisteredModel] = Promotion(
            IntoName(name, new_name, Route.RENAME, partial(stored_name, self, new_name)),
            look=partial(every_version, self, name),
            version_location=self.get_model_version_download_uri,
            write=partial(inner.rename_registered_model, name, new_name),
        )
        return self._privacy_gate.promote(promotion)

    def set_model_version_tag(self, name: str, version: Any, tag: Tag) -> None:
        """Set a tag; one of the gate's own only between promotions, and evidence that is believed goes into the ledger with it."""
        inner: Any = super()
        write = partial(inner.set_model_version_tag, name, version, tag)
        if not tag.key.startswith(TAG_PREFIX):
            write()
        elif evidence := evidence_among([(tag.key, tag.value)]):
            self._privacy_gate.write_evidence(name, str(version), evidence, write)
        else:
            self._privacy_gate.write_in_turn(name, str(version), write)

    def delete_model_version_tag(self, name: str, version: Any, key: str) -> None:
        """Delete a tag; one of the gate's own only between promotions. The ledger forgets nothing by it."""
        inner: Any = super()
        write = partial(inner.delete_model_version_tag, name, version, key)
        if key.startswith(TAG_PREFIX):
            self._privacy_gate.write_in_turn(name, str(version), write)
        else:
            write()
