"""What the policy requires and evidence lacks (PG006), and evidence that is too old (PG005)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from mlflow_privacy_gate.evidence.facts import AttackFacts, Evidence
from mlflow_privacy_gate.policy.gating import (
    CLASSIFICATION,
    LABEL_ONLY,
    RULE_ATTACK,
    deciding_attacks,
    gating_attacks,
    needs_references,
)
from mlflow_privacy_gate.policy.model import DecideOn, LabelOnly, Policy
from mlflow_privacy_gate.policy.wording import plural
from mlflow_privacy_gate.vocabulary import ATTACKS, KIND_ATTACKS, Finding, ReasonCode, tpr_metric_id

CLOCK_SKEW = timedelta(minutes=5)
_SHOW_PROBABILITIES = (
    "log a model that shows probabilities (`predict_proba`) and check that one, "
    "or have the policy's owner set `label_only: allow`"
)
_REMOVE_THE_REASON = (
    "see to the reason it gives, or have the policy's owner leave that attack out of `attacks.gating`; then check again"
)


def expiry(policy: Policy, evidence: Evidence) -> datetime:
    """Return when the evidence stops counting: its own end, or the policy's greatest age if that comes first."""
    return min(evidence.expires_at, evidence.tested_at + timedelta(days=policy.evidence.max_age_days))


def age(policy: Policy, evidence: Evidence, now: datetime) -> Iterator[Finding]:
    """Find evidence that is expired or dated in the future (five minutes are allowed for clocks that differ)."""
    if evidence.tested_at > now + CLOCK_SKEW:
        yield Finding(
            ReasonCode.PG005, f"The test is dated {_day(evidence.tested_at)}, which is after now ({_day(now)})."
        )
    ends = expiry(policy, evidence)
    if now > ends:
        days = (now - evidence.tested_at).days
        yield Finding(
            ReasonCode.PG005,
            f"The test of {_day(evidence.tested_at)} is {plural(days, 'day')} old and counted until {_day(ends)} "
            f"(at most {plural(policy.evidence.max_age_days, 'day')}).",
        )


