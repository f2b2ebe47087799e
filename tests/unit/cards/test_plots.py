"""Plots are whole SVG, described for those who cannot see them, and carry no hostile name into markup."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from decimal import Decimal

from card_cases import curves, passing_view
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from mlflow_privacy_gate.cards.curves import ScoreHistogram
from mlflow_privacy_gate.cards.particulars import AttackCurves
from mlflow_privacy_gate.cards.plots import histogram_plot, interval_plot, roc_plot
from mlflow_privacy_gate.evidence.facts import DifferentialPrivacyClaim

SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing: Markup | None) -> ET.Element:
    assert drawing is not None
    return ET.fromstring(str(drawing))


def texts(drawing: ET.Element) -> list[str]:
    return [element.text or "" for element in drawing.iter(f"{SVG}text")]


def test_every_plot_has_a_title_and_a_description_of_its_own() -> None:
    drawn = curves("loss", 0.5)
    for plot in (
        roc_plot([drawn]),
        histogram_plot("scores-1", "loss", drawn.histogram),
        interval_plot(passing_view().attacks, 0.55),
    ):
        root = parsed(plot)
        ids = [element.get("id") for element in root if element.tag in (f"{SVG}title", f"{SVG}desc")]
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == " ".join(str(name) for name in ids)
        assert all(element.text for element in root if element.tag in (f"{SVG}title", f"{SVG}desc"))


def test_nothing_is_drawn_where_nothing_was_given() -> None:
    assert roc_plot([AttackCurves("loss")]) is None
    assert histogram_plot("scores-1", "loss", None) is None
    assert interval_plot((), 0.55) is None


def test_roc_curves_stand_on_logarithmic_axes_beside_the_chance_line() -> None:
    root = parsed(roc_plot([curves("loss", 0.5), curves("entropy", 0.2)]))
    assert texts(root).count("0.001") == 2
    assert {"loss", "entropy", "chance"} <= set(texts(root))
    dashes = [path.get("stroke-dasharray") for path in root.iter(f"{SVG}path")]
    assert len(set(dashes)) == 2


def test_margin_chance_and_every_auc_are_labelled() -> None:
    labels = texts(parsed(interval_plot(passing_view().attacks, 0.55)))
    assert {"chance", "margin 0.55", "0.5312", "0.5077", "0.5298", "modified_entropy"} <= set(labels)


@given(
    st.lists(st.integers(0, 5000), min_size=2, max_size=30).filter(lambda counts: max(counts) > 0),
)
def test_the_shares_beside_a_histogram_are_few_and_round(counts: list[int]) -> None:
    edges = tuple(float(edge) for edge in range(len(counts) + 1))
    shown = histogram_plot(
        "s",
        "loss",
        ScoreHistogram(edges, tuple(counts), tuple(counts), rows_members=sum(counts), rows_non_members=sum(counts)),
    )
    labels = [Decimal(t.text or "") for t in parsed(shown).iter(f"{SVG}text") if t.get("text-anchor") == "end"]
    steps = {high - low for low, high in itertools.pairwise(labels)}
    assert labels[0] == 0
    assert 3 <= len(labels) <= 6
    assert labels[-1] <= Decimal(max(counts)) / sum(counts) + Decimal("1e-9")
    assert len(steps) == 1
    assert steps.pop().normalize().as_tuple().digits in ((1,), (2,), (5,), (2, 5))


def test_no_curve_is_drawn_like_another_or_like_the_claim_or_chance() -> None:
    names = ("confidence", "loss", "entropy", "modified_entropy", "lira_offline", "rmia")
    claim = DifferentialPrivacyClaim(3.0, 1e-5)
    root = parsed(roc_plot([curves(name, 0.5) for name in names], claim=claim))
    looks = [(path.get("stroke-dasharray"), path.get("stroke-width")) for path in root.iter(f"{SVG}path")]
    assert len(looks) == len(set(looks)) == len(names) + 1


def test_everything_lies_inside_the_drawing() -> None:
    drawn = curves("loss", 3.0)
    for plot in (
        roc_plot([drawn]),
        histogram_plot("s", "loss", drawn.histogram),
        interval_plot(passing_view().attacks, 0.95),
    ):
        root = parsed(plot)
        _, _, width, height = (float(number) for number in str(root.get("viewBox")).split())
        for element in root.iter():
            for name, limit in (
                ("x", width),
                ("cx", width),
                ("x1", width),
                ("x2", width),
                ("y", height),
                ("y1", height),
                ("y2", height),
            ):
                assert 0 <= float(element.get(name, 0)) <= limit


def test_a_hostile_attack_name_is_text_in_every_plot() -> None:
    name = "</text><script>alert(1)</script>"
    drawn = curves(name, 0.5)
    for plot in (roc_plot([drawn]), histogram_plot("scores-1", name, drawn.histogram)):
        root = parsed(plot)
        assert not list(root.iter(f"{SVG}script"))
        assert name in "".join(root.itertext())
