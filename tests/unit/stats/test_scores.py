from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlflow_privacy_gate.errors import CouldNotJudge, ObservationError
from mlflow_privacy_gate.stats import (
    attack_auc,
    balanced_accuracy,
    bootstrap_intervals,
    delong_interval,
    max_auc_interval,
    rank_test,
    roc_points,
    summarise,
    tie_share,
    tpr_at_fpr,
    tpr_upper_bound,
)

FUNCTIONS: dict[str, Callable[[Any, Any], object]] = {
    "attack_auc": attack_auc,
    "balanced_accuracy": balanced_accuracy,
    "bootstrap_intervals": lambda a, b: bootstrap_intervals(a, b, rng=np.random.default_rng(0), replicates=20),
    "delong_interval": delong_interval,
    "max_auc_interval": lambda a, b: max_auc_interval({"loss": (a, b)}, rng=np.random.default_rng(0)),
    "rank_test": rank_test,
    "roc_points": roc_points,
    "summarise": summarise,
    "tie_share": tie_share,
    "tpr_at_fpr": lambda a, b: tpr_at_fpr(a, b, 0.01),
    "tpr_upper_bound": lambda a, b: tpr_upper_bound(a, b, 0.01),
}

every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())


@every_function
def test_one_nan_in_a_hundred_is_an_error_naming_row_and_count(function: Callable[[Any, Any], object]) -> None:
    scores = np.linspace(0.0, 1.0, 100)
    scores[41] = np.nan
    with pytest.raises(ObservationError, match=r"(?<!non-)member scores: 1 of 100 rows.*row 41"):
        function(scores, [0.5, 0.6])
    with pytest.raises(ObservationError, match=r"non-member scores: 1 of 100 rows.*row 41"):
        function([0.5, 0.6], scores)


@every_function
@pytest.mark.parametrize("sides", [([], [0.5]), ([0.5], []), ([], [])])
def test_an_empty_side_is_an_error_and_never_a_pass(
    function: Callable[[Any, Any], object], sides: tuple[list[float], list[float]]
) -> None:
    with pytest.raises(ObservationError, match="at least one row"):
        function(*sides)


@every_function
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(np.ones((3, 1)), id="two-dimensional"),
        pytest.param(np.float64(0.5), id="scalar"),
        pytest.param(np.ones(3, dtype=complex), id="complex"),
        pytest.param(["0.1", "0.2"], id="text"),
        pytest.param(np.array(["2026-01-01"], dtype="datetime64[D]"), id="dates"),
        pytest.param([[0.1], [0.2, 0.3]], id="ragged"),
        pytest.param(np.ones(3, dtype=np.longdouble), id="wider than float64"),
        pytest.param(np.array([2**53 + 1, 2**53]), id="integers that float64 would tie"),
        pytest.param([2**70, 2**70 + 1], id="integers of any length"),
        pytest.param(np.array([Fraction(10**400), 1], dtype=object), id="fractions beyond float64"),
        pytest.param({"a": 0.5}, id="a mapping"),
        pytest.param(None, id="nothing"),
    ],
)
def test_what_is_not_one_real_number_per_row_is_an_error(function: Callable[[Any, Any], object], wrong: Any) -> None:
    with pytest.raises(ObservationError, match="member scores"):
        function(wrong, [0.5, 0.6])
    with pytest.raises(ObservationError, match="non-member scores"):
        function([0.5, 0.6], wrong)


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param([0.1, None, 0.3], id="None"),
        pytest.param(np.array([0.1, "0.2", 0.3], dtype=object), id="text among numbers"),
        pytest.param(pd.Series([0.1, None, 0.3], dtype="Float64"), id="nullable pandas"),
        pytest.param(np.ma.masked_array([0.1, 0.2, 0.3], mask=[False, True, False]), id="masked"),
        pytest.param(np.array([0.1, np.nan, 0.3], dtype=object), id="NaN among objects"),
    ],
)
def test_a_missing_score_is_an_error_naming_row_and_count(missing: Any) -> None:
    with pytest.raises(ObservationError, match=r"member scores: 1 of 3 rows hold no number .*: row 1;"):
        attack_auc(missing, [0.5])


def test_a_long_list_of_bad_rows_is_cut_short_but_counted() -> None:
    with pytest.raises(ObservationError, match=r"300 of 300 rows.*row 0, 1, 2, 3, 4, …"):
        attack_auc(np.full(300, np.nan), [0.5])


def test_bad_scores_mean_that_nothing_can_be_judged(confidence_vector: Callable[[str], Any]) -> None:
    vectors = [vector for vector in confidence_vector("invalid") if "member_scores" in vector]
    refused = [vector for vector in vectors if vector["required"].startswith("error")]
    assert len(refused) == 3
    for vector in refused:
        with pytest.raises(CouldNotJudge):
            attack_auc([float(s) for s in vector["member_scores"]], [float(s) for s in vector["holdout_scores"]])


@pytest.mark.parametrize(
    "convert",
    [list, tuple, pd.Series, lambda s: np.array(s, dtype=object), lambda s: np.array(s)[::-1], pd.array],
    ids=["list", "tuple", "Series", "objects", "reversed view", "nullable"],
)
def test_any_array_like_gives_the_same_auc(convert: Callable[[list[float]], Any]) -> None:
    assert attack_auc(convert([1.0, 2.0, 3.0]), convert([0.5, 2.0])) == 0.75


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_smaller_types_keep_their_order(dtype: str) -> None:
    assert attack_auc(np.array([1, 1, 0], dtype=dtype), np.array([0, 1], dtype=dtype)) == pytest.approx(7 / 12)


@every_function
def test_the_callers_arrays_and_global_random_state_are_untouched(function: Callable[[Any, Any], object]) -> None:
    members, non_members = np.random.default_rng(0).normal(size=(2, 300))
    copies = members.copy(), non_members.copy()
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - this is the state that must not move
    function(members, non_members)
    assert np.array_equal(members, copies[0])
    assert np.array_equal(non_members, copies[1])
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert repr(state) == repr(after)
    members.flags.writeable = non_members.flags.writeable = False
    function(members, non_members)


@pytest.mark.parametrize(
    ("members", "non_members", "share"),
    [([1.0, 2.0], [3.0, 4.0], 0.0), ([1.0, 1.0], [2.0, 3.0], 0.5), ([1.0, 2.0], [2.0, 2.0], 0.75), ([5.0], [5.0], 1.0)],
)
def test_tie_share_counts_rows_whose_score_another_row_has(
    members: list[float], non_members: list[float], share: float
) -> None:
    assert tie_share(members, non_members) == tie_share(non_members, members) == share


def test_tie_share_equals_a_plain_count_on_many_rows() -> None:
    rng = np.random.default_rng(1)
    members, non_members = (rng.integers(0, 300_000, size).astype(float) for size in (170_000, 140_000))
    _, counts = np.unique(np.concatenate((members, non_members)), return_counts=True)
    assert tie_share(members, non_members) == counts[counts > 1].sum() / 310_000


def test_a_forest_ties_almost_everywhere(confidence_vector: Callable[[str], Any]) -> None:
    vector = confidence_vector("bc_rf_default")
    assert tie_share(vector["member_scores"], vector["holdout_scores"]) == pytest.approx(0.96, abs=0.005)
