from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlflow_privacy_gate.stats import (
    attack_auc,
    balanced_accuracy,
    bootstrap_intervals,
    delong_interval,
    max_auc_interval,
    rank_test,
    roc_points,
    summarise,
    tpr_at_fpr,
)
from mlflow_privacy_gate.stats.placements import place
from mlflow_privacy_gate.stats.scores import sort_scores

Scores = NDArray[np.float64]
FPRS = (0.0, 0.01, 0.3)

coarse = st.integers(-3, 3).map(float)
anything = st.floats(allow_nan=False, allow_infinity=True)
side = st.one_of(st.lists(coarse, min_size=1, max_size=40), st.lists(anything, min_size=1, max_size=40)).map(np.array)


def everything(members: Scores, non_members: Scores) -> dict[str, object]:
    """Every figure of one pair of sides, as plain JSON values."""
    points = roc_points(members, non_members)
    boot = bootstrap_intervals(members, non_members, fprs=FPRS, replicates=30, rng=np.random.default_rng(0))
    worst = max_auc_interval(
        {"a": (members, non_members), "b": (members, non_members)}, replicates=50, rng=np.random.default_rng(0)
    )
    return {
        "summary": dataclasses.asdict(summarise(members, non_members, fprs=FPRS)),
        "bootstrap": dataclasses.asdict(boot),
        "worst": dataclasses.asdict(worst),
        "balanced": dataclasses.asdict(balanced_accuracy(members, non_members)),
        "rank_test": dataclasses.asdict(rank_test(members, non_members)),
        "roc": [points.fpr.tolist(), points.tpr.tolist(), points.auc],
    }


@settings(max_examples=50)
@given(side, side)
def test_every_result_is_finite_json(members: Scores, non_members: Scores) -> None:
    text = json.dumps(everything(members, non_members), allow_nan=False)
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@settings(max_examples=50)
@given(side, side, st.randoms(use_true_random=False))
def test_row_order_changes_no_bit(members: Scores, non_members: Scores, random: object) -> None:
    shuffle = random.sample  # type: ignore[attr-defined]
    shuffled = [np.array(shuffle(list(scores), len(scores))) for scores in (members, non_members)]
    assert everything(members, non_members) == everything(*shuffled)


@settings(max_examples=50)
@given(side, side)
def test_an_increasing_map_changes_no_bit(members: Scores, non_members: Scores) -> None:
    values, ranks = np.unique(np.concatenate((members, non_members)), return_inverse=True)
    mapped = np.exp(ranks / max(1, len(values)))
    assert everything(members, non_members) == everything(mapped[: len(members)], mapped[len(members) :])


@given(side, side)
def test_exchanging_the_sides_mirrors_the_auc_and_its_interval(members: Scores, non_members: Scores) -> None:
    counted, exchanged = (place(sort_scores(*pair)) for pair in ((members, non_members), (non_members, members)))
    assert counted.mirrored == exchanged
    assert attack_auc(members, non_members) + attack_auc(non_members, members) == pytest.approx(1.0, abs=1e-15)
    here, there = delong_interval(members, non_members), delong_interval(non_members, members)
    assert (here.low, here.high) == pytest.approx((1 - there.high, 1 - there.low), abs=1e-12)
    assert here.degenerate is there.degenerate


@given(side, side)
def test_negating_the_scores_mirrors_the_auc(members: Scores, non_members: Scores) -> None:
    assert attack_auc(-members, -non_members) == pytest.approx(1 - attack_auc(members, non_members), abs=1e-15)


@given(side, side)
def test_auc_equals_a_comparison_of_every_pair(members: Scores, non_members: Scores) -> None:
    wins = (members[:, None] > non_members).sum() + (members[:, None] == non_members).sum() / 2
    assert attack_auc(members, non_members) == float(wins) / (len(members) * len(non_members))


@given(side, side)
def test_the_interval_holds_the_auc(members: Scores, non_members: Scores) -> None:
    interval = delong_interval(members, non_members)
    assert 0.0 <= interval.low <= attack_auc(members, non_members) <= interval.upper <= interval.high <= 1.0


@given(side, side, st.floats(0, 1))
def test_tpr_at_fpr_is_a_point_of_the_curve_within_the_rate(members: Scores, non_members: Scores, fpr: float) -> None:
    result = tpr_at_fpr(members, non_members, fpr)
    points = roc_points(members, non_members)
    assert result.realised_fpr <= fpr
    assert (result.realised_fpr, result.value) in set(zip(points.fpr, points.tpr, strict=True))
    assert result.value == max(tpr for f, tpr in zip(points.fpr, points.tpr, strict=True) if f <= fpr)


@given(side, side)
def test_the_points_hold_the_auc_to_the_bit(members: Scores, non_members: Scores) -> None:
    assert roc_points(members, non_members).auc == attack_auc(members, non_members)
