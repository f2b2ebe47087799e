"""How a store is named to people: which one, and never its credentials."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

SCHEME = "privacy-gate"


def said_without_credentials(uri: str) -> str:
    """Return a store's URI as it may stand in a message: user, password and query left out."""
    prefix, inner = (f"{SCHEME}:", uri[len(SCHEME) + 1 :]) if uri.startswith(f"{SCHEME}:") else ("", uri)
    parts = urlsplit(inner)
    host = parts.netloc.rpartition("@")[2]
    if not parts.scheme or (parts.netloc == host and not parts.query):
        return prefix + inner
    return prefix + urlunsplit((parts.scheme, host, parts.path, "", ""))
