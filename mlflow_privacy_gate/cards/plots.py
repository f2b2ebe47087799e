"""The report's plots as inline SVG, readable in grey print: lines differ by dash, bars by hatching, nothing by colour alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.curves import RocCurve, ScoreHistogram
from mlflow_privacy_gate.cards.particulars import AttackCurves
from mlflow_privacy_gate.cards.rows import AttackRow
from mlflow_privacy_gate.cards.small_cells import SMALLEST_CELL
from mlflow_privacy_gate.cards.svg import FAINT, INK, Frame, box, dot, drawing, line, path, sideways, text
from mlflow_privacy_gate.evidence.facts import DifferentialPrivacyClaim
from mlflow_privacy_gate.stats.differential_privacy import tpr_ceiling

_WIDTH = 640
_DASHES = ("", "9 4", "2 3", "10 3 2 3", "18 5", "3 7")
_SHADES = (INK, "#3d3d3d", "#5c5c5c", INK, "#3d3d3d", "#5c5c5c")
_CHANCE_DASH = "1 4"
_CEILING_SHADE, _CEILING_WIDTH = "#b5b5b5", 5.0  # a broad pale band: no dash of a curve looks like it
_CEILING_POINTS = 120
_COLUMN_LETTERS = 20  # what a column of the legend has room for


def roc_plot(curves: Sequence[AttackCurves], *, claim: DifferentialPrivacyClaim | None = None) -> Markup | None:
    """Draw ROC curves on log-log axes, with a line for chance and the ceiling of a claim's epsilon; None where no curve was given.

    Drawn as steps, since no threshold attains a point in between. On these axes the left end, where an attacker is hardly ever wrong, is as
    wide as the rest.
    """
    drawn = [(each.attack, each.roc) for each in curves if each.roc is not None][: len(_DASHES)]
    if not drawn:
        return None
    lowest = float(math.floor(math.log10(min(roc.smallest_fpr for _, roc in drawn))))
    frame = Frame(64, 16, _WIDTH - 84, 320, (lowest, 0.0), (lowest, 0.0))
    chance = line((frame.left, frame.bottom), (frame.right, frame.top), colour=FAINT, width=1.5, dash=_CHANCE_DASH)
    elements = [*_log_grid(frame, int(lowest)), chance]
    elements += [
        path(_steps(roc, frame), colour=shade, dash=dash)
        for (_, roc), dash, shade in zip(drawn, _DASHES, _SHADES, strict=False)
    ]
    names = [_Key(attack, dash, shade) for (attack, _), dash, shade in zip(drawn, _DASHES, _SHADES, strict=False)]
    names.append(_Key("chance", _CHANCE_DASH, FAINT))
    above = ""
    if claim is not None:
        elements.insert(0, path(_ceiling(claim, frame), colour=_CEILING_SHADE, width=_CEILING_WIDTH))
        names.append(
            _Key(f"most that epsilon {numbers.exact(claim.epsilon)} allows", "", _CEILING_SHADE, _CEILING_WIDTH)
        )
        above = " No curve of a model whose claim of differential privacy holds rises above the claim's line, but for chance."
    elements += _line_legend(names, frame.bottom + 58)
    return drawing(
        "roc",
        "ROC curves on logarithmic axes",
        "Share of training rows found against share of held-out rows wrongly called training rows, for "
        + ", ".join(attack for attack, _ in drawn)
        + ". A curve above the dotted chance line does better than guessing. The numbers stand in the table of true positive rates."
        + above,
        (_WIDTH, int(frame.bottom) + 68 + 18 * math.ceil(len(names) / 3)),
        elements,
    )


def _ceiling(claim: DifferentialPrivacyClaim, frame: Frame) -> str:
    """Trace the largest TPR that the claim allows at each FPR."""
    lowest = frame.x_range[0]
    powers = [lowest + (0.0 - lowest) * step / (_CEILING_POINTS - 1) for step in range(_CEILING_POINTS)]
    allowed = [max(tpr_ceiling(claim.epsilon, claim.delta, 10.0**power), 10.0**lowest) for power in powers]
    places = [(frame.x(power), frame.y(math.log10(tpr))) for power, tpr in zip(powers, allowed, strict=True)]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _log_grid(frame: Frame, lowest: int) -> list[Markup]:
    elements = []
    for power in range(lowest, 1):
        label = numbers.exact(10.0**power)
        x, y = frame.x(power), frame.y(power)
        elements += [line((x, frame.top), (x, frame.bottom)), line((frame.left, y), (frame.right, y))]
        elements += [
            text((x, frame.bottom + 18), label, anchor="middle"),
            text((frame.left - 8, y + 4), label, anchor="end"),
        ]
    elements.append(text((frame.left + frame.width / 2, frame.bottom + 36), "false positive rate", anchor="middle"))
    elements.append(sideways((14, frame.top + frame.height / 2), "true positive rate"))
    return elements


def _steps(roc: RocCurve, frame: Frame) -> str:
    lowest = 10.0 ** frame.x_range[0]
    places = [
        (frame.x(math.log10(max(fpr, lowest))), frame.y(math.log10(max(tpr, lowest))))
        for fpr, tpr in zip(roc.fpr, roc.tpr, strict=True)
    ]
    return f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])


@dataclass(frozen=True)
class _Key:
    """One entry of a legend: its words and the line they belong to."""

    words: str
    dash: str
    shade: str
    width: float = 2.0


def _line_legend(entries: Sequence[_Key], y: float) -> list[Markup]:
    """Lay keys out in three columns; one with much to say begins a row of its own, so that its words have room."""
    elements, column, place = [], (_WIDTH - 84) / 3, 0
    for key in entries:
        place = math.ceil(place / 3) * 3 if len(key.words) > _COLUMN_LETTERS else place
        left, top = 64 + (place % 3) * column, y + (place // 3) * 18
        elements += [line((left, top - 4), (left + 36, top - 4), colour=key.shade, width=key.width, dash=key.dash)]
        elements += [text((left + 44, top), key.words)]
        place += 1
    return elements


def histogram_plot(name: str, attack: str, histogram: ScoreHistogram | None) -> Markup | None:
    """Draw the shares of members (solid) and non-members (hatched) per bin of one attack's score; None where none was given."""
    if histogram is None:
        return None
    shares = [
        [(c or 0) / rows for c in counts]
        for counts, rows in (
            (histogram.members, histogram.rows_members),
            (histogram.non_members, histogram.rows_non_members),
        )
    ]
    top = max(max(side) for side in shares) or 1.0
    frame = Frame(64, 16, _WIDTH - 84, 220, (0.0, float(len(histogram.edges) - 1)), (0.0, top * 1.05))
    hatch = f"{name}-hatch"
    elements = [_hatching(hatch), *_share_axis(frame, top), *_score_axis(frame, histogram.edges)]
    width = frame.width / (len(histogram.edges) - 1)
    for side, fill, shift in ((shares[0], "#4a4a4a", 0.08), (shares[1], f"url(#{hatch})", 0.5)):
        for position, share in enumerate(side):
            if share:
                corner = (frame.x(position) + shift * width, frame.y(share))
                elements.append(box(corner, (0.42 * width, frame.bottom - corner[1]), fill=fill))
    elements += _bar_legend(frame, hatch)
    return drawing(
        name,
        f"Scores of {attack}, members and non-members",
        f"Share of each side's rows per bin of the score of {attack}; the more the two sides differ, the better the attack tells them "
        f"apart. The outer bins hold everything beyond; bins with fewer than {SMALLEST_CELL} rows are left blank.",
        (_WIDTH, 316),
        elements,
    )


