from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, PASSING_AUCS, passing_evidence
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    Evidence,
    Metric,
    NotRun,
    SubgroupFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.policy import Policy, Verdict, judge, parse_policy
from mlflow_privacy_gate.policy.judging import outcome_of
from mlflow_privacy_gate.vocabulary import ATTACKS, Effect, Finding, Outcome, ReasonCode, SplitOrigin

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
STANDARD = parse_policy("version: 1\n")


def measured(aucs: Mapping[str, float] = PASSING_AUCS, **changes: Any) -> Evidence:
    times = {"tested_at": NOW - timedelta(days=1), "expires_at": NOW + timedelta(days=89)}
    return passing_evidence("0" * 64, aucs=aucs, **{**times, **changes})


def attack(name: str, auc: float | None, **changes: Any) -> AttackFacts:
    metrics = (Metric("auc", auc, 0.49, 0.53, 0.525, "delong"), Metric("tpr_at_fpr_0.01", 0.01, upper=0.02))
    return AttackFacts(**{"id": name, "formula": ATTACKS[name].formula, "metrics": metrics, **changes})


def with_attack(evidence: Evidence, facts: AttackFacts) -> Evidence:
    others = tuple(other for other in evidence.attacks if other.id != facts.id)
    return replace(evidence, attacks=(*others, facts))


def verdict(evidence: Evidence, policy: Policy | str = STANDARD) -> Verdict:
    return judge(parse_policy(policy) if isinstance(policy, str) else policy, evidence, now=NOW)


def messages(found: Verdict, code: ReasonCode) -> list[str]:
    return [finding.message for finding in found.findings if finding.code is code]


def test_evidence_within_every_limit_passes_with_its_numbers() -> None:
    found = verdict(measured({**PASSING_AUCS, "loss": 0.53}))
    assert found.outcome is Outcome.PASS
    assert found.findings == ()
    assert (found.attack, found.attack_auc, found.confidence_auc) == ("loss", 0.53, PASSING_AUCS["confidence"])
    assert (found.margin, found.margin_source) == (0.55, "default of privacy-gate.yaml")
    assert found.headroom == pytest.approx(0.02)
    assert found.expires_at == NOW + timedelta(days=89)


def test_every_attack_over_the_margin_is_named_with_auc_interval_and_margin() -> None:
    found = verdict(measured(FAILING_AUCS))
    assert found.outcome is Outcome.FAIL
    assert [finding.attack for finding in found.findings] == list(FAILING_AUCS)
    [first, *_] = messages(found, ReasonCode.PG201)
    assert "AUC 0.7310 (95 % interval 0.7131 to 0.7489), over the margin 0.55 (default of privacy-gate.yaml)" in first
    assert (found.attack, found.attack_auc) == ("loss", 0.734)
    assert found.headroom is not None
    assert found.headroom < 0


def test_exactly_the_margin_passes_and_the_next_float_fails() -> None:
    assert verdict(measured({**PASSING_AUCS, "loss": 0.55})).outcome is Outcome.PASS
    over = verdict(measured({**PASSING_AUCS, "loss": math.nextafter(0.55, 1)}))
    assert over.outcome is Outcome.FAIL
    [text] = messages(over, ReasonCode.PG201)
    assert "AUC 0.5500000000000002 " in text


def test_an_attack_that_only_reports_does_not_fail_a_model() -> None:
    evidence = with_attack(measured(), attack("margin_gap", 0.9))
    found = verdict(evidence)
    assert found.outcome is Outcome.PASS
    assert found.attack != "margin_gap"


def test_a_policy_that_now_gates_on_it_fails_the_same_evidence() -> None:
    evidence = with_attack(measured(), attack("margin_gap", 0.9))
    gating = "attacks: {gating: [confidence, loss, entropy, modified_entropy, margin_gap]}"
    assert verdict(evidence, f"version: 1\n{gating}\n").outcome is Outcome.FAIL


