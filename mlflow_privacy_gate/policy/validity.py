"""Whether the test itself can be relied on: findings PG101 to PG110, and PG403 beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlflow_privacy_gate.evidence.facts import DataFacts, Evidence
from mlflow_privacy_gate.policy.gating import deciding_attacks, needs_references
from mlflow_privacy_gate.policy.margin import exceeds
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.wording import number, plural
from mlflow_privacy_gate.stats import minimum_rows
from mlflow_privacy_gate.vocabulary import Effect, Finding, ReasonCode

UNKNOWN_LABELS_LIMIT = 0.01
TIES_LIMIT = 0.2
FEWEST_SHARED_ROWS = 3
# Answers made up at random on a share q of the rows hide at most q of attack AUC: here a fifth of what the default margin allows over 0.5.
UNSTABLE_LIMIT = 0.01


def validity(policy: Policy, evidence: Evidence, margin: float) -> Iterator[Finding]:
    """Find every reason for which the test says less than it seems to; ``margin`` is the one in force."""
    yield from _distinguishable(policy, evidence)
    yield from _shared(policy, evidence)
    yield from _as_logged(evidence)
    yield from _rows(policy, evidence, margin)
    yield from _scores(policy, evidence)
    yield from _stability(evidence)
    yield from _positive_control(evidence, margin)
    if evidence.splits.used_for_tuning:
        yield Finding(ReasonCode.PG107, "Tuning used the non-members, so the model may know something of them.")
    if evidence.validity.holds_training_rows:
        yield Finding(
            ReasonCode.PG403, f"The model's file itself holds training rows: {evidence.validity.holds_training_rows}."
        )


def _distinguishable(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    blind, limit = evidence.validity.blind_auc, policy.validity.max_blind_auc
    low = evidence.validity.blind_ci_low
    if blind is not None and exceeds(blind, limit) and (low is None or not low <= 0.5):
        columns = evidence.validity.blind_columns
        named = f"; most by {', '.join(columns)}" if columns else ""
        yield Finding(
            ReasonCode.PG101,
            f"Members and non-members differ without the model: a blind classifier tells them apart with AUC "
            f"{number(blind, against=limit)}, over {number(limit)}{named}. What the attacks measured may be that difference.",
            value=blind,
            limit=limit,
        )
    for side in evidence.data:
        if side.unknown_labels > UNKNOWN_LABELS_LIMIT * side.rows:
            yield Finding(
                ReasonCode.PG101,
                f"The model does not know the label of {side.unknown_labels:,} of {_side(side)}; "
                f"more than 1 % of a side makes the splits differ.",
                value=side.unknown_labels,
                limit=UNKNOWN_LABELS_LIMIT * side.rows,
            )


def _shared(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    splits, sides = evidence.splits, evidence.data
    if splits.group_overlap:
        yield Finding(
            ReasonCode.PG102,
            f"{plural(splits.group_overlap, 'group')} of column {splits.group} on both sides: "
            f"the model may know them without having seen the very rows.",
            value=splits.group_overlap,
            limit=0,
        )
    smaller = min((side.rows for side in sides), default=0)
    allowed = max(policy.validity.max_overlap * smaller, FEWEST_SHARED_ROWS, 2 * splits.shared_rows_expected)
    if not splits.shared_rows <= allowed:
        yield Finding(
            ReasonCode.PG103,
            f"{plural(splits.shared_rows, 'row')} on both sides, where {allowed:,.0f} would be explained: "
            f"such non-members were trained on, and hide a leak.",
            value=splits.shared_rows,
            limit=allowed,
        )
    members, non_members = evidence.side("members"), evidence.side("non_members")
    if members is not None and non_members is not None and members.digest == non_members.digest:
        yield Finding(ReasonCode.PG103, "Members and non-members are the same rows (equal digests).")


def _as_logged(evidence: Evidence) -> Iterator[Finding]:
    if evidence.splits.as_logged is False:
        note = evidence.splits.as_logged_note or "their digests, rows or columns differ"
        yield Finding(ReasonCode.PG104, f"The splits are not the ones that were logged with the model: {note}.")


def _rows(policy: Policy, evidence: Evidence, margin: float) -> Iterator[Finding]:
    needed = minimum_rows(margin, policy.validity.min_rows_per_side)
    for side in evidence.data:
        if side.rows_used < needed:
            yield Finding(
                ReasonCode.PG105,
                f"Only {side.rows_used:,} of {_side(side)} could be used; "
                f"a margin of {number(margin)} needs {needed:,} rows a side.",
                value=side.rows_used,
                limit=needed,
            )
    smaller = min((side.rows_used for side in evidence.data), default=0)
    for name in needs_references(deciding_attacks(policy, evidence)):
        facts = evidence.attack(name)
        # Those left out may all stand on one side: too few reference models leave too few rows.
        if facts is not None and smaller >= needed > smaller - facts.rows_left_out:
            yield Finding(
                ReasonCode.PG105,
                f"The attack {name} left out {plural(facts.rows_left_out, 'row')} that too few reference models cover; "
                f"a margin of {number(margin)} needs {needed:,} rows a side. More reference models.",
                attack=name,
                value=smaller - facts.rows_left_out,
                limit=needed,
            )


def _scores(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    ties = evidence.validity.tie_share
    if ties is not None and ties > TIES_LIMIT:
        yield Finding(
            ReasonCode.PG106,
            f"{ties:.0%} of the scores are tied, so the attacks see less than they could.",
            value=ties,
            limit=TIES_LIMIT,
        )
    for name in deciding_attacks(policy, evidence):
        facts = evidence.attack(name)
        auc = facts.metric("auc") if facts is not None else None
        if auc is not None and auc.value is not None and auc.ci_high is not None and auc.ci_high < 0.5:
            yield Finding(
                ReasonCode.PG101,
                f"By {name} the members look less familiar than the non-members (AUC {auc.value:.4f}, at most {auc.ci_high:.4f}): "
                f"a wrong column, losses handed in as confidences, or easier non-members.",
                attack=name,
                value=auc.value,
                limit=0.5,
                effect_override=Effect.WARN,
            )


def _stability(evidence: Evidence) -> Iterator[Finding]:
    """Find answers that change: few are a warning; with many, the numbers are of one asking and an attacker may ask again and again."""
    differing, asked = evidence.validity.unstable_rows, evidence.validity.asked_again_rows
    if not differing:
        return
    few = asked is not None and differing <= UNSTABLE_LIMIT * asked
    of = "" if asked is None else f" of {asked:,}"
    yield Finding(
        ReasonCode.PG110,
        f"Asked again about rows it had answered, the model answered {plural(differing, 'row')}{of} otherwise. "
        + (
            "Every number here is of one asking."
            if few
            else "Whoever asks again and again learns more than was measured."
        ),
        value=differing,
        limit=None if asked is None else UNSTABLE_LIMIT * asked,
        effect_override=Effect.WARN if few else None,
    )


def _positive_control(evidence: Evidence, margin: float) -> Iterator[Finding]:
    caught, low = evidence.validity.positive_control_auc, evidence.validity.positive_control_ci_low
    if caught is None or not math.isfinite(caught):
        return  # whether it had to be run is for the requirements to say
    if not exceeds(caught, margin) or (low is not None and not low > 0.5):
        yield Finding(
            ReasonCode.PG109,
            f"A reference model that was overfitted on purpose was not caught (AUC {number(caught, against=margin)}, "
            f"margin {number(margin)}): this test cannot see a leak.",
            value=caught,
            limit=margin,
        )


def _side(side: DataFacts) -> str:
    return f"{plural(side.rows, side.role.replace('_', '-').removesuffix('s'))}"
