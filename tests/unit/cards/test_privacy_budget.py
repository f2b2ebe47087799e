from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from card_cases import curves, evidence, particulars, verdict

from mlflow_privacy_gate.cards.plots import roc_plot
from mlflow_privacy_gate.cards.privacy_budget import privacy_budget
from mlflow_privacy_gate.cards.report import html_report, markdown_report
from mlflow_privacy_gate.cards.view import card_view
from mlflow_privacy_gate.evidence.facts import (
    CardClaims,
    DifferentialPrivacyClaim,
    Evidence,
    PrivacyBudgetFacts,
    RecomputedEpsilon,
)
from mlflow_privacy_gate.stats import tpr_ceiling

CLAIM = DifferentialPrivacyClaim(1.0, 1e-5, "person", "rdp", 0.05, 3.0, 300)
MEASURED = PrivacyBudgetFacts(
    (
        RecomputedEpsilon("rdp", 1.2725, "sampled-gaussian-rdp", "v1"),
        RecomputedEpsilon("prv", 1.1591, "dp-accounting", "0.6.0"),
    ),
    0.25,
    0.95,
    "loss",
    "in",
    602,
    600,
    0,
)


def claiming(claim: DifferentialPrivacyClaim | None = CLAIM, **changes: Any) -> Evidence:
    return evidence(card=CardClaims(True, differential_privacy=claim), **changes)


def printed(found: Evidence) -> dict[str, str]:
    return {row.label: row.text for row in privacy_budget(found)}


def test_without_a_claim_there_is_no_section() -> None:
    assert privacy_budget(claiming(None)) == ()


def test_claim_accountants_bound_and_ceilings_stand_side_by_side() -> None:
    assert printed(claiming(privacy_budget=MEASURED)) == {
        "Epsilon (claimed)": "1",
        "Delta (claimed)": "0.00001",
        "Unit": "person",
        "Accountant": "rdp",
        "Band": "strong (epsilon at most 1): evaluation recommended",
        "Epsilon recomputed from the stated training": (
            "1.2725 (RDP, sampled-gaussian-rdp v1); 1.1591 (PRV, dp-accounting 0.6.0)"
        ),
        "Least epsilon that the attacks allow": (
            "0.2500 (95% confidence, by loss, on 602 members and 600 non-members)"
        ),
        "Highest attack AUC the claim allows": "0.7311",
        "Highest attack AUC measured": "0.5312",
        "Highest TPR the claim allows": "0.0272 at 1% FPR, 0.0027 at 0.1% FPR",
        "Highest TPR measured": "0.0142 at 1% FPR",
    }


def test_what_was_not_measured_is_unknown_and_says_why() -> None:
    rows = printed(claiming(DifferentialPrivacyClaim(1.0, 1e-5)))
    assert rows["Epsilon recomputed from the stated training"] == "unknown (see the limits of this test)"
    assert rows["Least epsilon that the attacks allow"] == "unknown (the evidence does not hold it)"
    endless = PrivacyBudgetFacts((RecomputedEpsilon("prv", None, "dp-accounting", "0.6.0"),))
    words = printed(claiming(privacy_budget=endless))["Epsilon recomputed from the stated training"]
    assert words == "none that is finite (PRV, dp-accounting 0.6.0)"


def test_both_reports_hold_the_section() -> None:
    view = card_view(claiming(privacy_budget=MEASURED), verdict(), particulars())
    for report in (html_report(view), markdown_report(view)):
        assert "Least epsilon that the attacks allow" in report
        assert "dp-accounting 0.6.0" in report


def test_the_ceiling_of_the_claim_is_drawn_on_the_roc_plot_where_the_formula_has_it() -> None:
    svg = "{http://www.w3.org/2000/svg}"
    drawn = [curves("loss", 0.5)]
    plain, claimed = roc_plot(drawn), roc_plot(drawn, claim=CLAIM)
    assert plain is not None
    assert claimed is not None
    paths = [ET.fromstring(str(plot)).findall(f".//{svg}path") for plot in (plain, claimed)]
    assert (len(paths[0]), len(paths[1])) == (1, 2)
    assert "most that epsilon 1 allows" in claimed
    assert "epsilon" not in plain
    ceiling = min(paths[1], key=lambda path: str(path.get("stroke")) == str(paths[0][0].get("stroke")))
    assert float(str(ceiling.get("stroke-width"))) > 2 * float(str(paths[0][0].get("stroke-width")))
    places = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", ceiling.get("d") or "")]
    (left, _), (right, top) = places[0], places[-1]  # the ends: the smallest rate of the axis, and 1 for both rates
    decades = 4  # 1,200 rows a side resolve a rate of 1/1,200
    unit = 320 / decades
    for x, y in places:
        allowed = tpr_ceiling(CLAIM.epsilon, CLAIM.delta, 10.0 ** (-decades * (right - x) / (right - left)))
        assert y - top == pytest.approx(-math.log10(allowed) * unit, abs=0.3)
