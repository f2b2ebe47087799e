"""The protocol's figure, reproduced, and what it hides."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.shadow_protocol import ProtocolResult, cross_validated, scores, shadow_protocol
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import attack_auc

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "shadow"


@pytest.mark.parametrize("model", ["rf_overfit", "rf_nobootstrap", "rf_leaf20", "lr_C0.01", "lr_C1e4"])
def test_the_published_figures_are_reproduced(model: str) -> None:
    expected = json.loads((VECTORS / "results.json").read_text())["models"][model]["seed_rf_cv"]
    with np.load(VECTORS / "adult_losses.npz") as adult:
        second = adult[f"{model}_proba1"]
        observed = Observations.from_probabilities(np.stack((1 - second, second), axis=1), adult["label"], [0, 1])
        from_losses = cross_validated(adult[f"{model}_loss"], adult["is_member"])
        from_model = shadow_protocol(observed, adult["is_member"])
    for result in (from_losses, from_model):
        assert result.mean == pytest.approx(expected["mean"], abs=0.01)
        assert result.std == pytest.approx(expected["std"], abs=0.01)
        assert result.acceptable is expected["acceptable"]


def test_it_passes_losses_whose_true_auc_is_two_thirds() -> None:
    rng = np.random.default_rng(0)
    # Exponential losses with means 1 and 2: P(member < non-member) = 2/3.
    losses = np.concatenate((rng.exponential(1, 1000), rng.exponential(2, 1000)))
    is_member = np.arange(2000) < 1000
    assert attack_auc(-losses[is_member], -losses[~is_member]) > 0.64
    assert cross_validated(losses, is_member).acceptable


def test_the_limit_is_sixty_hundredths_and_at_it_fails() -> None:
    assert ProtocolResult((0.6,), 0.5999, 0.0).acceptable
    assert not ProtocolResult((0.6,), 0.60, 0.0).acceptable


def test_mean_and_spread_are_those_of_the_folds() -> None:
    losses = np.random.default_rng(1).random(100)
    result = cross_validated(losses, np.arange(100) % 2 == 0)
    assert len(result.folds) == 5
    assert result.mean == pytest.approx(np.mean(result.folds))
    assert result.std == pytest.approx(np.std(result.folds))


def test_out_of_fold_scores_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(2)
    is_member = np.arange(200) < 100
    second = np.where(is_member, rng.beta(5, 1, 200), rng.beta(1, 1, 200))
    probabilities = np.stack((1 - second, second), axis=1)
    order = rng.permutation(200)
    given = Observations.from_probabilities(probabilities, np.ones(200, dtype=int), [0, 1])
    shuffled = Observations.from_probabilities(probabilities[order], np.ones(200, dtype=int), [0, 1])
    straight = scores(given, is_member=is_member, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(
        scores(shuffled, is_member=is_member[order], rng=np.random.default_rng(3)), straight[order]
    )
    assert 0.55 < attack_auc(straight[is_member], straight[~is_member]) < 0.95


def test_nan_and_too_few_rows_are_errors() -> None:
    with pytest.raises(ObservationError, match="1 of 20 rows have a loss that is NaN"):
        cross_validated(np.array([np.nan] + [0.0] * 19), np.arange(20) % 2 == 0)
    with pytest.raises(ObservationError, match="got 4 members and 16 non-members"):
        cross_validated(np.zeros(20), np.arange(20) < 4)
    with pytest.raises(ObservationError, match="one shape"):
        cross_validated(np.zeros(20), np.zeros(19, dtype=np.bool_))