@pytest.mark.parametrize("name", list(PASSING_AUCS))
def test_a_gating_attack_that_was_not_run_is_named_with_its_reason(name: str) -> None:
    evidence = measured({key: auc for key, auc in PASSING_AUCS.items() if key != name})
    evidence = replace(evidence, not_run=(NotRun(name, "it raised ObservationError"),))
    found = verdict(evidence)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert messages(found, ReasonCode.PG006) == [f"The attack {name} was not run: it raised ObservationError."]


@pytest.mark.parametrize("auc", [None, math.nan, -0.1, 1.1, math.inf])
def test_an_auc_that_is_no_number_is_never_a_pass(auc: float | None) -> None:
    found = verdict(with_attack(measured(), attack("loss", auc)))
    assert found.outcome is not Outcome.PASS
    assert any("The attack loss has no AUC" in text for text in messages(found, ReasonCode.PG006))


def test_an_attack_measured_by_another_formula_does_not_count() -> None:
    found = verdict(with_attack(measured(), attack("loss", 0.51, formula="loss/v0")))
    assert messages(found, ReasonCode.PG006) == ["The attack loss was measured by loss/v0, not by loss/v1."]


def test_a_number_that_stands_twice_is_no_number() -> None:
    evidence = measured()
    again = replace(evidence, attacks=(*evidence.attacks, attack("loss", 0.9)))
    assert verdict(again).reason_codes == ("PG006",)
    loss = attack("loss", 0.51, metrics=(Metric("auc", 0.51), Metric("auc", 0.9)))
    assert verdict(with_attack(evidence, loss)).reason_codes == ("PG006",)


def test_evidence_without_any_attack_is_inconclusive() -> None:
    found = verdict(replace(measured(), attacks=()))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert (found.attack, found.attack_auc, found.confidence_auc, found.headroom) == (None, None, None, None)


def test_the_rules_own_number_must_be_stated_even_where_it_does_not_decide() -> None:
    policy = "version: 1\nattacks: {unsafe_gating: [loss]}\n"
    assert verdict(measured({"loss": 0.51}), policy).outcome is Outcome.INCONCLUSIVE
    stated = verdict(measured({"loss": 0.51, "confidence": 0.9}), policy)
    assert (stated.outcome, stated.attack, stated.confidence_auc) == (Outcome.PASS, "loss", 0.9)


BROKEN_TESTS: list[tuple[ReasonCode, Callable[[Evidence], Evidence], str]] = [
    (
        ReasonCode.PG101,
        lambda e: replace(
            e, validity=replace(e.validity, blind_auc=0.72, blind_ci_low=0.7, blind_columns=("date", "age"))
        ),
        "AUC 0.7200, over 0.55; most by date, age",
    ),
    (
        ReasonCode.PG101,
        lambda e: replace(e, data=(replace(e.data[0], unknown_labels=21), e.data[1])),
        "the label of 21 of 2,000 members",
    ),
    (
        ReasonCode.PG103,
        lambda e: replace(e, splits=replace(e.splits, shared_rows=4)),
        "4 rows on both sides, where 3 would be explained",
    ),
    (
        ReasonCode.PG103,
        lambda e: replace(e, data=(e.data[0], replace(e.data[1], digest=e.data[0].digest))),
        "the same rows (equal digests)",
    ),
    (
        ReasonCode.PG104,
        lambda e: replace(e, splits=replace(e.splits, as_logged=False, as_logged_note="1,900 of 2,000 rows")),
        "not the ones that were logged with the model: 1,900 of 2,000 rows.",
    ),
    (
        ReasonCode.PG109,
        lambda e: replace(e, validity=replace(e.validity, positive_control_auc=0.549, positive_control_ci_low=0.52)),
        "was not caught (AUC 0.5490, margin 0.55)",
    ),
]


