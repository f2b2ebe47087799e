"""What is drawn of scores holds no row's score and no small count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.cards.curves import roc_curve, score_histogram
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.stats import attack_auc, roc_points

RNG = np.random.default_rng(11)
MEMBERS, NON_MEMBERS = RNG.normal(0.4, 1, 3000), RNG.normal(0, 1, 2500)


def test_a_thinned_curve_is_a_subset_of_the_attainable_points_with_both_ends() -> None:
    points = roc_points(MEMBERS, NON_MEMBERS)
    curve = roc_curve(points)
    attainable = set(zip(points.fpr.tolist(), points.tpr.tolist(), strict=True))
    drawn = list(zip(curve.fpr, curve.tpr, strict=True))
    assert set(drawn) <= attainable
    assert (drawn[0][0], drawn[-1]) == (0.0, (1.0, 1.0))
    assert len(drawn) < 200
    assert curve.smallest_fpr == 1 / 2500


def test_the_auc_of_the_points_a_curve_is_thinned_from_is_the_reported_one() -> None:
    assert roc_points(MEMBERS, NON_MEMBERS).auc == attack_auc(MEMBERS, NON_MEMBERS)


def test_a_curve_of_constant_scores_is_the_chance_line() -> None:
    curve = roc_curve(roc_points(np.full(50, 0.5), np.full(40, 0.5)))
    assert (curve.fpr, curve.tpr) == ((0.0, 1.0), (0.0, 1.0))


scores = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([float("inf"), float("-inf"), 0.0]), min_size=1, max_size=300)


@given(scores, scores)
def test_no_bin_with_fewer_than_ten_rows_is_counted(members: list[float], non_members: list[float]) -> None:
    histogram = score_histogram(np.array(members), np.array(non_members))
    for side in (histogram.members, histogram.non_members):
        assert all(count is None or count >= 10 for count in side)
        assert len(side) == len(histogram.edges) - 1
    assert sum(count or 0 for count in histogram.members) <= len(members)
    for side, rows in ((histogram.members, len(members)), (histogram.non_members, len(non_members))):
        blank = rows - sum(count or 0 for count in side)  # what a reader can work out
        assert blank == 0 or blank >= 10 or rows < 10
    assert list(histogram.edges) == sorted(set(histogram.edges))


def test_large_bins_lose_no_row() -> None:
    histogram = score_histogram(np.repeat([0.1, 0.9], 50), np.repeat([0.1, 0.9], 30))
    assert sum(count or 0 for count in histogram.members) == 100
    assert sum(count or 0 for count in histogram.non_members) == 60


def test_edges_are_round_and_are_no_rows_score() -> None:
    histogram = score_histogram(MEMBERS, NON_MEMBERS)
    assert not set(histogram.edges) & set(np.concatenate([MEMBERS, NON_MEMBERS]).tolist())
    assert all(len(f"{edge:.12g}") < 8 for edge in histogram.edges)


def test_nan_and_an_empty_side_are_errors() -> None:
    with pytest.raises(CardError, match="1 of 3 rows"):
        score_histogram(np.array([0.1, np.nan]), np.array([0.2]))
    with pytest.raises(CardError, match="empty"):
        score_histogram(np.array([]), np.array([0.2]))
