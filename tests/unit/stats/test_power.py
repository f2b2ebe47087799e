from __future__ import annotations

import numpy as np
import pytest

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats import attack_auc, minimum_rows, rows_needed, smallest_detectable_auc


@pytest.mark.parametrize(("margin", "rows"), [(0.55, 571), (0.52, 3569)])
def test_rows_needed_for_the_margins_in_use(margin: float, rows: int) -> None:
    assert rows_needed(margin) == rows


@pytest.mark.parametrize(
    ("margin", "floor", "rows"), [(0.55, 100, 181), (0.52, 100, 1128), (0.6, 100, 100), (0.55, 500, 500)]
)
def test_minimum_rows_for_the_margins_in_use(margin: float, floor: int, rows: int) -> None:
    assert minimum_rows(margin, floor) == rows


def test_minimum_rows_are_where_noise_alone_stays_under_the_margin() -> None:
    rows = minimum_rows(0.55, 1)
    rng = np.random.default_rng(2)
    over = [attack_auc(*rng.normal(size=(2, rows))) > 0.55 for _ in range(4000)]
    assert np.mean(over) == pytest.approx(0.05, abs=0.012)


def test_even_a_margin_of_one_needs_two_rows() -> None:
    assert minimum_rows(1.0, 1) == 2


def test_smallest_detectable_auc_and_rows_needed_agree() -> None:
    for margin in (0.52, 0.55, 0.6):
        rows = rows_needed(margin)
        assert smallest_detectable_auc(rows, rows, power=0.9) == pytest.approx(margin, abs=2e-4)


def test_smallest_detectable_auc_is_caught_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    members, non_members = 200, 150
    auc = smallest_detectable_auc(members, non_members)
    null_error = np.sqrt((members + non_members + 1) / (12 * members * non_members))
    # Shift uniforms so that P(member > non-member) = auc: 1/2 + d - d²/2.
    shift = 1 - np.sqrt(2 * (1 - auc))
    caught = [
        attack_auc(rng.random(members) + shift, rng.random(non_members)) > 0.5 + 1.645 * null_error for _ in range(4000)
    ]
    assert np.mean(caught) == pytest.approx(0.8, abs=0.03)


def test_a_tiny_test_can_catch_nothing_below_one() -> None:
    assert smallest_detectable_auc(1, 1) == 1.0


def test_impossible_questions_are_usage_errors() -> None:
    for margin in (0.5, 0.4, 1.1, 55.0, float("nan")):
        with pytest.raises(UsageError, match="margin"):
            rows_needed(margin)
        with pytest.raises(UsageError, match="margin"):
            minimum_rows(margin, 100)
    with pytest.raises(UsageError, match="at least one row"):
        smallest_detectable_auc(0, 10)
    with pytest.raises(UsageError, match="power"):
        smallest_detectable_auc(10, 10, power=80)
    with pytest.raises(UsageError, match="level"):
        smallest_detectable_auc(10, 10, level=0.0)
    with pytest.raises(UsageError, match="power"):
        rows_needed(0.55, power=1.0)