@pytest.mark.parametrize(("code", "broken", "said"), BROKEN_TESTS)
def test_a_broken_test_is_inconclusive_and_outranks_a_fail(
    code: ReasonCode, broken: Callable[[Evidence], Evidence], said: str
) -> None:
    for aucs in (PASSING_AUCS, FAILING_AUCS):
        found = verdict(broken(measured(aucs)))
        assert found.outcome is Outcome.INCONCLUSIVE
        assert any(said in text for text in messages(found, code)), found.findings
    assert ReasonCode.PG201 in found.reason_codes


def test_a_fail_outranks_what_is_merely_inconclusive() -> None:
    evidence = measured(FAILING_AUCS, rows=150)
    evidence = replace(evidence, splits=replace(evidence.splits, group="patient", group_overlap=2))
    found = verdict(evidence)
    assert found.outcome is Outcome.FAIL
    assert {"PG201", "PG102", "PG105"} <= set(found.reason_codes)


@pytest.mark.parametrize(
    ("differing", "asked", "outcome"),
    [(0, 200, Outcome.PASS), (2, 200, Outcome.PASS), (3, 200, Outcome.INCONCLUSIVE), (1, None, Outcome.INCONCLUSIVE)],
)
def test_answers_that_change_warn_up_to_one_row_in_a_hundred_and_block_above(
    differing: int, asked: int | None, outcome: Outcome
) -> None:
    evidence = measured()
    wavering = replace(evidence.validity, unstable_rows=differing, asked_again_rows=asked)
    found = verdict(replace(evidence, validity=wavering))
    assert found.outcome is outcome
    assert bool(messages(found, ReasonCode.PG110)) is (differing > 0)


def test_a_blind_classifier_whose_interval_reaches_chance_says_nothing() -> None:
    evidence = measured(validity=ValidityFacts(blind_auc=0.56, blind_ci_low=0.49))
    assert verdict(evidence).outcome is Outcome.PASS


@pytest.mark.parametrize("low", [None, math.nan])
def test_a_blind_classifier_without_an_interval_counts_as_sure(low: float | None) -> None:
    evidence = measured(validity=ValidityFacts(blind_auc=0.56, blind_ci_low=low))
    assert verdict(evidence).reason_codes == ("PG101",)


def test_reference_models_that_show_nothing_hide_no_leak_that_the_model_alone_shows() -> None:
    """Junk among models that were logged before makes calibrated attacks look harmless; those that ask the model alone still decide."""
    policy = parse_policy("version: 1\npreset: thorough\nattacks: {unsafe_reference_origins: [clone, logged_models]}\n")
    leaking = replace(thorough(), attacks=tuple(_leaking(one) for one in thorough().attacks))
    assert verdict(leaking, policy).outcome is Outcome.FAIL


def _leaking(attack: AttackFacts) -> AttackFacts:
    if attack.references:
        shown = replace(attack, references_origin="logged_models")
        return replace(
            shown, metrics=tuple(replace(one, value=0.5) if one.id == "auc" else one for one in shown.metrics)
        )
    return replace(attack, metrics=tuple(replace(one, value=0.7) if one.id == "auc" else one for one in attack.metrics))


@pytest.mark.parametrize("gating", ["[calibrated]", "[calibrated, rmia]"])
def test_attacks_that_ask_the_model_alone_cannot_be_left_out_without_the_word_unsafe(gating: str) -> None:
    with pytest.raises(PolicyError, match="gating"):
        parse_policy(
            f"version: 1\nattacks: {{references: 16, gating: {gating}, unsafe_reference_origins: [logged_models]}}\n"
        )


def test_what_would_help_a_model_that_shows_labels_only_is_not_to_check_it_again() -> None:
    reasons = tuple(NotRun(name, "needs probabilities") for name in PASSING_AUCS)
    labels = replace(measured(), kind="label_only", attacks=(), not_run=reasons)
    found = [
        finding
        for finding in verdict(labels).findings
        if finding.code is ReasonCode.PG006 and "labels" in finding.message
    ]
    assert found
    assert all("predict_proba" in finding.remedy and "label_only: allow" in finding.remedy for finding in found)


