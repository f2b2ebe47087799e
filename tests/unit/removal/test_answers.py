"""How numbers become answers: the control first, the level kept, and never a better word than the worst part allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.attacks import ema
from mlflow_privacy_gate.evidence.removal import RankFacts, SetFacts, least_favourable
from mlflow_privacy_gate.removal.calibrated_answer import read_tests
from mlflow_privacy_gate.removal.ema_answer import read_ema, set_facts
from mlflow_privacy_gate.vocabulary import RemovalAnswer

SOUND = SetFacts(400, 0, 0.0)
ANSWERS = st.sampled_from(RemovalAnswer)


def rank(p_value: float) -> RankFacts:
    return RankFacts("calibrated", "calibrated/v1", "query", "held_out", p_value, 0.5, 0.4, 0.6, "DeLong")


@pytest.mark.parametrize(
    ("zeros", "expected"),
    [(0, RemovalAnswer.NOT_RULED_OUT), (2, RemovalAnswer.NOT_RULED_OUT), (3, RemovalAnswer.NOT_MEMORISED)],
)
def test_ema_clears_from_three_unseen_rows_on(zeros: int, expected: RemovalAnswer) -> None:
    assert read_ema(ema.rho(100, zeros), 100, zeros, SOUND, 0)[0] is expected


@given(st.integers(2, 300), st.data())
def test_a_control_that_rejects_leaves_no_other_answer(rows: int, data: st.DataObject) -> None:
    zeros = data.draw(st.integers(0, rows))
    control = SetFacts(500, 20, data.draw(st.floats(0.1, 1, exclude_min=True)))
    answer, why = read_ema(ema.rho(rows, zeros), rows, zeros, control, 0)
    assert answer is RemovalAnswer.INCONCLUSIVE
    assert "The control rejects" in why


def test_a_missing_small_or_foreign_control_is_inconclusive() -> None:
    for control, unlogged in ((None, None), (SetFacts(99, 0, None), 0), (SOUND, 1)):
        assert read_ema(0.0, 100, 100, control, unlogged)[0] is RemovalAnswer.INCONCLUSIVE


@given(st.integers(2, 40), st.integers(0, 40), st.data())
def test_the_cleared_share_is_what_drawing_would_give(query: int, extra: int, data: st.DataObject) -> None:
    rows = query + extra
    zeros = data.draw(st.integers(0, rows))
    found = set_facts(rows, zeros, query_rows=query).cleared
    assert found is not None
    if extra == 0:  # one way to draw: the set's own rho decides
        assert found == pytest.approx(float(ema.rho(rows, zeros) <= ema.ALPHA))
    assert 0 <= found <= 1 + 1e-12


def test_the_cleared_share_agrees_with_counting_every_draw() -> None:
    flags = [False, False, False, False, True, True, True]
    draws = list(itertools.combinations(flags, 5))
    cleared = np.mean([ema.rho_ema(draw) <= ema.ALPHA for draw in draws])
    assert set_facts(7, 4, query_rows=5).cleared == pytest.approx(float(cleared))


def test_fewer_rows_than_the_query_have_no_share() -> None:
    assert set_facts(9, 0, query_rows=10).cleared is None


@pytest.mark.parametrize(
    ("over_held_out", "control_over", "expected"),
    [
        (0.05, 1e-9, RemovalAnswer.NOT_RULED_OUT),
        (1e-9, None, RemovalAnswer.NOT_RULED_OUT),
        (0.051, 0.05, RemovalAnswer.NOT_MEMORISED),
        (0.9, 0.051, RemovalAnswer.INCONCLUSIVE),
        (0.9, None, RemovalAnswer.INCONCLUSIVE),
    ],
)
def test_the_two_rank_tests_are_read_at_their_level(
    over_held_out: float, control_over: float | None, expected: RemovalAnswer
) -> None:
    assert read_tests(rank(over_held_out), None if control_over is None else rank(control_over))[0] is expected


def test_rows_that_are_still_training_rows_are_cleared_no_oftener_than_the_level() -> None:
    from mlflow_privacy_gate import stats

    rng, cleared, draws = np.random.default_rng(0), 0, 400
    for _ in range(draws):
        # The worst case: members that score exactly like other members, beside held-out rows that score almost alike.
        query, control, held_out = rng.normal(size=60), rng.normal(size=120), rng.normal(-0.05, size=120)
        over_held_out, control_over = (
            rank(stats.rank_test(*pair).p_value) for pair in ((query, held_out), (control, query))
        )
        cleared += read_tests(over_held_out, control_over)[0] is RemovalAnswer.NOT_MEMORISED
    assert cleared / draws <= 0.05 + 2 * (0.05 * 0.95 / draws) ** 0.5


@given(st.lists(ANSWERS, min_size=1))
def test_the_least_favourable_answer_wins_in_any_order(answers: list[RemovalAnswer]) -> None:
    found = least_favourable(answers)
    assert found is least_favourable(reversed(answers))
    if RemovalAnswer.NOT_RULED_OUT in answers:
        assert found is RemovalAnswer.NOT_RULED_OUT
    elif RemovalAnswer.INCONCLUSIVE in answers:
        assert found is RemovalAnswer.INCONCLUSIVE
    else:
        assert found is RemovalAnswer.NOT_MEMORISED
