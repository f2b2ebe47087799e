"""Which library versions a model was made with, and which are here."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping


def compared(recorded: Mapping[str, str | None], here: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return all versions by name (``… at training`` for the recorded ones) and a sentence for each that differs."""
    versions, sentences = dict(here), []
    for name, then in recorded.items():
        if then is None:
            continue
        versions[f"{name} at training"] = then
        if _release(then) != _release(here[name]):
            sentences.append(
                f"the model was trained with {name} {then} and is scored with {here[name]}: its answers may differ from those it "
                "gives in use; check it in the environment that the model names"
            )
    return versions, tuple(sentences)


def python_here() -> str:
    """Return this Python's version."""
    return platform.python_version()


def _release(version: str) -> tuple[str, ...]:
    """Compare what may change answers: major and minor."""
    return tuple(version.split(".")[:2])


def library_version(estimator: object) -> str:
    """Return the version of the library that an estimator comes from, as it is loaded here."""
    return str(getattr(sys.modules[type(estimator).__module__.partition(".")[0]], "__version__", "unknown"))