def test_what_would_help_an_attack_that_could_not_be_made_is_its_reason() -> None:
    evidence = measured()
    lacking = replace(
        evidence,
        attacks=tuple(one for one in evidence.attacks if one.id != "entropy"),
        not_run=(NotRun("entropy", "the model lacks something"),),
    )
    (finding,) = (one for one in verdict(lacking).findings if one.code is ReasonCode.PG006)
    assert "see to the reason it gives" in finding.remedy


def test_a_blind_baseline_that_was_not_run_blocks() -> None:
    found = verdict(measured(validity=ValidityFacts()))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "blind baseline was not run" in messages(found, ReasonCode.PG006)[0]


@pytest.mark.parametrize(
    ("rows", "shared", "expected", "fine"),
    [
        (2000, 3, 0.0, True),
        (2000, 4, 0.0, False),
        (10_000, 10, 0.0, True),
        (10_000, 11, 0.0, False),
        (2000, 60, 30.0, True),
        (2000, 61, 30.0, False),
        (2000, 1, math.nan, True),
        (2000, 4, math.nan, False),
    ],
)
def test_shared_rows_count_beyond_what_is_natural(rows: int, shared: int, expected: float, fine: bool) -> None:
    evidence = measured(rows=rows)
    splits = replace(evidence.splits, shared_rows=shared, shared_rows_expected=expected)
    assert (verdict(replace(evidence, splits=splits)).outcome is Outcome.PASS) == fine


@pytest.mark.parametrize(
    ("rows", "card", "enough"), [(180, None, False), (181, None, True), (1127, 0.52, False), (1128, 0.52, True)]
)
def test_a_smaller_margin_needs_more_rows(rows: int, card: float | None, enough: bool) -> None:
    aucs = dict.fromkeys(PASSING_AUCS, 0.5)
    found = verdict(measured(aucs, rows=rows, card=CardClaims(max_attack_auc=card)))
    assert (found.outcome is Outcome.PASS) == enough
    if not enough:
        needed = "181" if card is None else "1,128"
        assert all(f"needs {needed} rows a side" in text for text in messages(found, ReasonCode.PG105))
        assert len(messages(found, ReasonCode.PG105)) == 2


def test_one_short_side_is_enough_to_be_inconclusive() -> None:
    evidence = measured()
    short = replace(evidence, data=(replace(evidence.data[0], rows_used=99), evidence.data[1]))
    assert messages(verdict(short), ReasonCode.PG105) == [
        "Only 99 of 2,000 members could be used; a margin of 0.55 needs 181 rows a side."
    ]


def test_warnings_leave_a_pass_a_pass_and_are_listed() -> None:
    evidence = measured(validity=replace(measured().validity, tie_share=0.96, holds_training_rows="support vectors"))
    found = verdict(replace(evidence, splits=replace(evidence.splits, used_for_tuning=True)))
    assert found.outcome is Outcome.PASS
    assert found.reason_codes == ("PG106", "PG107", "PG403")
    assert {finding.effect for finding in found.findings} == {Effect.WARN}


def test_an_auc_surely_below_one_half_is_warned_of_and_never_flipped() -> None:
    backwards = attack("loss", 0.3, metrics=(Metric("auc", 0.3, 0.28, 0.32, 0.315),))
    found = verdict(with_attack(measured(), backwards))
    assert found.outcome is Outcome.PASS
    [warning] = found.findings
    assert (warning.code, warning.effect, warning.attack) == (ReasonCode.PG101, Effect.WARN, "loss")


def test_tiny_subgroups_never_fail_a_model() -> None:
    tiny = SubgroupFacts("site", "7", rows_members=3, rows_non_members=3, auc=1.0, note="too small")
    assert verdict(measured(rows=20_000, subgroups=(tiny,))).outcome is Outcome.PASS


