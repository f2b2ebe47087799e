"""Turning what was measured of splits and test into facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.evidence.facts import DataFacts, SplitFacts, ValidityFacts
from mlflow_privacy_gate.registry.stores import said_without_credentials
from mlflow_privacy_gate.vocabulary import Membership

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.blind import BlindBaseline
    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.checks.battery import Battery
    from mlflow_privacy_gate.checks.observing import AskedAgain, Sides
    from mlflow_privacy_gate.checks.referring import Referred
    from mlflow_privacy_gate.checks.rows import TestedRows
    from mlflow_privacy_gate.splits._interface import Split, Splits


def data_facts(splits: Splits, rows: TestedRows, sides: Sides) -> tuple[DataFacts, ...]:
    """State how many rows each side had, how many were used, and their digest."""
    return (
        _side("members", splits.members, sides.members, rows.members),
        _side("non_members", splits.non_members, sides.non_members, rows.non_members),
    )


def split_facts(splits: Splits, rows: TestedRows, referred: Referred) -> SplitFacts:
    """State where the splits came from and what they share."""
    return SplitFacts(
        origin=splits.origin,
        membership=Membership.REPRODUCED if referred.reproduced else Membership.DECLARED,
        manifest_sha256=splits.manifest_sha256,
        as_logged=splits.as_logged,
        as_logged_note=splits.as_logged_note,
        group=splits.group,
        group_overlap=rows.group_overlap,
        shared_rows=rows.shared,
        shared_rows_expected=rows.shared_expected,
        used_for_tuning=splits.used_for_tuning,
    )


def validity_facts(
    sides: Sides,
    blind: BlindBaseline | None,
    battery: Battery,
    again: AskedAgain,
    *,
    holds_training_rows: str | None,
) -> ValidityFacts:
    """State what was measured of the test itself."""
    # Ties are a fact of the model's answers: they are counted on the rule's own score, or on the first that there is.
    coarse = battery.scored.get("confidence") or next(iter(battery.scored.values()), None)
    return ValidityFacts(
        blind_auc=blind.auc if blind else None,
        blind_ci_low=blind.interval.low if blind else None,
        blind_columns=blind.column_names if blind and blind.interval.low > 0.5 else (),
        tie_share=stats.tie_share(coarse.members, coarse.non_members) if coarse else None,
        positive_control_auc=battery.referred.control_auc,
        positive_control_ci_low=battery.referred.control_ci_low,
        unstable_rows=again.differing,
        asked_again_rows=again.rows,
        smallest_detectable_auc=stats.smallest_detectable_auc(sides.members.n, sides.non_members.n),
        holds_training_rows=holds_training_rows,
    )


def _side(role: str, split: Split, said: Observations, frame: pd.DataFrame) -> DataFacts:
    return DataFacts(
        role=role,
        rows=len(split.frame),
        rows_used=len(frame) - said.unknown_labels,
        digest=split.digest,
        unknown_labels=said.unknown_labels,
        source=None if split.source is None else said_without_credentials(split.source),
        mlflow_name=split.mlflow_name,
        mlflow_digest=split.mlflow_digest,
    )
