"""What a guarded promotion costs over a plain one, in a client and through a server, on SQLite and PostgreSQL.

Run it with ``PYTHONPATH=tests python tests/benchmarks/promotion_benchmark.py [calls]``. A model of 1 MB, signed evidence, digest verified,
decision written to the ledger. Plain and guarded calls take turns, so that both meet the same machine; times are medians of wall clock
in milliseconds.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import mlflow
from evidence_builder import attestation, fresh_signer, passing_evidence, write_policy
from lines import Line, at_most, numbers_asked, report
from live_server import live_server
from mlflow import MlflowClient
from postgres import postgres
from registry_seed import seed_version

from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

MODEL_BYTES = 1_000_000
SIGNER = fresh_signer()


def medians(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Time the calls in turns; milliseconds each."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 5):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if number >= 5:  # the first ones fill caches and pools
                taken[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(times) for name, times in taken.items()}


def prepared(client: MlflowClient, experiment: str = "0") -> None:
    """Register two versions with passing evidence: an alias that moves between them is written anew each time."""
    for number in range(2):
        seeded = seed_version(client, "credit", bytes([number]) * MODEL_BYTES, experiment=experiment)
        tag = attestation(passing_evidence(seeded.digest), SIGNER)
        client.set_model_version_tag("credit", seeded.version, ATTESTATION_TAG, tag)


def moving(client: MlflowClient, alias: str) -> Callable[[], None]:
    versions = cycle("12")
    return lambda: client.set_registered_model_alias("credit", alias, next(versions))


def in_process(folder: Path, database: str, rounds: int) -> dict[str, float]:
    """Compare stores in this process."""
    mlflow.set_tracking_uri(database)
    plain = MlflowClient(tracking_uri=database, registry_uri=database)
    guarded = MlflowClient(tracking_uri=database, registry_uri=f"privacy-gate:{database}")
    experiment = plain.create_experiment("benchmark", artifact_location=(folder / "artifacts").as_uri())
    prepared(plain, experiment)
    return medians(
        {
            "plain promotion": moving(plain, "champion"),
            "guarded promotion": moving(guarded, "champion"),
            "plain unguarded": moving(plain, "candidate"),
            "guarded store, unguarded": moving(guarded, "candidate"),
        },
        rounds,
    )


def through_rest(folder: Path, policy: Path, databases: tuple[str | None, str | None], rounds: int) -> dict[str, float]:
    """Compare two servers, one plain and one gated, each on a database of its own."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(live_server(folder / name, policy=policy, gated=gated, database=database))
            for name, gated, database in (("plain", False, databases[0]), ("gated", True, databases[1]))
        ]
        plain, guarded = (MlflowClient(tracking_uri=server.url, registry_uri=server.url) for server in servers)
        for client in (plain, guarded):
            prepared(client)
        return medians(
            {
                "plain promotion": moving(plain, "champion"),
                "guarded promotion": moving(guarded, "champion"),
                "plain unguarded": moving(plain, "candidate"),
                "guarded store, unguarded": moving(guarded, "candidate"),
            },
            rounds,
        )


def lines(where: str, found: Mapping[str, float], *, more_ms: float, unguarded: float | None = None) -> Iterator[Line]:
    """Give what a guarded promotion costs more, and what a guarded store costs a call that is not guarded."""
    plain, guarded, free, through = found.values()
    note = f"{plain:.1f} to {guarded:.1f} ms"
    yield at_most(
        f"guarded promotion over a plain one, {where}", guarded - plain, more_ms, "ms more", digits=1, note=note
    )
    work = f"unguarded call through a guarded store, {where}"
    if unguarded is None:
        yield Line(work, f"{through / free:.3f} x a plain one")
    else:
        yield at_most(work, through / free, unguarded, "x a plain one", digits=3)


def measure(rounds: int) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as temporary, postgres() as cluster:
        folder = Path(temporary)
        policy = write_policy(folder / "privacy-gate.yaml", SIGNER)
        os.environ["PRIVACY_GATE_POLICY"] = str(policy)
        sqlite = in_process(folder / "a", f"sqlite:///{folder / 'mlflow.db'}", rounds)
        yield from lines("SQLite in-process", sqlite, more_ms=12)
        yield from lines(
            "PostgreSQL in-process", in_process(folder / "b", cluster.new_database("process"), rounds), more_ms=20
        )
        rest = through_rest(folder / "c", policy, (None, None), rounds)
        yield from lines("SQLite through REST", rest, more_ms=15, unguarded=1.02)
        databases = (cluster.new_database("plain"), cluster.new_database("gated"))
        rest = through_rest(folder / "d", policy, databases, rounds)
        yield from lines("PostgreSQL through REST", rest, more_ms=15, unguarded=1.02)


if __name__ == "__main__":
    raise SystemExit(report(measure(numbers_asked(100))))