def test_expired_evidence_is_inconclusive_by_its_own_end_or_by_the_policys() -> None:
    own = verdict(measured(expires_at=NOW - timedelta(seconds=1)))
    assert own.reason_codes == ("PG005",)
    aged = measured(tested_at=NOW - timedelta(days=31), expires_at=NOW + timedelta(days=59))
    assert verdict(aged).outcome is Outcome.PASS
    policys = verdict(aged, "version: 1\nevidence: {max_age_days: 30}\n")
    assert policys.outcome is Outcome.INCONCLUSIVE
    assert policys.expires_at == NOW - timedelta(days=1)
    assert "31 days old" in messages(policys, ReasonCode.PG005)[0]


def test_evidence_from_the_future_is_not_a_pass() -> None:
    assert verdict(measured(tested_at=NOW + timedelta(minutes=4))).outcome is Outcome.PASS
    assert verdict(measured(tested_at=NOW + timedelta(minutes=6))).reason_codes == ("PG005",)


def test_a_tightened_policy_fails_what_passed() -> None:
    evidence = measured({**PASSING_AUCS, "loss": 0.53})
    assert verdict(evidence).outcome is Outcome.PASS
    assert verdict(evidence, "version: 1\nmargin: {default: 0.52}\n").outcome is Outcome.FAIL


def test_a_declared_category_lowers_the_margin_and_says_so() -> None:
    found = verdict(measured({**PASSING_AUCS, "loss": 0.53}, card=CardClaims(data_categories=("health",))))
    assert found.outcome is Outcome.FAIL
    assert "over the margin 0.52 (data category health)" in messages(found, ReasonCode.PG201)[0]


def test_a_card_margin_above_the_policys_blocks() -> None:
    found = verdict(measured(card=CardClaims(max_attack_auc=0.6)))
    assert (found.outcome, found.reason_codes, found.margin) == (Outcome.INCONCLUSIVE, ("PG404",), 0.55)


def test_no_personal_data_counts_only_with_a_statement() -> None:
    assert verdict(measured(card=CardClaims(personal_data=False))).reason_codes == ("PG401",)
    assert verdict(measured(card=CardClaims(personal_data=True))).outcome is Outcome.PASS


def test_an_exemption_answers_that_finding_and_no_other() -> None:
    card = CardClaims(personal_data=False, data_categories=("controlled_access",))
    exempted = judge(STANDARD, measured(FAILING_AUCS, card=card), now=NOW, exempted=True)
    assert exempted.reason_codes == ("PG201", "PG402")
    assert judge(STANDARD, measured(card=CardClaims(personal_data=False)), now=NOW, exempted=True).findings == ()


def test_a_denied_category_fails_whatever_the_score() -> None:
    found = verdict(measured(card=CardClaims(data_categories=("Controlled Access",))))
    assert (found.outcome, found.reason_codes) == (Outcome.FAIL, ("PG402",))


def test_splits_from_an_origin_that_is_not_admitted_are_what_the_policy_requires() -> None:
    evidence = measured(splits=replace(measured().splits, origin=SplitOrigin.CALLER))
    assert verdict(evidence).outcome is Outcome.PASS
    found = verdict(evidence, "version: 1\nvalidity: {split_origins: [manifest]}\n")
    assert messages(found, ReasonCode.PG006) == ["The splits came from caller; the policy admits manifest."]


def test_a_group_column_whose_overlap_was_not_counted_blocks() -> None:
    evidence = measured(splits=replace(measured().splits, group="patient"))
    assert verdict(evidence).reason_codes == ("PG006",)
    counted = replace(evidence, splits=replace(evidence.splits, group_overlap=0))
    assert verdict(counted).outcome is Outcome.PASS


def test_a_missing_side_is_named() -> None:
    evidence = measured()
    found = verdict(replace(evidence, data=evidence.data[:1]))
    assert "Nothing is said of the non-members" in messages(found, ReasonCode.PG006)[0]


