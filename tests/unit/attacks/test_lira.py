"""The likelihood-ratio attacks: whom they call a member, and with which spread."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from mlflow_privacy_gate.attacks import lira
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.errors import CouldNotJudge


def drawn(count: int, n: int, seed: int = 0) -> tuple[NDArray[np.float64], References]:
    """Scores that rise by one on rows the model was trained on, and a target trained on the first half."""
    rng = np.random.default_rng(seed)
    difficulty, spread = rng.normal(0, 3, n), rng.uniform(0.5, 2, n)
    in_mask = rng.random((count, n)) < 0.5
    scores = difficulty + spread * rng.normal(size=(count, n)) + in_mask
    target = difficulty + spread * rng.normal(size=n) + (np.arange(n) < n // 2)
    return target, References(scores, in_mask, "clone")


def test_one_sided_scores_only_the_row_above_high_and_two_sided_both() -> None:
    references = References(np.array([[-1.0] * 3, [1.0] * 3, [0.0] * 3]), np.zeros((3, 3), dtype=np.bool_), "clone")
    below, at, above = lira.offline(np.array([-30.0, 0.0, 30.0]), references)
    assert below < at < above
    below, at, above = lira.offline_two_sided(np.array([-30.0, 0.0, 30.0]), references)
    assert below == above > at


def test_the_far_tail_keeps_its_order() -> None:
    references = References(np.array([[-1.0] * 2, [1.0] * 2]), np.zeros((2, 2), dtype=np.bool_), "clone")
    far, farther = lira.offline(np.array([20.0, 30.0]), references)
    assert norm.cdf(far) == norm.cdf(farther) == 1.0
    assert far < farther


def test_few_references_share_one_spread_centred_per_row() -> None:
    target, references = drawn(63, 40)
    out = np.ma.array(references.scores, mask=references.in_mask)
    squares = ((out - out.mean(axis=0)) ** 2).sum()
    sigma = np.sqrt(squares / ((~references.in_mask).sum() - references.n))
    expected = (target - out.mean(axis=0)) / sigma
    np.testing.assert_allclose(lira.offline(target, references), expected, rtol=1e-12)


def test_from_64_references_each_row_has_its_own_spread() -> None:
    target, references = drawn(64, 40)
    out = np.ma.array(references.scores, mask=references.in_mask)
    expected = (target - out.mean(axis=0)) / out.std(axis=0, ddof=1)
    np.testing.assert_allclose(lira.offline(target, references), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [16, 64])
def test_online_is_the_ratio_of_two_normal_likelihoods(count: int) -> None:
    target, references = drawn(count, 60)
    terms = []
    for mask in (references.in_mask, ~references.in_mask):
        chosen = np.ma.array(references.scores, mask=~mask)
        pooled = np.sqrt(((chosen - chosen.mean(axis=0)) ** 2).sum() / (mask.sum() - references.n))
        sigma = chosen.std(axis=0, ddof=1) if count >= 64 else pooled
        terms.append(norm.logpdf(target, chosen.mean(axis=0), sigma))
    np.testing.assert_allclose(lira.online(target, references), terms[0] - terms[1], rtol=1e-9, atol=1e-12)


def test_models_that_agree_exactly_do_not_divide_by_zero() -> None:
    in_mask = np.array([[True] * 2, [True] * 2, [False] * 2, [False] * 2])
    scores = np.where(in_mask, 2.0, 1.0)
    references = References(scores, in_mask, "clone")
    np.testing.assert_allclose(lira.offline(np.array([1.0, 2.0]), references), [0, 1 / lira.SIGMA_FLOOR])
    out_like, in_like = lira.online(np.array([1.0, 2.0]), references)
    assert np.isfinite([out_like, in_like]).all()
    assert out_like < 0 < in_like


def test_rows_without_two_models_are_left_out_of_both_and_of_the_pooled_spread() -> None:
    target, references = drawn(16, 50)
    in_mask = references.in_mask.copy()
    in_mask[:, 0], in_mask[:, 1] = True, False
    in_mask[0, 0] = False
    scores = references.scores.copy()
    scores[:, 0] *= 1e6
    thinned = References(scores, in_mask, "clone")
    offline, online = lira.offline(target, thinned), lira.online(target, thinned)
    assert np.flatnonzero(np.isnan(offline)).tolist() == [0]
    assert np.flatnonzero(np.isnan(online)).tolist() == [0, 1]
    assert np.abs(offline[1:]).max() < 100


def test_online_without_any_in_model_cannot_judge() -> None:
    target, references = drawn(16, 20)
    foreign = References(references.scores, np.zeros_like(references.in_mask), "logged_models")
    with pytest.raises(CouldNotJudge, match="use more references"):
        lira.online(target, foreign)
    assert np.isfinite(lira.offline(target, foreign)).all()


@pytest.mark.parametrize("attack", [lira.offline, lira.offline_two_sided, lira.online])
def test_the_order_of_rows_changes_no_bit(attack: object) -> None:
    target, references = drawn(16, 200)
    order = np.random.default_rng(1).permutation(200)
    assert callable(attack)
    np.testing.assert_array_equal(attack(target[order], references.take(order)), attack(target, references)[order])


def test_online_sees_more_than_offline_on_a_shift_it_can_learn() -> None:
    from mlflow_privacy_gate.stats import attack_auc

    target, references = drawn(64, 4000)
    aucs = [
        attack_auc(s[:2000], s[2000:])
        for s in (lira.online(target, references), lira.offline(target, references), target)
    ]
    assert aucs[0] > aucs[1] > aucs[2] > 0.5
