"""Servers that several modules share, since they are slow to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from evidence_builder import write_policy
from live_server import LiveServer, live_server
from postgres import postgres
from signed_servers import GUARD, SIGNER


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def signed_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with two workers that trusts ``SIGNER``, on either database."""
    folder = tmp_path_factory.mktemp("signed")
    policy = write_policy(folder / "privacy-gate.yaml", SIGNER, GUARD)
    if request.param == "sqlite":
        with live_server(folder, policy=policy, workers=2) as running:
            yield running
        return
    with (
        postgres() as cluster,
        live_server(folder, policy=policy, workers=2, database=cluster.new_database("mlflow")) as running,
    ):
        yield running