def test_deciding_on_the_upper_bound_is_inconclusive_between_point_and_bound() -> None:
    policy = "version: 1\ndecide_on: upper\n"
    assert verdict(measured(), policy).outcome is Outcome.PASS
    near = verdict(measured({**PASSING_AUCS, "loss": 0.545}), policy)
    assert near.outcome is Outcome.INCONCLUSIVE
    [text] = messages(near, ReasonCode.PG105)
    assert "its upper bound 0.5600 is over 0.55" in text
    assert "About 571 rows a side" in text
    assert verdict(measured({**PASSING_AUCS, "loss": 0.551}), policy).outcome is Outcome.FAIL


def test_deciding_on_an_upper_bound_that_is_missing_blocks() -> None:
    bare = attack("loss", 0.51, metrics=(Metric("auc", 0.51, 0.5, 0.52),))
    found = verdict(with_attack(measured(), bare), "version: 1\ndecide_on: upper\n")
    assert messages(found, ReasonCode.PG006) == ["The attack loss has no upper bound, on which the policy decides."]


TPR_POLICY = "version: 1\nmargin: {tpr_at_fpr: {0.01: 0.03}}\n"


@pytest.mark.parametrize(
    ("metric", "code", "said"),
    [
        (Metric("tpr_at_fpr_0.01", 0.0715, 0.06, 0.08, 0.09), "PG202", "finds 7.15% of the members at 0.01 FPR"),
        (Metric("tpr_at_fpr_0.01", None, note="not resolvable"), "PG105", "too few rows for its TPR at 0.01 FPR"),
        (Metric("other", 0.0), "PG006", "has no TPR at 0.01 FPR"),
        (Metric("tpr_at_fpr_0.01", math.nan), "PG202", "over the limit 0.03"),
    ],
)
def test_a_tpr_limit_gates_every_attack(metric: Metric, code: str, said: str) -> None:
    facts = attack("loss", 0.51, metrics=(Metric("auc", 0.51), metric))
    found = verdict(with_attack(measured(), facts), TPR_POLICY)
    assert found.reason_codes == (code,)
    assert said in found.findings[0].message


def test_a_tpr_within_its_limit_whose_bound_is_not_is_inconclusive_on_upper() -> None:
    facts = attack(
        "loss", 0.51, metrics=(Metric("auc", 0.51, 0.5, 0.52, 0.52), Metric("tpr_at_fpr_0.01", 0.02, upper=0.04))
    )
    evidence = with_attack(measured(), facts)
    assert verdict(evidence, TPR_POLICY).outcome is Outcome.PASS
    found = verdict(evidence, f"{TPR_POLICY}decide_on: upper\n")
    assert found.reason_codes == ("PG105",)


def thorough(**changes: Any) -> Evidence:
    evidence = measured(validity=replace(measured().validity, positive_control_auc=0.9, positive_control_ci_low=0.88))
    for name in ("calibrated", "lira_offline", "rmia"):
        facts = {"references": 16, "references_origin": "clone", "seed": 0, **changes}
        evidence = with_attack(evidence, attack(name, 0.51, **facts))
    return evidence


THOROUGH = parse_policy("version: 1\npreset: thorough\n")


def test_thorough_passes_with_its_references_and_control() -> None:
    assert verdict(thorough(), THOROUGH).outcome is Outcome.PASS


def test_a_policy_that_asks_for_references_names_what_evidence_lacks() -> None:
    found = verdict(measured(), THOROUGH)
    assert found.outcome is Outcome.INCONCLUSIVE
    texts = messages(found, ReasonCode.PG006)
    assert [f"The attack {name} was not run." for name in ("calibrated", "lira_offline", "rmia")] == texts[:3]
    assert "positive control" in texts[-1]


