from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dp_extra import needs_dp_accounting
from evidence_builder import passing_evidence
from fakes import TARGET, FakeModel, FakeRegistry, splits, tools
from sklearn.datasets import load_digits

from mlflow_privacy_gate import attacks
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.checks.attacking import Scored
from mlflow_privacy_gate.checks.checking import Wishes, run_check
from mlflow_privacy_gate.checks.claiming import EARLIER_TRAINING, large_delta, privacy_budget
from mlflow_privacy_gate.checks.found_card import GivenCard
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.facts import CardClaims, DifferentialPrivacyClaim
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.policy import built_in_policy
from mlflow_privacy_gate.policy.privacy_budget import contradictions
from mlflow_privacy_gate.stats import auc_ceiling, roc_points, tpr_ceiling
from mlflow_privacy_gate.stats.accounting import account_prv
from mlflow_privacy_gate.vocabulary import ReasonCode

EXAMPLE = Path(__file__).parents[3] / "examples" / "dp_training" / "network.py"
DELTA = 1e-5
CLAIM = DifferentialPrivacyClaim(1.0, DELTA, "person")


def scored(name: str, members: Any, others: Any) -> Scored:
    members, others = np.asarray(members, dtype=float), np.asarray(others, dtype=float)
    return Scored(name, np.concatenate((members, others)), np.repeat([True, False], [members.size, others.size]))


def test_on_exchangeable_noise_the_claim_is_contradicted_in_at_most_one_draw_in_twenty() -> None:
    claim = DifferentialPrivacyClaim(0.0, DELTA)
    contradicted = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        drawn = {name: scored(name, rng.normal(size=250), rng.normal(size=250)) for name in ("loss", "entropy")}
        facts, _ = privacy_budget(claim, drawn, seed=seed)
        assert facts.epsilon_lower_bound is not None
        judged = passing_evidence("5b" * 32, card=CardClaims(differential_privacy=claim), privacy_budget=facts)
        contradicted += any(finding.code is ReasonCode.PG205 for finding in contradictions(judged))
    assert contradicted <= 10


def test_an_attack_that_is_told_of_membership_has_no_say() -> None:
    rng = np.random.default_rng(0)
    told = scored("quantile", np.full(200, 9.0), np.zeros(200))
    facts, _ = privacy_budget(CLAIM, {"quantile": told, "loss": scored("loss", *rng.normal(size=(2, 200)))}, seed=0)
    assert (facts.attack, facts.epsilon_lower_bound) == ("loss", 0.0)
    assert privacy_budget(CLAIM, {"quantile": told}, seed=0)[0].epsilon_lower_bound is None


def test_the_facts_name_rows_seed_and_confidence() -> None:
    facts, _ = privacy_budget(CLAIM, {"loss": scored("loss", np.full(300, 9.0), np.zeros(200))}, seed=7)
    assert (facts.attack, facts.level, facts.seed) == ("loss", 0.95, 7)
    assert (facts.rows_members, facts.rows_non_members) == (150, 100)
    assert facts.epsilon_lower_bound is not None
    assert facts.epsilon_lower_bound > 3


@needs_dp_accounting
def test_a_stated_training_is_recomputed_both_ways() -> None:
    claim = DifferentialPrivacyClaim(1.0, DELTA, "person", "rdp", 0.05, 1.0, 300)
    facts, notes = privacy_budget(claim, {}, seed=0)
    assert [(one.method, one.accountant) for one in facts.recomputed] == [
        ("rdp", "sampled-gaussian-rdp"),
        ("prv", "dp-accounting"),
    ]
    assert [one.epsilon for one in facts.recomputed] == pytest.approx([6.4597, 5.7953], abs=1e-3)
    assert notes == (EARLIER_TRAINING,)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (CLAIM, "does not state sampling rate, noise and steps"),
        (DifferentialPrivacyClaim(1.0, 0.0, "person", "rdp", 0.05, 1.0, 300), "no finite one at delta 0"),
    ],
)
def test_what_is_not_recomputed_is_said_with_its_reason(claim: DifferentialPrivacyClaim, why: str) -> None:
    facts, notes = privacy_budget(claim, {}, seed=0)
    assert facts.recomputed == ()
    assert [why in note for note in notes] == [False, True]