def completeness(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    """Find everything that the policy requires and the evidence lacks, each by name."""
    yield from _kind(policy, evidence)
    required = gating_attacks(policy, evidence.kind)
    if evidence.kind == CLASSIFICATION and RULE_ATTACK not in required:
        required = (RULE_ATTACK, *required)  # the rule's own number is always stated, whether or not it decides
    for name in required:
        yield from _attack(policy, evidence, name)
    for name in deciding_attacks(policy, evidence):
        if name not in required:
            yield from _attack(policy, evidence, name)
    yield from _references(policy, evidence)
    yield from _rows(policy, evidence)
    yield from _test(policy, evidence)


def _kind(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    if evidence.kind not in KIND_ATTACKS:
        yield _lacks(f"No attack is known for a model of kind {evidence.kind!r}.")
    elif evidence.kind == LABEL_ONLY and policy.label_only is not LabelOnly.ALLOW:
        said = "The model shows labels only, and the policy judges by probabilities (label_only: inconclusive)."
        yield _lacks(said, remedy=_SHOW_PROBABILITIES)
    elif not deciding_attacks(policy, evidence):
        yield _lacks(f"None of the policy's gating attacks fits a model of kind {evidence.kind}.")


def _attack(policy: Policy, evidence: Evidence, name: str) -> Iterator[Finding]:
    facts = evidence.attack(name)
    if facts is None:
        reason = next((skipped.reason for skipped in evidence.not_run if skipped.id == name), None)
        said = f"The attack {name} was not run{f': {reason}' if reason else ''}."
        yield _lacks(said, name, remedy=_see_to(evidence) if reason else None)
        return
    if name in _twice(other.id for other in evidence.attacks) or _twice(metric.id for metric in facts.metrics):
        yield _lacks(f"The attack {name} states a number twice, so it is not known which one holds.", name)
    if facts.formula != ATTACKS[name].formula:
        yield _lacks(f"The attack {name} was measured by {facts.formula}, not by {ATTACKS[name].formula}.", name)
    auc = facts.metric("auc")
    if auc is None or auc.value is None or not 0 <= auc.value <= 1:  # NaN is in no interval
        why = auc.note if auc is not None and auc.note else "no number"
        yield _lacks(f"The attack {name} has no AUC ({why}).", name)
    if policy.decide_on is DecideOn.UPPER and (auc is None or not _is_number(auc.upper)):
        yield _lacks(f"The attack {name} has no upper bound, on which the policy decides.", name)
    yield from _tpr(policy, facts)


def _tpr(policy: Policy, facts: AttackFacts) -> Iterator[Finding]:
    for fpr in policy.margin.tpr_at_fpr:
        metric = facts.metric(tpr_metric_id(fpr))
        if metric is None:
            yield _lacks(f"The attack {facts.id} has no TPR at {fpr:.4g} FPR, which the policy limits.", facts.id)
        elif policy.decide_on is DecideOn.UPPER and _is_number(metric.value) and not _is_number(metric.upper):
            yield _lacks(f"The attack {facts.id} has no upper bound of its TPR at {fpr:.4g} FPR.", facts.id)


def _rows(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    """Find a side of which less was tested than the policy in force takes: whoever may choose a small sample may choose a lucky one."""
    for side in evidence.data:
        due = min(side.rows - evidence.splits.shared_rows, policy.sources.max_rows)
        tested = side.rows_used + side.unknown_labels
        if tested < due:
            words = side.role.replace("_", "-")
            yield _lacks(f"Of the {words} {tested:,} rows were tested; the policy takes {due:,} of {side.rows:,}.")


def _references(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    """Compare the reference models with what the policy asks of them, wherever an attack could use them."""
    wanted, origins = policy.attacks.references, policy.attacks.reference_origins
    needy = needs_references(deciding_attacks(policy, evidence))
    for name in needy:
        facts = evidence.attack(name)
        if facts is None:
            continue
        if facts.references < wanted:
            yield _lacks(
                f"The attack {name} used {plural(facts.references, 'reference model')}; the policy asks for {wanted}.",
                name,
            )
        if facts.seed is not None and facts.seed != policy.attacks.seed:
            yield _lacks(
                f"The reference models of {name} were trained with seed {facts.seed}; the policy names {policy.attacks.seed}.",
                name,
            )
    for name in deciding_attacks(policy, evidence):
        facts = evidence.attack(name)
        if facts is not None and (name in needy or facts.references) and facts.references_origin not in origins:
            yield _lacks(
                f"The reference models of {name} were made by {facts.references_origin or 'nobody knows what'}; "
                f"the policy admits {', '.join(origins)}.",
                name,
            )
    most = max((facts.references for facts in evidence.attacks), default=0)
    if not needy and evidence.kind == CLASSIFICATION and most < wanted:
        yield _lacks(f"The test used {plural(most, 'reference model')}; the policy asks for {wanted}.")
    if needy and not _is_number(evidence.validity.positive_control_auc):
        yield _lacks("No positive control was run, which a test with reference models needs.")


def _test(policy: Policy, evidence: Evidence) -> Iterator[Finding]:
    for role, words in (("members", "members"), ("non_members", "non-members")):
        side = evidence.side(role)
        if side is None or not side.digest:
            yield _lacks(f"Nothing is said of the {words}: neither how many rows nor their digest.")
    if evidence.splits.origin not in policy.validity.split_origins:
        yield _lacks(
            f"The splits came from {evidence.splits.origin}; the policy admits {', '.join(policy.validity.split_origins)}."
        )
    if evidence.splits.group is not None and evidence.splits.group_overlap is None:
        yield _lacks(f"Whether a group ({evidence.splits.group}) is on both sides was not counted.")
    if not _is_number(evidence.validity.blind_auc):
        yield _lacks("The blind baseline was not run: whether the splits differ without the model is not known.")


def _see_to(evidence: Evidence) -> str:
    """Say what would help where an attack could not be made; to check again is not enough."""
    return _SHOW_PROBABILITIES if evidence.kind == LABEL_ONLY else _REMOVE_THE_REASON


def _lacks(message: str, attack: str | None = None, *, remedy: str | None = None) -> Finding:
    return Finding(ReasonCode.PG006, message, attack=attack, remedy_override=remedy)


def _twice(ids: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(ids).items() if count > 1}


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
