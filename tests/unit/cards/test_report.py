"""The report tells a reader without statistics what was found and what to do, and prints alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from card_cases import EXPIRES_AT, FAILING_AUCS, evidence, failing_view, particulars, passing_view, verdict

from mlflow_privacy_gate.cards import CardView, card_view, html_report, markdown_report
from mlflow_privacy_gate.cards.particulars import WaiverInForce
from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    DifferentialPrivacyClaim,
    Metric,
    SubgroupFacts,
)
from mlflow_privacy_gate.vocabulary import REASONS, RULE_CREDIT_HTML, RULE_URL, Finding, Outcome, ReasonCode

VIEWS = {"pass": passing_view(), "fail": failing_view()}


def text_of(page: str) -> str:
    body = page.partition("<body>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_the_page_is_one_file_without_scripts_or_anything_from_elsewhere(view: CardView) -> None:
    page = html_report(view)
    assert not re.search(r"<(script|iframe|object|embed|link|img|form)\b", page, re.IGNORECASE)
    assert not re.search(r"\bon\w+=|@import|url\((?!#)|\bsrc=", page, re.IGNORECASE)
    assert "default-src 'none'" in page
    assert "@media print" in page


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("render", [html_report, markdown_report])
def test_both_forms_have_every_row_of_the_reporting_template(view: CardView, render: object) -> None:
    assert callable(render)
    report = render(view)
    for row in (
        "Training data",
        "Consumer loans 2019-2024",
        "adult customers with one loan or more",
        "DPA-2024-17",
        "Model risk, team B",
        "2026-03-01 14:05 UTC",
        "Threshold" if render is html_report else "Margin",
        "Conclusion",
        "Sign-off",
        "0.6576 (1,840 parameters)",
        "+0.0209 (0.8911 on members, 0.8702 on non-members)",
        "not built into this tool",
        "3f" * 32,
        "internal",
    ):
        assert row in report, row
    assert (RULE_CREDIT_HTML if render is html_report else f"](<{RULE_URL}>)") in report


def test_a_failing_report_says_in_plain_words_what_was_found_and_what_to_do_next() -> None:
    page = text_of(html_report(failing_view()))
    assert page.index("Whoever can ask this model about a record can tell") < page.index("Model, data and evaluator")
    assert "in about 78 of 100 such pairs; a coin would pick it in 50" in page
    first_screen = page[: page.index("Findings")]
    assert "What to do next Do not promote this version." in first_screen
    assert f"{REASONS[ReasonCode.PG201].remedy[1:]}." in first_screen
    assert (
        "this helped most: at least 20 rows a leaf (attack AUC 0.5411, within the margin; accuracy -0.0104)"
        in first_screen
    )
    assert "Handle every copy of the model like the personal data it was trained on" in first_screen
    for jargon in ("TPR", "FPR", "interval", "p (Holm)", "log"):
        assert jargon not in first_screen
    assert f"Next: {REASONS[ReasonCode.PG201].remedy}." in page
    assert "a legal basis for using it, answers to access requests, erasure" in page
    assert page.index("at least 20 rows a leaf") < page.index("answer with the label alone")


def test_no_cell_below_ten_is_printed_and_none_can_be_worked_out() -> None:
    page = html_report(passing_view())
    islands = re.search(r"<tr><th scope=\"row\">islands</th>(.*?)</tr>", page)
    assert islands is not None
    assert re.findall(r"<td[^>]*>(.*?)</td>", islands.group(1)) == [
        "fewer than 10",
        "fewer than 10",
        "too small",
        "not shown",
        "not shown",
        "not shown",
        "not shown",
    ]
    assert '<th scope="row">east</th><td>not shown</td><td>not shown</td><td>0.5511</td>' in page


def test_a_group_that_was_judged_says_not_measured_where_nothing_was_hidden() -> None:
    (row,) = passing_view(subgroups=(SubgroupFacts("class", "a", 600, 600, 0.51, 0.48, 0.54, 0.4),)).subgroups
    assert (row.holm_p, row.tpr, row.tpr_holm_p) == ("0.4000", "not measured", "not measured")


def test_subgroups_stand_below_the_name_of_their_column_said_once() -> None:
    page = text_of(html_report(passing_view()))
    table = page[page.index("Attack AUC and TPR at 1% FPR by subgroup") :]
    assert table.index("class repaid 900") < table.index("default 304") < table.index("region north 1,101")
    assert "p says how likely a number this high would come about by chance alone." in table
    assert "p says how likely a number this high" in markdown_report(passing_view())


@pytest.mark.parametrize("render", [html_report, markdown_report])
def test_a_number_that_could_not_be_judged_is_not_called_within_the_margin(render: Callable[[CardView], str]) -> None:
    findings = (Finding(ReasonCode.PG101, "the splits differ"),)
    report = render(card_view(evidence(), verdict(Outcome.INCONCLUSIVE, findings=findings), particulars()))
    said = text_of(report) if render is html_report else report
    first = said[: said.index("Findings")]
    assert "could not judge" in first
    assert "do not rely on this number" in first
    assert "within" not in first
    assert "within margin" not in said


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        (0.5, "about 50 of 100"),
        (0.9949, "about 99 of 100"),
        (0.9951, "more than 99 of 100"),
        (0.99999, "more than 99 of 100"),
        (1.0, "in all such pairs"),
    ],
)
def test_only_an_attack_that_never_errs_is_said_to_be_always_right(auc: float, words: str) -> None:
    view = card_view(evidence(FAILING_AUCS), verdict(Outcome.FAIL, attack_auc=auc), particulars())
    assert words in view.in_short[1]


def test_a_p_value_is_never_printed_as_zero() -> None:
    groups = (SubgroupFacts("class", "a", 600, 600, 0.9, 0.88, 0.92, 1e-30), SubgroupFacts("class", "b", 604, 600, 0.5))
    page = text_of(html_report(passing_view(subgroups=groups)))
    assert "0.8800 to 0.9200 below 0.0001" in page


def test_a_note_on_many_attacks_is_said_once_with_their_names() -> None:
    tail = Metric("tpr_at_fpr_0.01", 0.0142, 0.0075, 0.0233, note="rests on 12 allowed false positives")
    attacks = tuple(AttackFacts(name, f"{name}/v1", (Metric("auc", 0.53), tail)) for name in ("confidence", "loss"))
    for render in (html_report, markdown_report):
        report = render(passing_view(attacks=attacks))
        assert report.count("rests on 12 allowed") == 1
        assert "TPR at 1% FPR (confidence, loss): rests on 12 allowed false positives" in report


def test_a_report_from_the_record_says_what_it_leaves_out_and_why() -> None:
    recorded = particulars(
        from_record=True, evaluator=None, parameters=None, accuracy_members=None, accuracy_non_members=None, curves=()
    )
    for render in (html_report, markdown_report):
        report = render(card_view(evidence(), verdict(), recorded))
        assert "are left out: this report was made again from the recorded evidence" in html.unescape(report)
        assert report.count("unknown (this view was made from the recorded evidence, which does not hold it)") == 3


def test_a_plot_stands_for_every_curve_given_and_for_the_intervals() -> None:
    assert html_report(failing_view()).count("<svg") == 4
    assert html_report(card_view(evidence(), verdict())).count("<svg") == 1


def test_a_claim_of_differential_privacy_stands_beside_what_was_measured() -> None:
    claim = CardClaims(True, differential_privacy=DifferentialPrivacyClaim(3.0, 1e-5, "person", "rdp"))
    page = text_of(html_report(passing_view(card=claim)))
    assert "moderate (epsilon above 1, at most 10): evaluation required" in page
    assert "Delta (claimed) 0.00001" in page
    assert "Highest attack AUC the claim allows 0.9526" in page
    assert "Highest TPR the claim allows 0.2009 at 1% FPR, 0.0201 at 0.1% FPR" in page
    assert "Highest TPR measured 0.0142 at 1% FPR" in page
    assert "Differential privacy claim" not in text_of(html_report(passing_view()))


def test_a_waived_model_shows_waived_and_never_pass() -> None:
    waiver = WaiverInForce(
        ("PG201",), "rollback", "ann", "bea", EXPIRES_AT - timedelta(days=70), "TICKET-9", "rate limits"
    )
    view = card_view(evidence(FAILING_AUCS), verdict(Outcome.FAIL), particulars(waivers=(waiver,)))
    page = text_of(html_report(view))
    assert page.startswith("Membership inference test credit version 7 · tested")
    assert "! WAIVED" in page
    assert "WAIVED for PG201 until 2026-03-21. Reason: rollback. Requested by ann, approved by bea (TICKET-9)." in page
    assert "✓ PASS" not in page


def test_an_unsigned_report_says_what_that_means_and_leaves_room_for_no_name_that_opens_the_gate() -> None:
    page = text_of(html_report(card_view(evidence(), verdict())))
    assert "unknown (the evidence is unsigned; a gate that requires signatures stays closed)" in page
    assert "A name written below does not open the gate" in page


def test_why_rows_exist_is_cited_and_no_compliance_claimed() -> None:
    page = text_of(html_report(passing_view()))
    assert "EDPB Opinion 28/2024, paragraphs 46, 55 and 58" in page
    assert "no claim that either is complied with" in page
