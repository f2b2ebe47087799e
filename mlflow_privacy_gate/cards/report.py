"""The evaluation report: self-contained HTML without scripts, and the same in Markdown, both from one view."""

from __future__ import annotations

from pathlib import Path

from mlflow_privacy_gate.cards.plots import histogram_plot, interval_plot, roc_plot
from mlflow_privacy_gate.cards.templates import one_blank_line, render
from mlflow_privacy_gate.cards.view import CardView


def html_report(view: CardView, *, templates: Path | None = None) -> str:
    """Render ``report.html``: one file, nothing loaded from elsewhere, fit to be printed."""
    curves = view.particulars.curves
    drawn = [
        (each, histogram_plot(f"scores-{n}", each.attack, each.histogram)) for n, each in enumerate(curves, start=1)
    ]
    return render(
        "report.html.j2",
        folder=templates,
        view=view,
        roc=roc_plot(curves, claim=view.evidence.card.differential_privacy),
        histograms=[(each.attack, plot) for each, plot in drawn if plot is not None],
        intervals=interval_plot(view.attacks, view.verdict.margin),
    )


def markdown_report(view: CardView, *, templates: Path | None = None) -> str:
    """Render ``report.md``; the plots stand in the HTML report alone."""
    return one_blank_line(render("report.md.j2", folder=templates, view=view))
