"""Inline SVG, element by element: every text is escaped, every drawing carries a title and a description for those who cannot see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

INK = "#1a1a1a"
FAINT = "#767676"
GRID = "#d9d9d9"
FONT = "font-family:system-ui,-apple-system,'Segoe UI',sans-serif"


@dataclass(frozen=True)
class Frame:
    """The rectangle in which data is drawn, in SVG units, with the data range along each axis (already on the axis' own scale)."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def x(self, value: float) -> float:
        """Where a value lies from the left; values beyond the range lie on its edge."""
        return self.left + self.width * _share(value, self.x_range)

    def y(self, value: float) -> float:
        """Where a value lies from the top; values beyond the range lie on its edge."""
        return self.bottom - self.height * _share(value, self.y_range)


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(1.0, max(0.0, (value - low) / (high - low)))


def drawing(name: str, title: str, description: str, size: tuple[int, int], elements: Iterable[Markup]) -> Markup:
    """Give a whole drawing of ``size`` (width, height); ``name`` makes its ids unique in a page."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'aria-labelledby="{name}-title {name}-description" style="max-width:100%;height:auto;{font}">'
        '<title id="{name}-title">{title}</title><desc id="{name}-description">{description}</desc>{elements}</svg>'
    ).format(
        width=size[0],
        height=size[1],
        name=name,
        title=title,
        description=description,
        font=FONT,
        elements=Markup("").join(elements),
    )


def line(
    start: tuple[float, float], end: tuple[float, float], *, colour: str = GRID, width: float = 1, dash: str = ""
) -> Markup:
    """Give a straight line; ``dash`` as SVG writes it."""
    return Markup(
        '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}" stroke-dasharray="{}"/>'
    ).format(*start, *end, colour, width, dash or "none")


def path(steps: str, *, colour: str = INK, width: float = 2, dash: str = "") -> Markup:
    """Give an unfilled path."""
    return Markup('<path d="{}" fill="none" stroke="{}" stroke-width="{}" stroke-dasharray="{}"/>').format(
        steps, colour, width, dash or "none"
    )


def box(corner: tuple[float, float], size: tuple[float, float], *, fill: str, stroke: str = INK) -> Markup:
    """Give a rectangle."""
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" stroke="{}"/>').format(
        *corner, *size, fill, stroke
    )


def dot(centre: tuple[float, float], *, radius: float = 4, fill: str = INK) -> Markup:
    """Give a filled circle."""
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>').format(*centre, radius, fill)


def text(at: tuple[float, float], words: object, *, anchor: str = "start", size: int = 12, colour: str = INK) -> Markup:
    """Give one line of text; ``anchor`` is start, middle or end."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="{}" fill="{}">{}</text>').format(
        *at, anchor, size, colour, escape(words)
    )


def sideways(at: tuple[float, float], words: object, *, size: int = 12) -> Markup:
    """Give one line of text read from below, for the vertical axis."""
    return Markup(
        '<text x="{0:.1f}" y="{1:.1f}" text-anchor="middle" font-size="{2}" fill="{3}" transform="rotate(-90 {0:.1f} {1:.1f})">{4}</text>'
    ).format(*at, size, INK, escape(words))
