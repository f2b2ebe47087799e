"""Getting at a source: local paths in place, MLflow and cloud URIs through MLflow, HTTP only from hosts that the policy allows."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from mlflow_privacy_gate.errors import CouldNotLook, SplitsUnavailable
from mlflow_privacy_gate.splits._interface import LoggedArtifacts
from mlflow_privacy_gate.splits.locations import is_uri, local_path, objection

_WEB = ("http", "https")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class SourceAccess:
    """What may be read, and through what.

    ``http_hosts``: hosts that HTTP sources may name (the policy's ``sources.http_hosts``). ``max_rows``: most rows of one
    side that may be read, None for all: a digest needs them all, and a test may then take a sample.
    ``max_download_bytes``: most bytes of one HTTP source.
    """

    artifacts: LoggedArtifacts
    http_hosts: tuple[str, ...] = ()
    max_rows: int | None = None
    max_download_bytes: int = 8 << 30

    @contextmanager
    def open(self, source: str) -> Iterator[Path]:
        """Give a local path with the source's bytes; SplitsUnavailable with the reason where that cannot be."""
        refused = objection(source)
        if refused:
            raise SplitsUnavailable(f"source {source!r} cannot be loaded: {refused}")
        path = local_path(source)
        if path is not None:
            if not path.exists():
                raise SplitsUnavailable(
                    f"source {source!r} is not on this machine (looked at {path.resolve()}); a source must be reachable from "
                    "where the check runs: use a shared location, `log_splits(store_rows=True)`, or --members and --non-members"
                )
            yield path
        elif is_uri(source) and urlsplit(source).scheme.lower() in _WEB:
            with tempfile.TemporaryDirectory(prefix="privacy-gate-") as folder:
                yield self._download(source, Path(folder))
        else:
            with self.artifacts.download_artifacts(source) as copy:
                yield copy

    def _download(self, source: str, folder: Path) -> Path:
        parts = urlsplit(source)
        host = (parts.hostname or "").lower()
        if host not in {allowed.lower() for allowed in self.http_hosts}:
            raise SplitsUnavailable(
                f"source {source!r}: HTTP sources are read only from hosts that the policy names; "
                f"add {host!r} to `sources.http_hosts`, or hand the splits in with --members and --non-members"
            )
        file = folder / (Path(parts.path).name or "rows")
        opener = urllib.request.build_opener(_SameHost(host))
        try:
            with opener.open(source, timeout=60) as answer, file.open("wb") as copy:
                self._copy_capped(answer, copy, source)
        except HTTPError as exc:
            raise SplitsUnavailable(f"source {source!r}: the server answered {exc.code} {exc.reason}") from exc
        except (URLError, TimeoutError) as exc:
            raise CouldNotLook(f"source {source!r}: cannot be reached: {exc}") from exc
        return file

    def _copy_capped(self, answer: IO[bytes], copy: IO[bytes], source: str) -> None:
        left = self.max_download_bytes
        while chunk := answer.read(_CHUNK_BYTES):
            left -= len(chunk)
            if left < 0:
                raise SplitsUnavailable(
                    f"source {source!r}: more than {self.max_download_bytes:,} bytes; not read further"
                )
            copy.write(chunk)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to the host that was allowed."""

    def __init__(self, host: str) -> None:
        self._host = host

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        parts = urlsplit(newurl)
        if (parts.hostname or "").lower() != self._host or parts.scheme not in _WEB:
            raise SplitsUnavailable(
                f"source {req.full_url!r}: redirects to {parts.hostname!r}, another host; not followed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)
