"""What the author's card tells the gate under ``privacy_gate:``, typed strictly, every mistake with its line.

A claim may only make the test stricter, so a misspelt one must not pass as absent: an unknown key is an error. The author's words on
data and use are shown and judge nothing.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mlflow_privacy_gate.cards.particulars import RELEASE_CONTEXTS, AuthorsWords
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.evidence.facts import CardClaims, DifferentialPrivacyClaim
from mlflow_privacy_gate.stats.renyi import LEAST_NOISE, MOST_NOISE, MOST_STEPS, NOISE_EXPECTED, STEPS_EXPECTED

CLAIM_KEYS = ("personal_data", "data_categories", "max_attack_auc", "differential_privacy")
WORD_KEYS = ("training_data", "cohort", "use_agreement", "release_context")
GATE_KEYS = (
    "verdict",
    "attack_auc",
    "margin",
    "checked_at",
    "expires_at",
    "model_digest",
    "attestation_sha256",
    "policy",
)
_CLAIM_KEYS = ("epsilon", "delta", "unit", "accountant", "sampling_rate", "noise_multiplier", "steps")
# PyYAML reads `1e-5` as text (YAML 1.1 wants `1.0e-5`); YAML 1.2 and every author read a number.
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Declared:
    """What a card's author declares: ``claims`` that bear on the verdict, and ``words`` that are only shown."""

    claims: CardClaims = field(default_factory=CardClaims)
    words: AuthorsWords = field(default_factory=AuthorsWords)


def declared_in(section: Mapping[object, object], line_of: Callable[[str], int]) -> Declared:
    """Type what a ``privacy_gate:`` section declares; ``line_of`` gives the card's line of a key.

    CardError names every mistake, one a line, as ``line 7: privacy_gate.max_attack_auc: expected …, got …``.
    """
    reading = _Reading("privacy_gate", line_of)
    reading.refuse_unknown_keys(section, (*CLAIM_KEYS, *WORD_KEYS, *GATE_KEYS))
    claims = CardClaims(
        personal_data=reading.boolean(section, "personal_data"),
        data_categories=reading.words(section, "data_categories"),
        max_attack_auc=reading.number(section, "max_attack_auc", "a fraction in [0.5, 1]", lambda v: 0.5 <= v <= 1),
        differential_privacy=_differential_privacy(section, reading),
    )
    words = AuthorsWords(
        training_data=reading.text(section, "training_data"),
        cohort=reading.text(section, "cohort"),
        use_agreement=reading.text(section, "use_agreement"),
        release_context=reading.one_of(section, "release_context", RELEASE_CONTEXTS),
    )
    if reading.problems:
        raise CardError("\n".join(reading.problems))
    return Declared(claims, words)


def _differential_privacy(section: Mapping[object, object], outer: _Reading) -> DifferentialPrivacyClaim | None:
    claim = section.get("differential_privacy")
    if claim is None:
        return None
    if not isinstance(claim, Mapping):
        outer.wrong("differential_privacy", "epsilon, delta and unit as keys", claim)
        return None
    inner = _Reading(
        "privacy_gate.differential_privacy", lambda _: outer.line_of("differential_privacy"), outer.problems
    )
    inner.refuse_unknown_keys(claim, _CLAIM_KEYS)
    epsilon = inner.number(claim, "epsilon", "a number of at least 0", lambda v: v >= 0, required=True)
    delta = inner.number(claim, "delta", "a fraction in [0, 1)", lambda v: 0 <= v < 1, required=True)
    unit, accountant = inner.text(claim, "unit"), inner.text(claim, "accountant")
    rate = inner.number(claim, "sampling_rate", "a fraction in (0, 1]", lambda v: 0 < v <= 1)
    noise = inner.number(claim, "noise_multiplier", NOISE_EXPECTED, lambda v: LEAST_NOISE <= v <= MOST_NOISE)
    steps = inner.number(claim, "steps", STEPS_EXPECTED, lambda v: 1 <= v <= MOST_STEPS and v == int(v))
    if epsilon is None or delta is None:
        return None
    return DifferentialPrivacyClaim(
        epsilon, delta, unit, accountant, rate, noise, None if steps is None else int(steps)
    )


class _Reading:
    """One mapping being read; mistakes are gathered, so that all are reported together."""

    def __init__(self, path: str, line_of: Callable[[str], int], problems: list[str] | None = None) -> None:
        self.path = path
        self.line_of = line_of
        self.problems: list[str] = [] if problems is None else problems

    def wrong(self, key: str, expected: str, got: object) -> None:
        """Note one mistake."""
        self.problems.append(f"line {self.line_of(key)}: {self.path}.{key}: expected {expected}, got {got!r}")

    def refuse_unknown_keys(self, section: Mapping[object, object], known: tuple[str, ...]) -> None:
        """Note every key that is not known, with the nearest known one."""
        for key in section:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f" (did you mean {near[0]}?)" if near else f"; known: {', '.join(known)}"
                self.problems.append(f"line {self.line_of(str(key))}: {self.path}: unknown key {str(key)!r}{hint}")

    def boolean(self, section: Mapping[object, object], key: str) -> bool | None:
        """Give true or false, None where the key is absent or null."""
        value = section.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, "true or false", value)
        return None

    def words(self, section: Mapping[object, object], key: str) -> tuple[str, ...]:
        """Give a list of words; empty where the key is absent or null."""
        value = section.get(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(word, str) and word.strip() for word in value):
            return tuple(word.strip() for word in value)
        self.wrong(key, "a list of words like [health]", value)
        return ()

    def text(self, section: Mapping[object, object], key: str) -> str | None:
        """Give text, None where the key is absent or null; blank text is a mistake."""
        value = section.get(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.wrong(key, "text (a number or a date in quotes)", value)
        return None

    def one_of(self, section: Mapping[object, object], key: str, known: tuple[str, ...]) -> str | None:
        """Give one of the known words, None where the key is absent or null."""
        value = section.get(key)
        if value is None or (isinstance(value, str) and value in known):
            return value
        self.wrong(key, f"one of {', '.join(known)}", value)
        return None

    def number(
        self,
        section: Mapping[object, object],
        key: str,
        expected: str,
        holds: Callable[[float], bool],
        *,
        required: bool = False,
    ) -> float | None:
        """Give a finite number that ``holds``, None where the key is absent or null and not required."""
        value = section.get(key)
        if value is None and not required:
            return None
        number = _as_number(value)
        if number is not None and holds(number):
            return number
        self.wrong(key, expected, value)
        return None


def _as_number(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
