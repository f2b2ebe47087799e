"""Whatever evidence and scores there are, a report prints no small cell and nothing that stands for one row."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from card_cases import evidence, particulars, verdict
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_privacy_gate.cards import card_view, html_report, markdown_report, write_card
from mlflow_privacy_gate.cards.curves import roc_curve, score_histogram
from mlflow_privacy_gate.cards.particulars import AttackCurves
from mlflow_privacy_gate.cards.rows import subgroup_rows
from mlflow_privacy_gate.evidence.facts import SubgroupFacts
from mlflow_privacy_gate.stats import roc_points

_COUNTS = st.integers(0, 40) | st.integers(0, 2000)
_GROUPS = st.lists(st.tuples(_COUNTS, _COUNTS), min_size=1, max_size=6)
_PRINTED = re.compile(r"\d+(?:,\d{3})*")


def groups(sizes: list[tuple[int, int]]) -> tuple[SubgroupFacts, ...]:
    return tuple(
        SubgroupFacts("region", f"g{n}", members, others, 0.61, 0.51, 0.71, 0.04)
        for n, (members, others) in enumerate(sizes)
    )


def cells(column: tuple[str, ...]) -> list[int | None]:
    return [int(cell.replace(",", "")) if _PRINTED.fullmatch(cell) else None for cell in column]


@given(_GROUPS)
def test_no_small_group_is_counted_judged_or_worked_out_from_the_total(sizes: list[tuple[int, int]]) -> None:
    rows = subgroup_rows(groups(sizes))
    for side, printed in enumerate((tuple(r.rows_members for r in rows), tuple(r.rows_non_members for r in rows))):
        numbers = cells(printed)
        assert all(number is None or number >= 10 for number in numbers)
        hidden = sum(size[side] for size, number in zip(sizes, numbers, strict=True) if number is None)
        assert hidden == 0 or hidden >= 10 or all(number is None for number in numbers)
    for row, size in zip(rows, sizes, strict=True):
        if min(size) < 10:
            assert (row.auc, row.interval, row.holm_p) == ("too small", "not shown", "not shown")


@given(_GROUPS)
@settings(max_examples=40, deadline=None)
def test_no_view_prints_a_small_group(sizes: list[tuple[int, int]]) -> None:
    view = card_view(evidence(subgroups=groups(sizes)), verdict(), particulars())
    rows = re.findall(r"<tr><th scope=\"row\">g\d+</th><td>(.*?)</td><td>(.*?)</td>", html_report(view))
    assert len(rows) == len(sizes)
    for cell in (cell for row in rows for cell in row):
        assert not re.fullmatch(r"\d", cell)
    for row in re.findall(r"^\| region \| g\d+ \| (.*?) \| (.*?) \|", markdown_report(view), flags=re.MULTILINE):
        assert not any(re.fullmatch(r"\d", cell) for cell in row)


@given(st.integers(0, 2**32 - 1), st.integers(12, 400), st.integers(12, 400))
@settings(max_examples=25, deadline=None)
def test_no_rows_score_and_no_bar_of_fewer_than_ten_rows_is_in_the_page(seed: int, members: int, others: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.5, 1.0, members), rng.normal(0.0, 1.0, others)
    curves = AttackCurves("loss", roc_curve(roc_points(*scores)), score_histogram(*scores))
    page = html_report(card_view(evidence(), verdict(), replace(particulars(), curves=(curves,))))
    for score in np.concatenate(scores):
        assert f"{score:.7f}" not in page
    assert curves.histogram is not None
    shown = sum(1 for side in (curves.histogram.members, curves.histogram.non_members) for count in side if count)
    drawn = re.search(r'id="scores-1-title".*?</svg>', page, flags=re.DOTALL)
    assert drawn is not None
    assert len(re.findall(r"<rect\b", drawn.group())) == shown + 3  # the hatching's ground and two keys


@pytest.mark.parametrize("render", [html_report, markdown_report, lambda view: write_card(None, view)])
def test_what_a_group_is_called_when_small_says_no_number(render: object) -> None:
    assert callable(render)
    small = (SubgroupFacts("region", "north", 1195, 1190, 0.52), SubgroupFacts("region", "islands", 9, 7, 0.99))
    text = html.unescape(render(card_view(evidence(subgroups=small), verdict(), particulars())))
    assert "0.99" not in text
    assert not re.search(r"islands\D{0,40}[97]\b", text)
