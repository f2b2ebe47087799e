"""The calibrated attack against the numbers of an independent measurement."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mlflow_privacy_gate.attacks.calibrated import calibrated, scores
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.stats import attack_auc, tpr_at_fpr

VECTORS = Path(__file__).parents[2] / "data" / "vectors"


@pytest.mark.parametrize("model", ["adam", "s10"])
def test_the_lab_is_reproduced(model: str) -> None:
    expected = json.loads((VECTORS / "lab8b" / "expected.json").read_text())[model]
    with np.load(VECTORS / "lab8b" / f"scores_{model}.npz") as lab:
        references = References(lab["ref_score"], ~lab["ref_out"], "logged_models")
        member, target, published = lab["member"], lab["target_score"], lab["calibrated_score"]
    score = calibrated(target, references)
    np.testing.assert_allclose(score, published, rtol=0, atol=1e-12)
    members, non_members = score[member], score[~member]
    assert attack_auc(members, non_members) == pytest.approx(expected["cal"]["auc"], abs=1e-12)
    assert tpr_at_fpr(members, non_members, 0.01).value == pytest.approx(expected["cal"]["tpr_1"], abs=1e-12)
    assert tpr_at_fpr(members, non_members, 0.001).value == pytest.approx(expected["cal"]["tpr_01"], abs=1e-12)
    assert attack_auc(target[member], target[~member]) == pytest.approx(expected["loss"]["auc"], abs=1e-12)


def test_the_labs_figures_are_those_it_printed() -> None:
    expected = json.loads((VECTORS / "lab8b" / "expected.json").read_text())["adam"]
    figures = [
        round(expected[attack][name], 4)
        for attack, name in (("loss", "auc"), ("cal", "auc"), ("cal", "tpr_1"), ("cal", "tpr_01"))
    ]
    assert figures == [0.5709, 0.6335, 0.0715, 0.0125]


@pytest.mark.parametrize("model", ["rf_overfit", "rf_nobootstrap", "rf_leaf20", "lr_C0.01", "lr_C1e4"])
def test_calibration_on_adult_agrees_within_a_hundredth(model: str) -> None:
    expected = json.loads((VECTORS / "shadow" / "results.json").read_text())["models"][model]
    with np.load(VECTORS / "shadow" / "adult_losses.npz") as adult:
        member = adult["is_member"]
        probability = [np.clip(np.exp(-adult[f"{model}{name}"]), 1e-6, 1 - 1e-6) for name in ("_loss", "_ref_loss")]
        plain = -adult[f"{model}_loss"]
    target, shadows = (np.log(p) - np.log1p(-p) for p in probability)
    score = calibrated(target, References(shadows, np.zeros(shadows.shape, dtype=np.bool_), "logged_models"))
    assert attack_auc(score[member], score[~member]) == pytest.approx(expected["calibrated"]["auc"], abs=0.01)
    assert attack_auc(plain[member], plain[~member]) == pytest.approx(expected["direct_loss_auc"], abs=1e-12)


def test_only_models_that_did_not_see_the_row_are_asked() -> None:
    scores_of_row = np.array([[1.0], [3.0], [1000.0]])
    references = References(scores_of_row, np.array([[False], [False], [True]]), "clone")
    assert calibrated(np.array([4.0]), references)[0] == pytest.approx((4 - 2) / np.sqrt(2), abs=1e-12)


def test_a_spread_under_the_floor_counts_as_the_floor() -> None:
    references = References(np.full((5, 1), 2.0), np.zeros((5, 1), dtype=np.bool_), "clone")
    assert calibrated(np.array([3.0]), references)[0] == pytest.approx(1 / 0.1)
    assert calibrated(np.array([3.0]), references, variance_floor=0.25)[0] == pytest.approx(1 / 0.5)


def test_a_row_with_one_out_model_is_left_out_not_guessed() -> None:
    in_mask = np.array([[False, True], [False, True], [True, False]])
    answer = calibrated(np.zeros(2), References(np.ones((3, 2)), in_mask, "clone"))
    assert np.isnan(answer).tolist() == [False, True]


def test_saturated_probabilities_give_numbers() -> None:
    observed = Observations.from_probabilities([[1.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    references = References.from_observations([observed] * 3, np.zeros((3, 2), dtype=np.bool_))
    assert scores(observed, references).tolist() == [0.0, 0.0]
