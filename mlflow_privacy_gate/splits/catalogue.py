"""The ways of finding a model's splits, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_privacy_gate.errors import SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.splits._interface import Splits, SplitSource
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.caller import CallerSource
from mlflow_privacy_gate.splits.dataset_inputs import DatasetInputsSource
from mlflow_privacy_gate.splits.manifest_source import ManifestSource


def split_sources(
    access: SourceAccess,
    *,
    members: object = None,
    non_members: object = None,
    target: str | None = None,
    input_columns: Sequence[str] | None = None,
) -> tuple[SplitSource, ...]:
    """Return the sources to ask: the caller's splits alone where given, else the manifest, then the run's dataset inputs.

    ``members``, ``non_members``: tables, paths or URIs, both or neither (UsageError). ``target``: the label's column if the caller
    says it. ``input_columns``: the columns the model takes, where known; they tell the label apart.
    """
    if (members is None) != (non_members is None):
        given, lacking = ("members", "non_members") if non_members is None else ("non_members", "members")
        raise UsageError(f"{given} were handed in without {lacking}: a test needs both sides; hand in both, or neither")
    if members is not None:
        return (CallerSource(members, non_members, access, target=target, input_columns=input_columns),)
    return (
        ManifestSource(access, target=target, input_columns=input_columns),
        DatasetInputsSource(access, target=target, input_columns=input_columns),
    )


def find_splits(sources: Sequence[SplitSource], model: ResolvedModel) -> Splits:
    """Return what the first source that knows the model's splits gives; SplitsUnavailable where none does."""
    for source in sources:
        splits = source.find(model)
        if splits is not None:
            return splits
    way_out = "hand the splits in with --members and --non-members"
    if model.run_id is None:
        why = f" ({model.lineage_note})" if model.lineage_note else ""
        raise SplitsUnavailable(f"{model.uri} has no lineage: no run says what it was trained on{why}; {way_out}")
    raise SplitsUnavailable(
        f"run {model.run_id} of {model.uri} records no splits; log them with `log_splits(…, run_id={model.run_id!r})`, or {way_out}"
    )
