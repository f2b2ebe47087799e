"""``log_splits``: recording, after training, which rows were members and which were not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.rowset import rowset_digest, shared_rows
from mlflow_privacy_gate.splits.columns import column_kinds
from mlflow_privacy_gate.splits.contexts import MEMBERS, NON_MEMBERS
from mlflow_privacy_gate.splits.locations import local_path, objection
from mlflow_privacy_gate.splits.manifest import SCHEMA, LoggedSplit, SplitManifest
from mlflow_privacy_gate.splits.recording import Recording, recording_for, with_mlflow_record
from mlflow_privacy_gate.splits.stated_training import (
    MASKS_FILE,
    LoggedReferences,
    NamedModel,
    function_name,
    mask_table,
    masks_sha256,
    named_models,
)
from mlflow_privacy_gate.splits.tables import as_frame

_CONTEXTS = {"members": "training", "non_members": "testing"}


def log_splits(
    members: object,
    non_members: object,
    *,
    target: str,
    members_source: str | Path | None = None,
    non_members_source: str | Path | None = None,
    store_rows: bool = False,
    group: str | None = None,
    run_id: str | None = None,
    model_id: str | None = None,
    training_function: str | Callable[..., Any] | None = None,
    training_seed: int | None = None,
    reference_models: Sequence[Mapping[str, object]] | None = None,
) -> SplitManifest:
    """Record the rows a model was trained on and held-out rows of the same origin, so that the model can be tested for leaks.

    Parameters
    ----------
    members, non_members
        pandas, polars or Arrow tables with the same columns: features and label, one row each.
    target
        The label's column.
    members_source, non_members_source
        Paths or URIs from which exactly these rows can be loaded again (csv, tsv, parquet, jsonl, feather, npz; columns beyond
        these are ignored). Only the reference is stored, never a row.
    store_rows
        Store the rows of each side that has no source, as parquet beside the run. Whoever may read the run's artifacts may then
        read them; they are personal data where the training data is.
    group
        A column (person, household, site) no value of which should stand on both sides.
    run_id, model_id
        Default to the active run, and to the one model that it logged.
    training_function, training_seed
        How to train such a model anew, for models that cannot be cloned: ``package.module:function`` (or the function), called as
        ``function(features, labels, seed)`` for a fitted model, and the seed of this one. A check runs it only where the policy admits
        ``training_function`` among ``attacks.reference_origins``.
    reference_models
        Models of the same recipe that were trained before on random parts of these rows, two or more, as
        ``{"uri": "models:/…", "trained_on": mask}``; the mask (rows,) says which rows, all members first. Only the masks are stored.

    Returns
    -------
    SplitManifest
        What was recorded, as it stands in ``privacy_gate/splits.json`` of the run.

    Raises
    ------
    UsageError
        Where the sides cannot be meant (other columns, no rows, the same rows twice), could not be loaded again, or are others than
        the run records for this model already: a check could not tell which of them it was trained on.
    CouldNotLook
        Where the tracking server does not answer.
    """
    frames = _checked(as_frame(members, what="members"), as_frame(non_members, what="non_members"), target, group)
    sources = _sources(members_source, non_members_source, store_rows)
    function = None if training_function is None else function_name(training_function)
    if function is None and training_seed is not None:
        raise UsageError("training_seed: there is no training_function that it would be the seed of")
    named = named_models(reference_models, rows=sum(map(len, frames.values()))) if reference_models else ()
    with recording_for(run_id, model_id) as recording:
        logged = _recorded(frames, sources, recording)
        manifest = SplitManifest(
            schema=SCHEMA,
            target=target,
            members=logged["members"],
            non_members=logged["non_members"],
            group=group,
            model_id=recording.model_id,
            training_function=function,
            training_seed=training_seed,
            reference_models=_with_masks(recording, frames, named) if named else None,
        )
        # Last, so that a manifest is only ever found beside everything that it names.
        recording.store_text("splits.json", manifest.to_json())
    return manifest


def _recorded(
    frames: Mapping[str, pd.DataFrame], sources: Mapping[str, str | None], recording: Recording
) -> dict[str, LoggedSplit]:
    """Store the rows that have no source and record both sides as dataset inputs of the run; nothing is written where that cannot be."""
    located = {side: source or _stored(side, recording) for side, source in sources.items()}
    sides = {side: _logged(frame, located[side]) for side, frame in frames.items()}
    if sides["members"].digest == sides["non_members"].digest:
        raise UsageError(
            "members and non_members hold the same rows; non-members are rows the model was not trained on"
        )
    inputs = {
        side: recording.dataset_input(frame, name=side, source=located[side], context=_CONTEXTS[side])
        for side, frame in frames.items()
    }
    for side, ranks in (("members", MEMBERS), ("non_members", NON_MEMBERS)):
        recording.refuse_others(inputs[side], ranks, side=side)
    for side in (side for side, source in sources.items() if source is None):
        recording.store_frame(f"{side}.parquet", frames[side])
    recording.record_inputs(list(inputs.values()))
    return {side: with_mlflow_record(sides[side], inputs[side]) for side in sides}


def _with_masks(
    recording: Recording, frames: Mapping[str, pd.DataFrame], named: Sequence[NamedModel]
) -> LoggedReferences:
    """Store which rows each earlier model was trained on, in the order of the rows' content, and say where."""
    shared = shared_rows(frames["members"], frames["non_members"])
    table = mask_table(named, np.concatenate((shared.member_order, shared.non_member_order + len(frames["members"]))))
    recording.store_frame(MASKS_FILE, table)
    return LoggedReferences(
        uris=[model.uri for model in named],
        masks=f"runs:/{recording.run_id}/{recording.folder}/{MASKS_FILE}",
        masks_sha256=masks_sha256(table.to_numpy(dtype=np.bool_).T),
    )