def _hatching(name: str) -> Markup:
    return Markup(
        '<defs><pattern id="{}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="5" height="5" fill="#ffffff"/><line x1="0" y1="0" x2="0" y2="5" stroke="{}" stroke-width="2"/></pattern></defs>'
    ).format(name, INK)


def _share_axis(frame: Frame, top: float) -> list[Markup]:
    elements = [line((frame.left, frame.bottom), (frame.right, frame.bottom), colour=INK)]
    for share in _round_shares(top):
        y = frame.y(share)
        elements += [
            line((frame.left, y), (frame.right, y)),
            text((frame.left - 8, y + 4), numbers.exact(share), anchor="end"),
        ]
    elements.append(sideways((14, frame.top + frame.height / 2), "share of the side's rows"))
    return elements


def _round_shares(top: float) -> list[float]:
    """Give three to six round shares from 0 up to ``top``."""
    magnitude = 10.0 ** math.floor(math.log10(top))
    step = next(magnitude * factor for factor in (0.2, 0.25, 0.5, 1, 2) if top / (magnitude * factor) < 6)
    return [float(f"{number * step:.12g}") for number in range(math.floor(top / step + 1e-9) + 1)]


def _score_axis(frame: Frame, edges: Sequence[float]) -> list[Markup]:
    bins = len(edges) - 1
    every = max(1, math.ceil(bins / 6))
    shown = range(every, bins, every)
    elements = [text((frame.x(at), frame.bottom + 18), f"{edges[at]:.6g}", anchor="middle") for at in shown]
    elements.append(text((frame.left + frame.width / 2, frame.bottom + 36), "attack score", anchor="middle"))
    return elements


