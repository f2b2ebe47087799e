"""Where a split's rows lie: local paths and URIs told apart from tables, queries and the unloadable, in words."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

# In the order in which they are tried: the longest suffix first.
SUFFIXES = (".csv.gz", ".jsonl.gz", ".tsv.gz", ".csv", ".tsv", ".jsonl", ".parquet", ".feather", ".npz")
_QUERY = re.compile(r"^\s*(select|with|show|describe|from)\b.*\s", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r"^[`\w-]+(\.[`\w-]+){1,2}$")
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+:")


def suffix_of(source: str) -> str | None:
    """Return the known file suffix that a path or URI ends with (any letter case), or None."""
    path = (urlsplit(source).path if is_uri(source) else source).rstrip("/").lower()
    return next((suffix for suffix in SUFFIXES if path.endswith(suffix)), None)


def is_uri(source: str) -> bool:
    """Say whether a source names a scheme (``s3:``, ``runs:``, ``file:``); a plain path does not."""
    return bool(_SCHEME.match(source))


def local_path(source: str) -> Path | None:
    """Return the local path of a plain path or ``file:`` URI, or None where the source is elsewhere."""
    if not is_uri(source):
        return Path(source).expanduser()
    parts = urlsplit(source)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def missing_file(source: str) -> Path | None:
    """Return the local file that a source names and that is not here, or None where it is here, elsewhere, or no file at all."""
    path = local_path(source)
    return None if path is None or path.exists() or not source.strip() else path


def objection(source: str) -> str | None:
    """Say why a source can surely not be loaded as a file of rows, or None where it may be."""
    if not source.strip():
        return "it is empty"
    path = local_path(source)
    if path is not None and not path.exists():
        if _QUERY.match(source):
            return "it looks like a query, and only files can be read back"
        if suffix_of(source) is None and _TABLE.match(source):
            return "it looks like a table name, and only files can be read back"
    if is_uri(source) and "@" in urlsplit(source).netloc:
        return "it holds a user name or password, which would be stored for all to read"
    named = Path(urlsplit(source).path if is_uri(source) else source).name
    folder = path is not None and path.is_dir()
    if suffix_of(source) is None and "." in named and not folder:
        return f"its suffix is unknown (known: {', '.join(sorted(SUFFIXES))}; a folder of such files is one too)"
    return None