def test_fewer_references_or_foreign_ones_do_not_count() -> None:
    few = messages(verdict(thorough(references=8), THOROUGH), ReasonCode.PG006)
    assert few[0] == "The attack calibrated used 8 reference models; the policy asks for 16."
    foreign = messages(verdict(thorough(references_origin="logged_models"), THOROUGH), ReasonCode.PG006)
    assert foreign[0] == "The reference models of calibrated were made by logged_models; the policy admits clone."
    assert len(few) == len(foreign) == 3


def test_references_that_are_asked_for_without_a_gating_attack_must_still_be_there() -> None:
    policy = "version: 1\nattacks: {references: 16}\n"
    assert messages(verdict(measured(), policy), ReasonCode.PG006) == [
        "The test used 0 reference models; the policy asks for 16."
    ]
    assert verdict(thorough(), policy).outcome is Outcome.PASS


def test_rows_that_too_few_references_cover_are_rows_that_are_missing() -> None:
    found = verdict(thorough(rows_left_out=1900), THOROUGH)
    assert found.reason_codes == ("PG105",)
    assert "left out 1,900 rows" in found.findings[0].message


def kind(kind: str, *names: str, aucs: float = 0.51) -> Evidence:
    return replace(measured(), kind=kind, attacks=tuple(attack(name, aucs) for name in names))


def test_a_label_only_model_is_judged_only_where_the_policy_allows_it() -> None:
    evidence = kind("label_only", "correctness")
    refused = verdict(evidence)
    assert refused.outcome is Outcome.INCONCLUSIVE
    assert "labels only" in messages(refused, ReasonCode.PG006)[0]
    assert refused.attack is None
    allowed = verdict(evidence, "version: 1\nlabel_only: allow\n")
    assert (allowed.outcome, allowed.attack, allowed.confidence_auc) == (Outcome.PASS, "correctness", None)


@pytest.mark.parametrize("policy", [STANDARD, THOROUGH], ids=["standard", "thorough"])
@pytest.mark.parametrize(
    ("model", "names"),
    [("regression", ("error",)), ("density", ("likelihood",)), ("density", ("likelihood", "likelihood_ratio"))],
)
def test_other_kinds_are_judged_by_their_own_attacks(policy: Policy, model: str, names: tuple[str, ...]) -> None:
    assert verdict(kind(model, *names), policy).outcome is Outcome.PASS
    failed = verdict(kind(model, *names, aucs=0.6), policy)
    assert failed.outcome is Outcome.FAIL
    assert [finding.attack for finding in failed.findings] == list(names)
    missing = verdict(kind(model), policy)
    assert messages(missing, ReasonCode.PG006) == [f"The attack {names[0]} was not run."]


def test_a_likelihood_ratio_by_references_that_the_policy_does_not_admit_is_no_pass() -> None:
    foreign = replace(attack("likelihood_ratio", 0.51), references=4, references_origin="logged_models")
    refused = verdict(with_attack(kind("density", "likelihood"), foreign))
    assert "the policy admits clone" in messages(refused, ReasonCode.PG006)[0]
    admitted = "version: 1\nattacks: {unsafe_reference_origins: [clone, logged_models]}\n"
    assert verdict(with_attack(kind("density", "likelihood"), foreign), admitted).outcome is Outcome.PASS


def test_a_likelihood_ratio_decides_wherever_it_was_measured() -> None:
    evidence = with_attack(kind("density", "likelihood"), attack("likelihood_ratio", 0.8))
    assert verdict(evidence).outcome is Outcome.FAIL


def test_an_unknown_kind_of_model_is_never_a_pass() -> None:
    found = verdict(kind("oracle", "confidence"))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "oracle" in messages(found, ReasonCode.PG006)[0]


def test_what_was_concluded_at_the_test_decides_nothing() -> None:
    assert verdict(measured(FAILING_AUCS, outcome="pass", reason_codes=())).outcome is Outcome.FAIL
    assert verdict(measured(outcome="fail", reason_codes=("PG201",))).outcome is Outcome.PASS


