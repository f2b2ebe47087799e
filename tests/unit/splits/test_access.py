"""Promises on getting at sources: nothing is fetched that was not allowed, and every refusal says why."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from split_fakes import FakeArtifacts

from mlflow_privacy_gate.errors import CouldNotLook, SplitsUnavailable
from mlflow_privacy_gate.splits.access import SourceAccess
from mlflow_privacy_gate.splits.locations import objection

CONTENT = b"x,y\n1,2\n"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/away.csv":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.connection.getsockname()[1]}/rows.csv")
            self.end_headers()
        elif self.path == "/here.csv":
            self.send_response(302)
            self.send_header("Location", "/rows.csv")
            self.end_headers()
        elif self.path == "/rows.csv":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)
        else:
            self.send_error(404)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def opened(source: str, access: SourceAccess | None = None) -> bytes:
    with (access or SourceAccess(FakeArtifacts())).open(source) as path:
        return path.read_bytes()


def test_a_local_source_is_read_in_place(tmp_path: Path) -> None:
    file = tmp_path / "my rows.csv"
    file.write_bytes(CONTENT)
    assert opened(str(file)) == CONTENT
    assert opened(file.as_uri()) == CONTENT


def test_a_path_of_another_host_is_refused_with_the_path_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SplitsUnavailable, match=r"/other/host/rows\.csv.*reachable from"):
        opened("/other/host/rows.csv")


@pytest.mark.parametrize(
    "source", ["catalog.schema.table", "schema.table", "SELECT * FROM rows", "with a as (select 1) select *"]
)
def test_tables_and_queries_are_called_by_their_names(source: str) -> None:
    with pytest.raises(SplitsUnavailable, match=r"looks like a (table name|query)"):
        opened(source)


@pytest.mark.parametrize(
    "source", ["s3://b/train.parquet", "s3://b/folder", "gs://b/x.csv.gz", "data.csv", "runs:/r/privacy_gate/x.parquet"]
)
def test_what_may_be_loadable_is_not_objected_to(source: str) -> None:
    assert objection(source) is None


@pytest.mark.parametrize("source", ["", "  ", "s3://b/train.xlsx", "model.pkl", "https://me:secret@host/rows.csv"])
def test_what_can_never_be_loaded_is_objected_to(source: str) -> None:
    assert objection(source) is not None


def test_a_mlflow_or_cloud_uri_goes_through_mlflow(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(CONTENT)
    assert opened("s3://b/rows.csv", SourceAccess(FakeArtifacts(remote={"s3://b/rows.csv": file}))) == CONTENT


def test_http_is_off_unless_the_host_is_allowed(web: str) -> None:
    with pytest.raises(SplitsUnavailable, match=r"add '127\.0\.0\.1' to `sources\.http_hosts`"):
        opened(f"{web}/rows.csv")
    assert opened(f"{web}/rows.csv", SourceAccess(FakeArtifacts(), http_hosts=("127.0.0.1",))) == CONTENT


def test_a_redirect_is_followed_on_the_same_host_only(web: str) -> None:
    access = SourceAccess(FakeArtifacts(), http_hosts=("127.0.0.1", "localhost"))
    assert opened(f"{web}/here.csv", access) == CONTENT
    with pytest.raises(SplitsUnavailable, match="redirects to 'localhost', another host"):
        opened(f"{web}/away.csv", access)


def test_a_download_stops_at_its_cap_and_missing_files_are_said(web: str) -> None:
    with pytest.raises(SplitsUnavailable, match="more than 5 bytes"):
        opened(f"{web}/rows.csv", SourceAccess(FakeArtifacts(), http_hosts=("127.0.0.1",), max_download_bytes=5))
    with pytest.raises(SplitsUnavailable, match="answered 404"):
        opened(f"{web}/none.csv", SourceAccess(FakeArtifacts(), http_hosts=("127.0.0.1",)))


def test_a_host_that_does_not_answer_could_not_be_looked_at() -> None:
    with pytest.raises(CouldNotLook, match="cannot be reached"):
        opened("http://127.0.0.1:9/rows.csv", SourceAccess(FakeArtifacts(), http_hosts=("127.0.0.1",)))
