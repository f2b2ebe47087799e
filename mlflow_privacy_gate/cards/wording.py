"""Words that are never said of a model, since no test shows them; what may be said is "evidence of resistance to the attacks run"."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NEVER_SAID = re.compile(
    r"\b(anonym(?:ous(?:ly)?|i[sz]ed|ity)|private(?:ly)?|safe(?:ly)?|GDPR[\s-]+(?:compliant|compliance)|"
    r"(?:no|zero|without(?:\s+any)?)\s+leak(?:age|s)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Misuse:
    """One word never said of a model, and the line (from 1) it stands on."""

    line: int
    words: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.words!r} is never said of a model; say `evidence of resistance to the attacks run`"


def misuses(text: str, *, first_line: int = 1) -> tuple[Misuse, ...]:
    """Find every word in ``text`` that is never said of a model, in order; phrases may run over a line end.

    ``first_line`` is the number of the text's first line in its file.
    """
    return tuple(
        Misuse(text.count("\n", 0, found.start()) + first_line, " ".join(found.group().split()))
        for found in _NEVER_SAID.finditer(text)
    )
