"""Only what lowered the attack AUC is said to help, and only what is within the margin is said to be enough."""

from __future__ import annotations

import pytest
from card_cases import FAILING_AUCS, evidence, particulars, verdict

from mlflow_privacy_gate.cards import CardView, card_view, html_report, markdown_report, write_card
from mlflow_privacy_gate.cards.mitigations import LOWER, NO_HELP, WITHIN, mitigation_rows
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.vocabulary import Outcome


def view_with(*tried: Mitigation) -> CardView:
    return card_view(evidence(FAILING_AUCS), verdict(Outcome.FAIL), particulars(mitigations=tried))


@pytest.mark.parametrize(
    ("after", "effect"),
    [(0.5, WITHIN), (0.55, WITHIN), (0.55004, LOWER), (0.7813, LOWER), (0.7814, NO_HELP), (0.9, NO_HELP)],
)
def test_each_trial_is_told_by_what_it_came_to(after: float, effect: str) -> None:
    (row,) = mitigation_rows([Mitigation("smaller trees", after)], attack_auc=0.7814, margin=0.55)
    assert (row.effect, row.helps) == (effect, effect != NO_HELP)
    assert effect in row.text


def test_digits_show_on_which_side_of_the_margin_a_trial_lies() -> None:
    (row,) = mitigation_rows([Mitigation("smaller trees", 0.55004)], attack_auc=0.7814, margin=0.55)
    assert row.auc == "0.55004"


@pytest.mark.parametrize(("change", "words"), [(None, "not measured"), (0.0, "unchanged"), (-0.01, "-0.0100")])
def test_what_it_costs_is_a_number_only_where_there_is_one(change: float | None, words: str) -> None:
    (row,) = mitigation_rows([Mitigation("smaller trees", 0.6, change)], attack_auc=0.7814, margin=0.55)
    assert row.accuracy == words


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (0.54, "this helped most: smaller trees (attack AUC 0.5400, within the margin; accuracy not measured)."),
        (0.65, "still over the margin; accuracy not measured). It is not enough by itself."),
        (0.7814, "Nothing that was tried on this model made it harder"),
    ],
)
def test_the_next_steps_praise_nothing_that_did_not_help(after: float, said: str) -> None:
    steps = " ".join(view_with(Mitigation("smaller trees", after)).next_steps)
    assert said in steps
    assert ("helped" in steps) == (after < 0.7814)


@pytest.mark.parametrize("render", [html_report, markdown_report, lambda view: write_card(None, view)])
def test_no_paper_says_that_a_trial_helped_which_did_not(render: object) -> None:
    assert callable(render)
    paper = render(view_with(Mitigation("answers rounded", 0.7814)))
    assert "to help" not in paper
    assert "What was tried on this model and measured, best first" in paper
    assert NO_HELP in paper


@pytest.mark.parametrize("kind", ["classification", "label_only", "regression", "density"])
@pytest.mark.parametrize("render", [html_report, markdown_report, lambda view: write_card(None, view)])
def test_rounding_is_advised_only_where_the_model_gives_probabilities(kind: str, render: object) -> None:
    assert callable(render)
    paper = render(card_view(evidence(FAILING_AUCS, kind=kind), verdict(Outcome.FAIL), particulars(mitigations=())))
    assert "training with differential privacy" in paper
    assert ("rounded probabilities" in paper) is (kind == "classification")
