"""Splits from the manifest that ``log_splits`` left beside the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.splits._interface import LoggedArtifacts, ReferenceModels, Split, Splits
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.contexts import TUNING, normalised
from mlflow_privacy_gate.splits.loading import LoadedSide, load_logged
from mlflow_privacy_gate.splits.manifest import LoggedSplit, SplitManifest, folder_of, manifest_sha256
from mlflow_privacy_gate.splits.run_record import contradiction, refuse_unowned
from mlflow_privacy_gate.splits.stated_training import stated_function
from mlflow_privacy_gate.splits.target import target_column
from mlflow_privacy_gate.vocabulary import ReasonCode, SplitOrigin


class ManifestSource:
    """Finds splits by their manifest and loads them from the sources it names."""

    origin = SplitOrigin.MANIFEST

    def __init__(
        self, access: SourceAccess, *, target: str | None = None, input_columns: Sequence[str] | None = None
    ) -> None:
        self._access = access
        self._target = target
        self._input_columns = input_columns

    def find(self, model: ResolvedModel) -> Splits | None:
        """Give the splits as logged, None where the run has no manifest; SplitsUnavailable where a source cannot be loaded."""
        found = read_manifest(self._access.artifacts, model)
        if found is None:
            return None
        manifest, sha256 = found
        target, notes = target_column(
            list(manifest.members.columns),
            asked=self._target,
            logged=manifest.target,
            input_columns=self._input_columns,
        )
        members = load_logged(manifest.members, self._access, role="members")
        non_members = load_logged(manifest.non_members, self._access, role="non-members")
        return Splits(
            members=logged_side(members, manifest.members),
            non_members=logged_side(non_members, manifest.non_members),
            target=target,
            origin=self.origin,
            group=manifest.group,
            manifest_sha256=sha256,
            **as_logged(self._access.artifacts, model, manifest, members, non_members),
            used_for_tuning=used_for_tuning(self._access.artifacts, model, manifest),
            notes=notes,
            training_function=stated_function(manifest.training_function, manifest.training_seed),
            reference_models=stated_models(manifest, self._access),
        )


def read_manifest(artifacts: LoggedArtifacts, model: ResolvedModel) -> tuple[SplitManifest, str] | None:
    """Return the model's manifest and its sha256, or None; SplitsUnavailable where it is another model's, nobody's or unreadable."""
    for folder in dict.fromkeys((folder_of(model.model_id), folder_of(None))):
        path = f"{folder}/splits.json"
        text = artifacts.read_artifact(model, path)
        if text is None:
            continue
        manifest = SplitManifest.from_json(text, where=path)
        if manifest.model_id is None:
            refuse_unowned(artifacts, model, what=path)
        elif manifest.model_id != model.model_id:
            raise SplitsUnavailable(
                f"{path} of run {model.run_id} is for model {manifest.model_id}, not for {model.model_id or model.uri}; log this model's "
                f"splits with `log_splits(…, run_id={model.run_id!r}, model_id={model.model_id!r})`",
                code=ReasonCode.PG104,
            )
        return manifest, manifest_sha256(text)
    return None


def logged_side(loaded: LoadedSide, logged: LoggedSplit, *, source: str | None = None) -> Split:
    """Return a loaded side with what was logged of it."""
    return Split(
        frame=loaded.frame,
        digest=loaded.digest,
        source=source or logged.source,
        mlflow_name=logged.mlflow_name,
        mlflow_digest=logged.mlflow_digest,
    )


class AsLogged(TypedDict):
    """Whether splits are the logged ones, and how they differ."""

    as_logged: bool
    as_logged_note: str | None


def as_logged(
    artifacts: LoggedArtifacts,
    model: ResolvedModel,
    manifest: SplitManifest,
    members: LoadedSide,
    non_members: LoadedSide,
) -> AsLogged:
    """Hold the rows against the manifest, and the manifest against the run's own record of its datasets."""
    inputs = artifacts.dataset_inputs(model)
    sides = (("members", members, manifest.members), ("non-members", non_members, manifest.non_members))
    found = [
        difference
        for role, loaded, logged in sides
        for difference in (
            loaded.difference,
            contradiction(inputs, model, role=role, rows=logged.rows, mlflow_digest=logged.mlflow_digest),
        )
        if difference
    ]
    return {"as_logged": not found, "as_logged_note": "; ".join(found) or None}


def stated_models(manifest: SplitManifest, access: SourceAccess) -> ReferenceModels | None:
    """Give the earlier models that a manifest names as a check takes them, None where it names none."""
    named, rows = manifest.reference_models, manifest.members.rows + manifest.non_members.rows
    return None if named is None else named.models(access, rows=rows)


def used_for_tuning(artifacts: LoggedArtifacts, model: ResolvedModel, manifest: SplitManifest) -> bool | None:
    """Return True where the run also records the non-members' very data as a validation set, None where nothing says so."""
    digest = manifest.non_members.mlflow_digest
    recorded = artifacts.dataset_inputs(model)
    return any(one.digest == digest and normalised(one.context) in TUNING for one in recorded) or None
