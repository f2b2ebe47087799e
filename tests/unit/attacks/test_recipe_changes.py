from __future__ import annotations

from collections.abc import Mapping

import pytest

from mlflow_privacy_gate.attacks.recipe_changes import Parameter, recipe_changes


def values(parameters: Mapping[str, Parameter], rows: int = 5000) -> list[list[dict[str, float | int]]]:
    return [[dict(change.values) for change in family] for family in recipe_changes(parameters, training_rows=rows)]


@pytest.mark.parametrize(
    ("parameters", "steps"),
    [
        ({"C": 1.0, "max_iter": 100}, [{"C": 0.1}, {"C": 0.01}, {"C": 0.001}]),
        ({"svc__C": 10}, [{"svc__C": 1.0}, {"svc__C": 0.1}, {"svc__C": 0.01}]),
        ({"mlp__alpha": 0.0001}, [{"mlp__alpha": 0.001}, {"mlp__alpha": 0.01}, {"mlp__alpha": 0.1}]),
        ({"reg_lambda": None}, [{"reg_lambda": 10.0}, {"reg_lambda": 100.0}, {"reg_lambda": 1000.0}]),
        ({"max_depth": None}, [{"max_depth": 8}, {"max_depth": 4}, {"max_depth": 2}]),
        ({"max_depth": -1}, [{"max_depth": 8}, {"max_depth": 4}, {"max_depth": 2}]),
        ({"max_depth": 5}, [{"max_depth": 4}, {"max_depth": 2}]),
        ({"min_samples_leaf": 20}, [{"min_samples_leaf": 30}, {"min_samples_leaf": 100}]),
        ({"n_neighbors": 5}, [{"n_neighbors": 25}, {"n_neighbors": 125}]),
    ],
)
def test_each_family_goes_from_mild_to_strong_from_where_the_recipe_stands(
    parameters: dict[str, Parameter], steps: list[dict[str, float]]
) -> None:
    assert values(parameters) == [steps]


def test_a_leaf_never_takes_more_than_a_tenth_of_the_rows() -> None:
    assert values({"min_samples_leaf": 1}, rows=284) == [[{"min_samples_leaf": 10}]]


@pytest.mark.parametrize(
    "parameters", [{"max_depth": 2}, {"min_samples_leaf": 0.1}, {"tol": 1e-4}, {"alpha": 0.9, "n_estimators": 100}, {}]
)
def test_what_is_strong_already_or_means_something_else_is_left_alone(parameters: dict[str, Parameter]) -> None:
    assert values(parameters) == []


def test_parts_with_the_same_parameter_change_together() -> None:
    assert values({"a__max_depth": None, "b__max_depth": 5})[0] == [
        {"a__max_depth": 8, "b__max_depth": 4},
        {"a__max_depth": 4, "b__max_depth": 2},
        {"a__max_depth": 2, "b__max_depth": 2},
    ]


def test_a_change_says_in_words_what_it_does() -> None:
    family = recipe_changes({"svc__C": 1.0}, training_rows=100)[0]
    assert family[0].description == "stronger regularisation: svc__C 1 → 0.1"
    assert (
        recipe_changes({"max_depth": None}, training_rows=100)[0][0].description == "smaller trees: max_depth none → 8"
    )
