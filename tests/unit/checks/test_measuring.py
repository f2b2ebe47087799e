"""Promises on what a whole check measures: on any backend, in any order of rows, with every attack, in the tails too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from fakes import TARGET, ConstantModel, FakeModel, FakeRegistry, by_probability, rows, splits, tools
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.shadow_protocol import NOTE as PROTOCOL_NOTE
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.checks.checking import Wishes, run_check
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.models._interface import LoadedModel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.policy import Policy, parse_policy
from mlflow_privacy_gate.splits._interface import Splits
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS, Membership, Outcome, ReasonCode

ROWS = 250
MEMBERS, NON_MEMBERS = rows(ROWS, seed=1), rows(ROWS, seed=2)
SPLITS = splits(MEMBERS, NON_MEMBERS)
EVERY_REFERENCE_ATTACK = (
    "calibrated", "lira_offline", "lira_offline_two_sided", "lira_online", "rmia", "shadow", "shadow_protocol",
    "margin_gap", "quantile",
)  # fmt: skip
Check = Callable[..., CheckResult]


@pytest.fixture
def checked(tmp_path: Path) -> Check:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")

    def check(model: LoadedModel, policy: Policy, found: Splits = SPLITS, **wishes: Any) -> CheckResult:
        return run_check("models:/credit/1", policy, tools(FakeRegistry(tmp_path), model, found), Wishes(**wishes))

    return check


def fitted(estimator: Any, members: pd.DataFrame = MEMBERS) -> SklearnModel:
    return SklearnModel(estimator.fit(members.drop(columns=TARGET), members[TARGET]))


def policy(attacks: str, more: str = "") -> Policy:
    return parse_policy(f"version: 1\nattacks: {{{attacks}}}\n{more}")


def measured_of(result: CheckResult) -> Evidence:
    """Give the evidence without what differs from test to test whatever was measured."""
    evidence = result.evidence
    return replace(evidence, nonce="", splits=replace(evidence.splits, membership=Membership.DECLARED))


def codes(result: CheckResult) -> set[ReasonCode]:
    return {finding.code for finding in result.findings}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_whole_check_gives_the_same_bits_on_every_backend(checked: Check, backend: str) -> None:
    thorough = policy(f"references: 4, report: [{', '.join(EVERY_REFERENCE_ATTACK)}]")
    model = fitted(RandomForestClassifier(10, n_jobs=-1, random_state=0))
    alone = checked(model, thorough)
    with joblib.parallel_config(backend, n_jobs=2):
        assert measured_of(checked(model, thorough)) == measured_of(alone)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(10, bootstrap=False, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["forest", "regression"],
)
def test_a_whole_check_gives_the_same_bits_in_every_order_of_rows(checked: Check, estimator: Any) -> None:
    thorough = policy(f"references: 4, report: [{', '.join(EVERY_REFERENCE_ATTACK)}]")
    model = fitted(estimator)
    repeated = [pd.concat((side, side.head(20)), ignore_index=True) for side in (MEMBERS, NON_MEMBERS)]
    straight = checked(model, thorough, splits(*repeated), subgroup_columns=("b",))
    for seed in range(2):
        turned = splits(*(side.sample(frac=1, random_state=seed).reset_index(drop=True) for side in repeated))
        assert measured_of(checked(model, thorough, turned, subgroup_columns=("b",))) == measured_of(straight)


def test_a_sample_of_too_many_rows_is_the_same_in_every_order_of_rows(checked: Check) -> None:
    sampling = policy("seed: 3", "sources: {max_rows: 200}\n")
    model = fitted(DecisionTreeClassifier(random_state=0))
    straight = checked(model, sampling)
    turned = checked(model, sampling, splits(MEMBERS.iloc[::-1], NON_MEMBERS.iloc[::-1]))
    assert measured_of(turned) == measured_of(straight)
    assert "A seeded sample of 200 of 250 members was tested." in straight.evidence.limitations


def test_every_attack_can_be_asked_for_as_a_report_and_every_one_of_them_can_decide(checked: Check) -> None:
    named = ", ".join(EVERY_REFERENCE_ATTACK)
    model = fitted(RandomForestClassifier(10, random_state=0))
    reported = checked(model, policy(f"references: 16, report: [{named}]"))
    assert {facts.id for facts in reported.evidence.attacks} == {
        *EVERY_REFERENCE_ATTACK,
        *KIND_ATTACKS["classification"],
    }
    for facts in reported.evidence.attacks:
        auc = facts.metric("auc")
        assert auc is not None, facts.id
        assert auc.value is not None, facts.id
        assert auc.ci_low is not None, facts.id
        assert auc.ci_low <= auc.value <= (auc.ci_high or 0), facts.id
    deciding = checked(model, policy(f"references: 16, gating: [confidence, loss, entropy, modified_entropy, {named}]"))
    over = {finding.attack for finding in deciding.findings if finding.code is ReasonCode.PG201}
    assert set(EVERY_REFERENCE_ATTACK) - over <= {"lira_offline_two_sided"}, "a memorised forest is found by each"
    assert ReasonCode.PG006 not in codes(deciding)


def test_the_protocols_own_mean_is_stated_with_the_note_that_it_hides_leaks(checked: Check) -> None:
    result = checked(fitted(RandomForestClassifier(10, random_state=0)), policy("report: [shadow_protocol]"))
    facts = result.evidence.attack("shadow_protocol")
    assert facts is not None
    mean = facts.metric("auc_mean_over_folds")
    assert mean is not None
    assert mean.value is not None
    assert 0.5 < mean.value <= 1
    assert PROTOCOL_NOTE in facts.notes


def test_rmia_states_the_papers_share_beside_the_ratio_that_decides(checked: Check) -> None:
    facts = checked(
        fitted(RandomForestClassifier(10, random_state=0)), policy("references: 8, report: [rmia]")
    ).evidence.attack("rmia")
    assert facts is not None
    ratio, share = facts.metric("auc"), facts.metric("auc_of_share")
    assert ratio is not None
    assert share is not None
    assert ratio.value is not None
    assert share.value is not None
    # each non-member counts against itself: half a row of the population at most
    assert 0 <= ratio.value - share.value <= 1 / (2 * ROWS) + 1e-3
    assert any(f"gives AUC {share.value:.4f}" in note for note in facts.notes)


@pytest.mark.parametrize("preset", ["standard", "thorough"])
def test_findings_name_attack_number_interval_and_limit(checked: Check, preset: str) -> None:
    result = checked(
        fitted(DecisionTreeClassifier(min_samples_leaf=4, random_state=0)),
        parse_policy(f"version: 1\npreset: {preset}\n"),
    )
    over = {one.attack: one for one in result.findings if one.code is ReasonCode.PG201}
    assert result.attack in over
    for name, finding in over.items():
        facts = result.evidence.attack(name or "")
        assert facts is not None
        auc = facts.auc
        assert auc is not None
        assert auc.value is not None
        assert (finding.value, finding.limit) == (auc.value, 0.55)
        for part in (f"The attack {name}", f"AUC {auc.value:.4f}", f"{auc.ci_low:.4f} to {auc.ci_high:.4f}", "0.55"):
            assert part in finding.message
        # the largest of several was chosen, and its interval says so
        assert (facts.metric("auc_worst") is not None) == (name == result.attack)
        assert ("wider for being the worst of several" in finding.message) == (name == result.attack)


class TailModel(FakeModel):
    """Says the same of everybody, but for ten members of which it is surer than of anyone else."""

    remembered = frozenset(rows(1000, seed=5)["a"].head(10))
    forgotten = False

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        known = features["a"].isin(self.remembered).to_numpy()
        shade = 0.5 + 0.2 / (1 + np.exp(-features["b"].to_numpy()))
        return by_probability(np.where(known, 0.05 if self.forgotten else 0.99, shade), labels)


def tail_splits() -> Splits:
    """Members and non-members whose other column holds the same values, so that all but ten rows cannot be told apart."""
    members, non_members = rows(1000, seed=5), rows(1000, seed=6)
    non_members["b"] = members["b"]
    return splits(members, non_members)


def test_ten_rows_in_a_thousand_that_are_always_found_hide_in_the_auc_and_show_in_the_tail(checked: Check) -> None:
    result = checked(TailModel(), policy("seed: 0"), tail_splits())
    assert result.confidence_auc == pytest.approx(0.505, abs=0.002)
    assert result.verdict is Outcome.PASS
    facts = result.evidence.attack("confidence")
    assert facts is not None
    tpr = facts.metric("tpr_at_fpr_0.001")
    assert tpr is not None
    assert tpr.value is not None
    assert tpr.value >= 0.01
    assert "The rows that stand out most, which an average hides" in result.card
    limited = checked(TailModel(), policy("seed: 0", "margin: {tpr_at_fpr: {0.001: 0.005}}\n"), tail_splits())
    assert limited.verdict is Outcome.FAIL
    assert ReasonCode.PG202 in codes(limited)
    finding = next(one for one in limited.findings if one.code is ReasonCode.PG202)
    assert finding.limit == 0.005


def test_rows_that_are_provably_out_do_not_look_like_a_leak_of_members(checked: Check) -> None:
    model = TailModel()
    model.forgotten = True
    result = checked(model, policy("seed: 0"), tail_splits())
    assert result.confidence_auc == pytest.approx(0.495, abs=0.002)
    assert result.verdict is Outcome.PASS


def test_a_real_model_that_memorised_random_labels_fails_and_one_that_could_not_passes(checked: Check) -> None:
    assert checked(fitted(DecisionTreeClassifier(random_state=0)), policy("seed: 0")).verdict is Outcome.FAIL
    assert checked(fitted(LogisticRegression(C=1e-6)), policy("seed: 0")).verdict is Outcome.PASS


def cancer(seed: int = 0) -> Splits:
    features, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    members, non_members = train_test_split(
        features.assign(**{TARGET: labels}), test_size=0.5, stratify=labels, random_state=seed
    )
    return splits(members.reset_index(drop=True), non_members.reset_index(drop=True))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["standard", "thorough"])
def test_a_regression_is_judged_by_its_errors_under_every_preset(checked: Check, preset: str) -> None:
    sides = [rows(600, seed=seed) for seed in (1, 2)]
    for side, seed in zip(sides, (3, 4), strict=True):
        side[TARGET] = side["a"] + np.random.default_rng(seed).normal(size=len(side))
    found, chosen = splits(*sides), parse_policy(f"version: 1\npreset: {preset}\n")
    by_heart = checked(fitted(DecisionTreeRegressor(random_state=0), sides[0]), chosen, found)
    assert (by_heart.verdict, by_heart.attack, by_heart.attack_auc) == (Outcome.FAIL, "error", 1.0)
    assert checked(fitted(LinearRegression(), sides[0]), chosen, found).verdict is Outcome.PASS


def test_a_forest_with_ten_row_leaves_passes_standard_and_fails_thorough_and_a_quiet_regression_passes_both(
    checked: Check,
) -> None:
    found = cancer()
    quiet = fitted(RandomForestClassifier(min_samples_leaf=10, random_state=0), found.members.frame)
    regression = fitted(make_pipeline(StandardScaler(), LogisticRegression(C=0.001)), found.members.frame)
    standard, thorough = parse_policy("version: 1\n"), parse_policy("version: 1\npreset: thorough\n")
    assert [checked(quiet, each, found).verdict for each in (standard, thorough)] == [Outcome.PASS, Outcome.FAIL]
    assert [checked(regression, each, found).verdict for each in (standard, thorough)] == [Outcome.PASS, Outcome.PASS]


def learnable(count: int, seed: int) -> pd.DataFrame:
    """Give rows whose label hangs on their first number, loosely."""
    frame = rows(count, seed=seed)
    noise = np.random.default_rng(seed + 100).normal(size=count)
    frame[TARGET] = (frame["a"] + noise > 0).astype("int64")
    return frame


@pytest.mark.slow
def test_the_sensitive_preset_passes_a_quiet_model_on_enough_rows_and_fails_a_leaky_one(checked: Check) -> None:
    sensitive = parse_policy("version: 1\npreset: sensitive\n")
    found = splits(*(learnable(8000, seed) for seed in (1, 2)))
    quiet = checked(fitted(LogisticRegression(C=1e-4), found.members.frame), sensitive, found)
    assert codes(quiet) <= {ReasonCode.PG106}, [finding.message for finding in quiet.findings]
    assert (quiet.verdict, quiet.margin) == (Outcome.PASS, 0.52)
    assert quiet.evidence.gating == (
        *("confidence", "loss", "entropy", "modified_entropy"),
        *("calibrated", "lira_offline", "rmia"),
    )
    leaky = checked(
        fitted(RandomForestClassifier(20, min_samples_leaf=20, random_state=0), found.members.frame), sensitive, found
    )
    assert leaky.verdict is Outcome.FAIL
    assert {ReasonCode.PG201, ReasonCode.PG202} <= codes(leaky)


def test_the_sensitive_preset_cannot_judge_on_few_rows(checked: Check) -> None:
    few = parse_policy("version: 1\npreset: sensitive\n")
    result = checked(ConstantModel(), few)
    assert result.verdict is Outcome.INCONCLUSIVE
    needed = [finding.message for finding in result.findings if finding.code is ReasonCode.PG105]
    assert any("needs 3,600 rows a side" in message for message in needed)