def _bar_legend(frame: Frame, hatch: str) -> list[Markup]:
    y = frame.bottom + 62
    return [
        box((frame.left, y - 11), (22, 12), fill="#4a4a4a"),
        text((frame.left + 30, y), "members (training rows)"),
        box((frame.left + 220, y - 11), (22, 12), fill=f"url(#{hatch})"),
        text((frame.left + 250, y), "non-members (held-out rows)"),
    ]


def interval_plot(attacks: Sequence[AttackRow], margin: float) -> Markup | None:
    """Draw each attack's AUC with its 95 % interval beside chance and margin; None where nothing was measured."""
    measured = [(row, row.value) for row in attacks if row.value is not None]
    if not measured:
        return None
    ends = [end for row, value in measured for end in (row.low, row.high, value) if end is not None]
    low = math.floor((min(*ends, 0.5) - 0.02) * 20) / 20
    high = math.ceil((max(*ends, margin) + 0.02) * 20) / 20
    frame = Frame(190, 34, _WIDTH - 270, 34.0 * len(measured), (low, high), (0.0, 1.0))
    elements = [*_interval_axis(frame, margin)]
    for position, (row, value) in enumerate(measured):
        y = frame.top + 34.0 * position + 17
        elements.append(
            text((frame.left - 12, y + 4), row.name if row.gating else f"{row.name} (reported only)", anchor="end")
        )
        if row.low is not None and row.high is not None:
            elements.append(line((frame.x(row.low), y), (frame.x(row.high), y), colour=INK, width=2))
            elements += [
                line((frame.x(end), y - 5), (frame.x(end), y + 5), colour=INK, width=2) for end in (row.low, row.high)
            ]
        elements += [dot((frame.x(value), y)), text((frame.right + 12, y + 4), row.auc)]
    return drawing(
        "intervals",
        "Attack AUC with 95 % interval per attack",
        f"Chance is 0.5, the margin {numbers.exact(margin)}. "
        + " ".join(f"{row.name}: {row.auc}, interval {row.interval}." for row, _ in measured),
        (_WIDTH, int(frame.bottom) + 46),
        elements,
    )


def _interval_axis(frame: Frame, margin: float) -> list[Markup]:
    low, high = frame.x_range
    step = next(step for step in (0.05, 0.1, 0.2) if (high - low) / step <= 6)
    ticks = [tick * step for tick in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    elements = []
    for tick in ticks:
        elements.append(line((frame.x(tick), frame.top), (frame.x(tick), frame.bottom)))
        elements.append(text((frame.x(tick), frame.bottom + 18), f"{tick:.2f}", anchor="middle"))
    elements.append(text((frame.left + frame.width / 2, frame.bottom + 38), "attack AUC", anchor="middle"))
    chance, limit = frame.x(0.5), frame.x(margin)
    elements.append(line((chance, frame.top - 6), (chance, frame.bottom), colour=FAINT, width=1.5, dash=_CHANCE_DASH))
    elements.append(text((chance - 3, frame.top - 12), "chance", anchor="end", colour=FAINT))
    elements.append(line((limit, frame.top - 6), (limit, frame.bottom), colour=INK, width=1.5, dash="6 3"))
    elements.append(text((limit + 3, frame.top - 12), f"margin {numbers.exact(margin)}"))
    return elements
