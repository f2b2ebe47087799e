"""What a single value of a policy may be: each kind says in one phrase what it expected and what it got."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.keys import parse_public_key
from mlflow_privacy_gate.policy.globs import left_open, plain
from mlflow_privacy_gate.vocabulary import ATTACKS, StrEnum

Choice = TypeVar("Choice", bound=StrEnum)
Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value]):
    """A mapping that cannot be changed, and that copies and pickles, which ``MappingProxyType`` does not."""

    def __init__(self, values: Mapping[Key, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: Key) -> Value:
        return self._values[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


def refused(expected: str, got: object, hint: str = "") -> PydanticCustomError:
    """Make the error for a value: ``expected …, got …`` with an optional hint in brackets."""
    text = f"expected {expected}, got {shown(got)}"
    # Braces are pydantic's template syntax; the text travels as a parameter so that a user's braces stay text.
    return PydanticCustomError("policy_value", "{text}", {"text": f"{text} ({hint})" if hint else text})


def shown(value: object) -> str:
    """Show a value as it would stand in YAML, cut to 60 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Give ``did you mean …?`` for the known word nearest to this one, or the empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def _fraction(low: float, high: float, interval: str) -> Callable[[object], float]:
    """Check for a fraction in the interval that ``interval`` spells; an open end is shown by a round bracket."""

    def inside(number: float) -> bool:
        above = number > low if interval.startswith("(") else number >= low
        return above and (number < high if interval.endswith(")") else number <= high)

    def check(value: object) -> float:
        number = _number(value)
        if number is not None and inside(number):
            return number
        expected = f"a fraction in {interval}"
        if number is not None and 1 < number <= 100 and inside(number / 100):
            raise refused(expected, value, f"did you mean {number / 100:g}?")
        raise refused(expected, value)

    return check


def _whole(at_least: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            raise refused(f"a whole number of at least {at_least}", value)
        return value

    return check


def _positive(value: object) -> float:
    number = _number(value)
    if number is None or number <= 0:
        raise refused("a number above 0", value)
    return number


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refused("true or false", value)
    return value


def _always(value: object) -> bool:
    if value is not True:
        raise refused("true: the stored bytes are always compared with the tested ones", value)
    return True


def _format_version(value: object) -> int:
    if isinstance(value, bool) or value != 1:
        raise refused("1, the only version of this file's format", value)
    return 1


def _public_key(value: object) -> str:
    if not isinstance(value, str):
        raise refused("a public key (PEM)", value)
    if "PRIVATE KEY" in value:
        # The value is left out of the message on purpose.
        raise PydanticCustomError(
            "policy_value", "this is a private key: take it out, keep it secret, and put the public key here"
        )
    try:
        parse_public_key(value)
    except UsageError as error:
        raise PydanticCustomError("policy_value", "{text}", {"text": error.message}) from error
    return value


def _identity(value: object) -> str:
    if not isinstance(value, str) or not value or value != value.strip():
        raise refused("an e-mail address or a URI, as the certificate names it", value)
    if "*" in value:
        raise refused("one identity, letter by letter", value, "patterns are not taken; list each identity")
    return value


def _issuer(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"https://[^\s*]+", value):
        raise refused("the issuer's https:// address, as the certificate names it", value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refused("a text", value)
    return value


def _glob(value: object) -> str:
    glob = _text(value)
    if glob != "".join(one for one in glob.strip() if one.isprintable()):
        raise refused("a glob without blanks around it or invisible characters", value, "it would match no name")
    if left_open(glob):
        raise refused("a glob whose brackets close", value, "write `[[]` for the bracket itself")
    return glob


def _alias_glob(value: object) -> str:
    glob = _glob(value)
    never = sorted(set(re.sub(r"[\w-]", "", plain(glob))))
    if never:
        raise refused(
            "a glob of letters, digits, `_` and `-`", value, f"MLflow takes no alias with {' '.join(never)!r}"
        )
    return glob


def _category(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise refused("a data category in lower case, such as health", value)
    return value


def _attack(value: object) -> str:
    if not isinstance(value, str) or value not in ATTACKS:
        hint = nearest(str(value), ATTACKS) or f"known: {', '.join(ATTACKS)}"
        raise refused("the name of an attack", value, hint)
    return value


def _stage(value: object) -> str:
    stages = {"production": "Production", "staging": "Staging"}
    if not isinstance(value, str) or value.casefold() not in stages:
        raise refused("Production or Staging", value, "archiving is never refused")
    return stages[value.casefold()]


def _moment(value: object) -> datetime:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise refused("a date or time such as 2027-01-31T00:00:00Z", value) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    if isinstance(value, datetime) and value.tzinfo:
        return value
    raise refused("a date or time such as 2027-01-31T00:00:00Z", value)


def choice(kind: type[Choice]) -> BeforeValidator:
    """Check for one of the words of ``kind``."""

    def check(value: object) -> Choice:
        words = [str(member) for member in kind]
        if not isinstance(value, str) or value not in words:
            expected = " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"
            raise refused(expected, value, nearest(str(value), words))
        return kind(value)

    return BeforeValidator(check)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise PydanticCustomError("policy_value", "{text}", {"text": f"listed twice: {', '.join(twice)}"})
    return values


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise PydanticCustomError("policy_value", "expected at least one, got an empty list")
    return values


DISTINCT = AfterValidator(_distinct)
SOME = AfterValidator(_some)

MarginFraction = Annotated[float, BeforeValidator(_fraction(0.5, 1.0, "(0.5, 1]"))]
Fraction = Annotated[float, BeforeValidator(_fraction(0.0, 1.0, "[0, 1]"))]
OpenFraction = Annotated[float, BeforeValidator(_fraction(0.0, 1.0, "(0, 1)"))]
Count = Annotated[int, BeforeValidator(_whole(0))]
PositiveCount = Annotated[int, BeforeValidator(_whole(1))]
PositiveNumber = Annotated[float, BeforeValidator(_positive)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Always = Annotated[bool, BeforeValidator(_always)]
FormatVersion = Annotated[int, BeforeValidator(_format_version)]
PublicKeyPem = Annotated[str, BeforeValidator(_public_key)]
Identity = Annotated[str, BeforeValidator(_identity)]
Issuer = Annotated[str, BeforeValidator(_issuer)]
Text = Annotated[str, BeforeValidator(_text)]
Glob = Annotated[str, BeforeValidator(_glob)]
AliasGlob = Annotated[str, BeforeValidator(_alias_glob)]
Category = Annotated[str, BeforeValidator(_category)]
AttackName = Annotated[str, BeforeValidator(_attack)]
Stage = Annotated[str, BeforeValidator(_stage)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
CategoryMargins = Annotated[Mapping[Category, MarginFraction], AfterValidator(FrozenMapping), PlainSerializer(dict)]
TprLimits = Annotated[Mapping[OpenFraction, Fraction], AfterValidator(FrozenMapping), PlainSerializer(dict)]