def test_a_delta_that_would_let_a_row_be_published_is_called_out() -> None:
    assert large_delta(DifferentialPrivacyClaim(1.0, 0.00099), 1000) == ()
    (note,) = large_delta(DifferentialPrivacyClaim(1.0, 0.001), 1000)
    assert "delta 0.001 is not below 1/1,000" in note


@dataclass
class NetworkModel(FakeModel):
    """The example's network behind the port."""

    network: Any = None

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        return Observations.from_probabilities(
            self.network.probabilities(features.to_numpy(dtype=float)), labels, np.arange(10)
        )


@pytest.fixture(scope="module")
def networks() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("dp_training_network", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def digits() -> tuple[pd.DataFrame, pd.DataFrame]:
    images, labels = load_digits(return_X_y=True)
    frame: pd.DataFrame = pd.DataFrame(images / 16 - 0.3, columns=[f"p{at}" for at in range(64)]).assign(
        **{TARGET: labels}
    )
    order = np.random.default_rng(0).permutation(len(frame))
    half = len(frame) // 2
    return frame.iloc[order[:half]].reset_index(drop=True), frame.iloc[order[half:]].reset_index(drop=True)


def checked(tmp_path: Path, network: Any, sides: tuple[pd.DataFrame, pd.DataFrame], claim: str) -> CheckResult:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
    card = f"---\nprivacy_gate:\n  differential_privacy: {{{claim}}}\n---\n# Digits\n"
    return run_check(
        "models:/digits/1",
        built_in_policy(),
        tools(FakeRegistry(tmp_path), NetworkModel(network=network), splits(*sides)),
        Wishes(card=GivenCard(card)),
    )


def trained(networks: ModuleType, sides: tuple[pd.DataFrame, pd.DataFrame], **how: Any) -> Any:
    members = sides[0]
    images, labels = members.drop(columns=TARGET).to_numpy(), members[TARGET].to_numpy()
    return networks.train(images, labels, 10, networks.Training(**how), seed=1)


@needs_dp_accounting
def test_a_model_trained_at_epsilon_one_respects_every_ceiling_and_keeps_its_claim(
    tmp_path: Path, networks: ModuleType, digits: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    rate, noise, steps = 0.5, 14.0, 50
    epsilon = account_prv(rate, noise, steps, DELTA).epsilon
    assert 0.9 < epsilon <= 1
    network = trained(networks, digits, steps=steps, sampling_rate=rate, learning_rate=0.25, noise_multiplier=noise)
    result = checked(
        tmp_path,
        network,
        digits,
        f"epsilon: 1.0, delta: 1.0e-5, sampling_rate: {rate}, noise_multiplier: {noise}, steps: {steps}",
    )
    evidence = result.evidence
    assert ReasonCode.PG205 not in [finding.code for finding in result.findings]
    assert evidence.privacy_budget is not None
    recomputed = evidence.privacy_budget.by("prv")
    assert recomputed is not None
    assert recomputed.epsilon == pytest.approx(epsilon)
    assert evidence.privacy_budget.epsilon_lower_bound is not None
    assert evidence.privacy_budget.epsilon_lower_bound <= epsilon
    for attack in evidence.attacks:
        auc, tpr = attack.metric("auc"), attack.metric("tpr_at_fpr_0.01")
        assert auc is not None
        assert auc.value is not None
        assert auc.value <= auc_ceiling(epsilon, DELTA)
        assert tpr is None or tpr.value is None or tpr.value <= tpr_ceiling(epsilon, DELTA, 0.01)


def above_the_ceiling(network: Any, sides: tuple[pd.DataFrame, pd.DataFrame], epsilon: float) -> set[str]:
    """Name the attacks whose ROC curve, in either tail, lies above what epsilon allows: where ten rows fix the rates, or by ten rows."""
    frame = pd.concat(sides)
    answers = network.probabilities(frame.drop(columns=TARGET).to_numpy(dtype=float))
    said = Observations.from_probabilities(answers, frame[TARGET].to_numpy(), np.arange(10))
    members = np.arange(len(frame)) < len(sides[0])
    ten, found = 10 / min(members.sum(), (~members).sum()), set()
    for attack in ("confidence", "loss", "entropy", "modified_entropy", "margin_gap"):
        scores = attacks.scores(attack, said)
        points = roc_points(scores[members], scores[~members])
        for wrong, right in ((points.fpr, points.tpr), (1 - points.tpr, 1 - points.fpr)):
            fixed = (wrong >= ten) & (right <= 1 - ten)
            if (right > allowed(epsilon, wrong))[fixed].any() or (right > allowed(epsilon, wrong + ten) + ten).any():
                found.add(attack)
    return found


def allowed(epsilon: float, rates: Any) -> Any:
    return np.array([tpr_ceiling(epsilon, DELTA, float(rate)) for rate in np.clip(rates, 0, 1)])


@needs_dp_accounting
def test_no_roc_curve_of_a_model_trained_at_epsilon_one_crosses_the_ceiling_in_either_tail(
    networks: ModuleType, digits: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    rate, noise, steps = 0.5, 14.0, 50
    epsilon = account_prv(rate, noise, steps, DELTA).epsilon
    private = trained(networks, digits, steps=steps, sampling_rate=rate, learning_rate=0.25, noise_multiplier=noise)
    assert above_the_ceiling(private, digits, epsilon) == set()


def test_the_roc_curves_of_a_model_that_memorised_cross_the_ceiling(
    networks: ModuleType, digits: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    few, others = (side.head(200).assign(**{TARGET: np.random.default_rng(0).integers(0, 10, 200)}) for side in digits)
    memorised = trained(networks, (few, others), steps=1500, sampling_rate=0.5, learning_rate=0.5)
    assert {"confidence", "loss"} <= above_the_ceiling(memorised, (few, others), 1.0)


def test_a_model_that_memorised_and_claims_epsilon_one_is_contradicted(
    tmp_path: Path, networks: ModuleType, digits: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    few = digits[0].head(200).assign(**{TARGET: np.random.default_rng(0).integers(0, 10, 200)})
    others = digits[1].head(200).assign(**{TARGET: np.random.default_rng(1).integers(0, 10, 200)})
    network = trained(networks, (few, others), steps=1500, sampling_rate=0.5, learning_rate=0.5)
    result = checked(tmp_path, network, (few, others), "epsilon: 1.0, delta: 1.0e-5, unit: person")
    (finding,) = [finding for finding in result.findings if finding.code is ReasonCode.PG205]
    assert finding.value is not None
    assert finding.value > 2
    assert "PG205" in result.evidence.reason_codes
    assert "Least epsilon that the attacks allow" in result.card
    assert EARLIER_TRAINING in result.evidence.limitations
    assert read_statement(open_envelope(result.envelope).payload) == result.evidence


def test_a_delta_above_one_over_the_rows_is_a_limit_of_the_test(
    tmp_path: Path, networks: ModuleType, digits: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    network = trained(networks, digits, steps=20, sampling_rate=0.2, learning_rate=0.2)
    result = checked(tmp_path, network, digits, "epsilon: 3.0, delta: 0.01")
    assert any("delta 0.01 is not below 1/898" in limit for limit in result.evidence.limitations)


def test_the_closed_form_of_a_gradients_norm_equals_the_gradient_written_out(networks: ModuleType) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(5, 3)), rng.integers(0, 2, 5)
    network = networks.Network(rng.normal(size=(4, 6)), rng.normal(size=(7, 2)))

    def loss(first: Any, second: Any, row: int) -> float:
        answer = networks.Network(first, second).probabilities(rows[row : row + 1])
        return -float(np.log(answer[0, labels[row]]))

    norms = networks.gradient_norms(network, rows, labels)
    for row in range(5):
        total = 0.0
        for at, matrix in enumerate((network.first, network.second)):
            for place in np.ndindex(matrix.shape):
                moved = [network.first.copy(), network.second.copy()]
                moved[at][place] += 1e-6
                above = loss(moved[0], moved[1], row)
                moved[at][place] -= 2e-6
                total += ((above - loss(moved[0], moved[1], row)) / 2e-6) ** 2
        assert norms[row] == pytest.approx(np.sqrt(total), rel=1e-5)
