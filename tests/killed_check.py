"""Check versions of one model in child processes, each killed before another write, and say what each left behind.

    python killed_check.py DATABASE_URI MODEL_NAME

Version 1 is checked whole. Each death then has a version of its own, of the same bytes: first versions that hold the whole result of an
earlier check, then fresh ones. One JSON line a version. It forks, so that everything is imported once; no child inherits an open store.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import mlflow
import mlflow.sklearn
import mlflow.store.model_registry.sqlalchemy_store
import mlflow.store.tracking.sqlalchemy_store
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

import mlflow_privacy_gate as privacy_gate
import mlflow_privacy_gate.checks.checking
import mlflow_privacy_gate.models.sklearn_model
from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
from mlflow_privacy_gate.vocabulary import VERDICT_TAG

WRITES = frozenset(
    {"delete_model_version_tag", "log_artifact", "log_artifacts", "log_batch", "update_model_version"}
    | {"set_model_version_tag"}
)
warnings.simplefilter("ignore")


class CountedClient:
    """MLflow's client, in a process that dies before its ``fatal``-th write (never, where that is 0)."""

    def __init__(self, client: MlflowClient, fatal: int) -> None:
        self._client, self._fatal, self.written = client, fatal, 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in WRITES:
            return method

        def write(*arguments: Any, **options: Any) -> Any:
            self.written += 1
            if self.written == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*arguments, **options)

        return write


def in_child(work: Callable[[], Any]) -> Any:
    """Do ``work`` in a forked process; give what it returned, or the number of the signal that killed it as ``{"signal": …}``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    if os.WEXITSTATUS(status):
        raise SystemExit("a child failed")
    return json.loads(said)


def check(name: str, version: str, fatal: int) -> int:
    """Check one version by the real registry, its client counted; give the number of writes."""
    real = MlflowRegistry.client.fget  # type: ignore[attr-defined]
    counted: dict[int, CountedClient] = {}
    MlflowRegistry.client = property(  # type: ignore[assignment,method-assign]
        lambda registry: counted.setdefault(id(registry), CountedClient(real(registry), fatal))
    )
    privacy_gate.check(f"models:/{name}/{version}")
    return sum(client.written for client in counted.values())


def further_version(name: str, *, with_result: bool) -> str:
    """Register the bytes of version 1 once more, with or without its result."""
    client = MlflowClient()
    first = client.get_model_version(name, "1")
    tags = dict(first.tags) if with_result else {}
    return str(client.create_model_version(name, str(first.source), run_id=first.run_id, tags=tags).version)


def left_behind(database: str, name: str, versions: list[str]) -> list[dict[str, Any]]:
    """Say what a user sees of each version: the verdict tag, and whether the gated registry lets it through."""
    client = MlflowClient(tracking_uri=database, registry_uri=f"privacy-gate:{database}")
    seen = []
    for version in versions:
        promoted = True
        try:
            client.set_registered_model_alias(name, "champion", version)
        except MlflowException as refusal:
            if refusal.error_code != "PERMISSION_DENIED":
                raise
            promoted = False
        seen.append({"verdict": client.get_model_version(name, version).tags.get(VERDICT_TAG), "promoted": promoted})
    return seen


def main(database: str, name: str) -> None:
    mlflow.set_tracking_uri(database)
    mlflow.set_registry_uri(database)
    first_writes = in_child(lambda: check(name, "1", 0))
    writes = {
        True: first_writes + 2,
        False: first_writes,
    }  # a second check takes the first one's verdict and attestation back
    planned = [(passed, fatal) for passed in (True, False) for fatal in range(1, writes[passed] + 1)]
    versions = in_child(lambda: [further_version(name, with_result=passed) for passed, _ in planned])
    deaths = [
        {"passed_before": passed, "end": in_child(lambda: check(name, version, fatal))}  # noqa: B023
        for (passed, fatal), version in zip(planned, versions, strict=True)
    ]
    seen = in_child(lambda: left_behind(database, name, versions))
    for death, found in zip(deaths, seen, strict=True):
        print(json.dumps({**death, **found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
