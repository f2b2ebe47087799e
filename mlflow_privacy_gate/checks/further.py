"""What a check measures beside the test itself: a claim of differential privacy held against the attacks, and mitigations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.checks.claiming import large_delta, privacy_budget
from mlflow_privacy_gate.checks.suggesting import Subject, suggest
from mlflow_privacy_gate.policy.margin import exceeds

if TYPE_CHECKING:
    from mlflow_privacy_gate.checks.measuring import Extent, Measurement, Progress
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.policy import Policy
    from mlflow_privacy_gate.splits._interface import Splits


def measure_further(
    measured: Measurement, model: LoadedModel, splits: Splits, policy: Policy, extent: Extent, progress: Progress
) -> Measurement:
    """Add to a measurement what ``extent`` asks for beside it; the test's own numbers stay as they are."""
    seed = policy.attacks.seed
    if extent.claim is not None:
        budget, notes = privacy_budget(extent.claim, measured.scored, seed=seed)
        notes = (*notes, *large_delta(extent.claim, len(splits.members.frame)))
        measured = replace(measured, privacy_budget=budget, limitations=(*measured.limitations, *notes))
    if extent.suggest_over is not None and exceeds(_worst_auc(measured), extent.suggest_over):
        decisive = tuple(name for name in measured.gating if name in measured.scored)
        subject = Subject(model, measured.pool, splits, decisive, extent.suggest_over, seed)
        measured = replace(measured, mitigations=suggest(subject, progress=progress))
    return measured


def _worst_auc(measured: Measurement) -> float:
    scored = [measured.scored[name] for name in measured.gating if name in measured.scored]
    return max((stats.attack_auc(one.members, one.non_members) for one in scored), default=0.0)