def test_the_same_inputs_give_the_same_verdict() -> None:
    evidence = measured(FAILING_AUCS)
    assert verdict(evidence) == verdict(evidence)


@pytest.mark.parametrize(("auc", "low"), [(0.549, 0.53), (0.7, 0.5), (0.7, math.nan)])
def test_a_positive_control_must_be_caught_surely(auc: float, low: float) -> None:
    evidence = thorough()
    control = replace(evidence.validity, positive_control_auc=auc, positive_control_ci_low=low)
    assert verdict(replace(evidence, validity=control), THOROUGH).reason_codes == ("PG109",)


@given(st.dictionaries(st.sampled_from(list(PASSING_AUCS)), st.floats(0, 1), min_size=4))
def test_a_pass_means_that_no_gating_auc_is_over_the_margin(aucs: dict[str, float]) -> None:
    found = verdict(measured(aucs))
    worst = max(aucs.values())
    assert found.attack_auc == worst
    assert (found.outcome is Outcome.PASS) == (worst <= 0.55)


@given(st.sets(st.sampled_from(["attacks", "data"])), st.sets(st.integers(0, 3)))
def test_taking_facts_away_never_makes_a_pass(emptied: set[str], dropped: set[int]) -> None:
    evidence = measured(FAILING_AUCS)
    evidence = replace(
        evidence,
        attacks=() if "attacks" in emptied else tuple(a for i, a in enumerate(evidence.attacks) if i not in dropped),
        data=() if "data" in emptied else evidence.data,
    )
    assert verdict(evidence).outcome is not Outcome.PASS


@given(st.lists(st.sampled_from(list(ReasonCode))))
def test_only_warnings_leave_a_pass(codes: list[ReasonCode]) -> None:
    findings = [Finding(code, "x") for code in codes]
    effects = {finding.effect for finding in findings}
    assert (outcome_of(findings) is Outcome.PASS) == (effects <= {Effect.WARN})


@pytest.mark.parametrize(
    ("rows_used", "unknown", "shared", "lacks"), [(181, 0, 0, True), (1990, 10, 0, False), (1940, 0, 60, False)]
)
def test_a_side_of_which_less_was_tested_than_the_policy_takes_is_no_pass(
    rows_used: int, unknown: int, shared: int, lacks: bool
) -> None:
    evidence = measured()
    data = tuple(replace(side, rows_used=rows_used, unknown_labels=unknown) for side in evidence.data)
    found = verdict(replace(evidence, data=data, splits=replace(evidence.splits, shared_rows=shared)))
    said = [message for message in messages(found, ReasonCode.PG006) if "rows were tested" in message]
    assert bool(said) is lacks
    assert not said or "Of the members 181 rows were tested; the policy takes 2,000 of 2,000." in said


def test_a_sample_that_the_policy_in_force_caps_is_enough() -> None:
    evidence = measured()
    data = tuple(replace(side, rows_used=500) for side in evidence.data)
    capped = "version: 1\nsources: {max_rows: 500}\n"
    assert verdict(replace(evidence, data=data), capped).outcome is Outcome.PASS


def test_reference_models_of_another_seed_than_the_policys_are_no_pass() -> None:
    policy = "version: 1\nattacks: {gating: [confidence, loss, entropy, modified_entropy, calibrated], references: 16, seed: 4}\n"
    evidence = measured()
    validity = replace(evidence.validity, positive_control_auc=0.8, positive_control_ci_low=0.7)

    def said(seed: int) -> list[str]:
        calibrated = attack("calibrated", 0.51, references=16, references_origin="clone", seed=seed)
        return messages(
            verdict(replace(with_attack(evidence, calibrated), validity=validity), policy), ReasonCode.PG006
        )

    assert said(4) == []
    assert said(9) == ["The reference models of calibrated were trained with seed 9; the policy names 4."]
