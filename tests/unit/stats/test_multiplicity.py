from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats import attack_auc, delong_interval, holm, max_auc_interval

Scores = NDArray[np.float64]


def attacks(count: int, shared: float, seed: int = 0, rows: int = 400) -> dict[str, tuple[Scores, Scores]]:
    rng = np.random.default_rng(seed)
    members, non_members = rng.normal(0.2, 1, rows), rng.normal(0, 1, rows)
    own = np.sqrt(1 - shared**2)
    return {
        f"attack {k}": (
            shared * members + own * rng.normal(0.2, 1, rows),
            shared * non_members + own * rng.normal(0, 1, rows),
        )
        for k in range(count)
    }


def test_one_attack_has_delongs_own_interval() -> None:
    scores = attacks(1, 0.5)
    found = max_auc_interval(scores, rng=np.random.default_rng(0))
    own = delong_interval(*scores["attack 0"])
    assert (found.high, found.upper) == (own.high, own.upper)
    assert found.low == pytest.approx(own.low, abs=0.001)


def test_independent_attacks_pay_for_the_choice_as_sidak_says() -> None:
    scores = attacks(7, 0.0)
    found = max_auc_interval(scores, rng=np.random.default_rng(0))
    sidak = 0.975 ** (1 / 7)
    one_sided = [delong_interval(*pair, level=2 * sidak - 1).low for pair in scores.values()]
    assert found.low == pytest.approx(max(one_sided), abs=0.002)
    assert found.low < max(delong_interval(*pair).low for pair in scores.values())


def test_attacks_that_agree_pay_nothing() -> None:
    pair = attacks(1, 0.5)["attack 0"]
    same = {"a": pair, "b": (2 * pair[0] + 1, 2 * pair[1] + 1), "c": (np.exp(pair[0]), np.exp(pair[1]))}
    assert max_auc_interval(same, rng=np.random.default_rng(0)).low == pytest.approx(
        delong_interval(*pair).low, abs=0.001
    )


def test_the_upper_bound_is_that_of_the_worst_attack() -> None:
    scores = attacks(4, 0.3)
    own = [delong_interval(*pair) for pair in scores.values()]
    found = max_auc_interval(scores, rng=np.random.default_rng(0))
    assert found.upper == max(interval.upper for interval in own)
    assert found.high == max(interval.high for interval in own)
    assert found.low <= max(attack_auc(*pair) for pair in scores.values()) <= found.upper <= found.high


def test_neither_row_order_nor_the_attacks_order_changes_a_bit() -> None:
    scores = attacks(3, 0.6)
    rng = np.random.default_rng(5)
    members, non_members = rng.permutation(400), rng.permutation(400)
    shuffled = {name: (a[members], b[non_members]) for name, (a, b) in reversed(scores.items())}
    assert max_auc_interval(scores, rng=np.random.default_rng(1)) == max_auc_interval(
        shuffled, rng=np.random.default_rng(1)
    )


def test_constant_and_perfect_attacks_take_part() -> None:
    scores = attacks(2, 0.5)
    scores["constant"] = (np.zeros(400), np.zeros(400))
    with_constant = max_auc_interval(scores, rng=np.random.default_rng(0))
    assert not with_constant.degenerate
    assert with_constant.low >= 0.5
    scores["perfect"] = (np.arange(400.0) + 500, np.arange(400.0))
    with_perfect = max_auc_interval(scores, rng=np.random.default_rng(0))
    assert with_perfect.degenerate
    assert 0.98 < with_perfect.low < with_perfect.high == 1.0


def test_only_constant_attacks_give_one_half() -> None:
    found = max_auc_interval({"a": ([1.0, 1.0], [1.0, 1.0])}, rng=np.random.default_rng(0))
    assert (found.low, found.high, found.upper, found.degenerate) == (0.5, 0.5, 0.5, True)


def test_attacks_on_different_rows_are_refused_with_their_counts() -> None:
    scores = {"loss": ([0.1, 0.2], [0.3, 0.1]), "lira": ([0.1, 0.2, 0.3], [0.3, 0.1])}
    with pytest.raises(ObservationError, match=r"lira 3 \+ 2, loss 2 \+ 2"):
        max_auc_interval(scores, rng=np.random.default_rng(0))


def test_a_nan_names_the_attack_it_came_from() -> None:
    with pytest.raises(ObservationError, match="loss: non-member scores: 1 of 2"):
        max_auc_interval({"loss": ([0.1, 0.2], [np.nan, 0.1])}, rng=np.random.default_rng(0))


def test_no_attack_and_no_draws_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="attack"):
        max_auc_interval({}, rng=np.random.default_rng(0))
    with pytest.raises(UsageError, match="replicates"):
        max_auc_interval(attacks(1, 0.5), rng=np.random.default_rng(0), replicates=0)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.6]) == pytest.approx([0.8, 0.8])
    assert holm([0.9, 1.0, 0.5]) == pytest.approx([1.0, 1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])


def test_holm_does_not_depend_on_order() -> None:
    p_values = [0.001, 0.04, 0.012, 0.04, 0.2]
    adjusted = dict(zip(p_values, holm(p_values), strict=True))
    for order in itertools.permutations(p_values):
        assert list(holm(order)) == [adjusted[p] for p in order]


@pytest.mark.parametrize("wrong", [[0.1, 1.2], [-0.1], [float("nan")], [], [[0.1]]])
def test_p_values_outside_zero_and_one_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ObservationError, match="p-values"):
        holm(wrong)