def _checked(
    members: pd.DataFrame, non_members: pd.DataFrame, target: str, group: str | None
) -> dict[str, pd.DataFrame]:
    for role, frame, other in (("members", members, non_members), ("non_members", non_members, members)):
        lacking = [name for name in other.columns if name not in frame.columns]
        if lacking:
            raise UsageError(
                f"{role} lack columns that the other side has: {', '.join(lacking[:5])}; log the same columns"
            )
        if frame.empty:
            raise UsageError(f"{role}: no rows; a test needs rows on both sides")
    for word, column in (("target", target), ("group", group)):
        if column is not None and column not in members.columns:
            raise UsageError(f"{word}: {column!r} is not a column; the splits have {', '.join(members.columns[:8])}")
    return {"members": members, "non_members": non_members[list(members.columns)]}


def _sources(members: str | Path | None, non_members: str | Path | None, store_rows: bool) -> dict[str, str | None]:
    given = {"members": members, "non_members": non_members}
    if not store_rows:
        for side, source in given.items():
            if source is None:
                raise UsageError(
                    f"{side}: where can these rows be loaded again? Pass {side}_source= (a path or URI; only the reference is stored), "
                    "or store_rows=True to store the rows themselves beside the run (they are personal data where the training data is)"
                )
    elif None not in given.values():
        raise UsageError(
            "store_rows=True stores the sides that have no source, and both have one; leave out the one or the other"
        )
    sources = {side: None if source is None else _reference(side, str(source)) for side, source in given.items()}
    if sources["members"] is not None and sources["members"] == sources["non_members"]:
        raise UsageError(
            f"both sides name {sources['members']!r}, which would give the same rows twice; name one file for each side, "
            "or use store_rows=True"
        )
    return sources


def _reference(side: str, source: str) -> str:
    refused = objection(source)
    if refused:
        raise UsageError(f"{side}_source {source!r}: {refused}; name a file, or use store_rows=True")
    path = local_path(source)
    # A relative path would be looked up wherever a check happens to run.
    return source if path is None else str(path.resolve())


def _stored(side: str, recording: Recording) -> str:
    return f"runs:/{recording.run_id}/{recording.folder}/{side}.parquet"


def _logged(frame: pd.DataFrame, source: str) -> LoggedSplit:
    return LoggedSplit(source=source, rows=len(frame), digest=rowset_digest(frame), columns=column_kinds(frame))
