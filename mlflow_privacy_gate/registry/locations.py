"""Following ``models:/…`` locations to the place where bytes lie."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.registry import mlflow_private

_MOST_HOPS = 32


def follow(
    location: str, *, version_location: Callable[[str, str], str], logged_model_location: Callable[[str], str]
) -> str:
    """Follow a version's location through copies and logged models to ``runs:/…`` or a place itself.

    ``version_location(name, version)`` and ``logged_model_location(model_id)`` say where those lie. CouldNotLook for a location that
    names whatever an alias or stage points to, or that leads nowhere.
    """
    start = location
    for _ in range(_MOST_HOPS):
        if urlsplit(location).scheme.lower() != "models":
            return location
        parsed = mlflow_private.parse_model_uri(location)
        if parsed.model_id is not None:
            location = logged_model_location(parsed.model_id)
        elif parsed.version is not None:
            location = version_location(parsed.name, parsed.version)
        else:
            raise CouldNotLook(f"{location} names whatever an alias or stage points to, not the bytes of one version")
    raise CouldNotLook(f"{start} leads through more than {_MOST_HOPS} other versions")
