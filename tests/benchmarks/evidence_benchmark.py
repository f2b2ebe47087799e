"""Speed of row-set digests, shared rows and model digests, against plain sha256 over the same bytes in the same run.

Run it with ``python tests/benchmarks/evidence_benchmark.py [rows]``. Times are CPU seconds of this process; memory is what numpy and Python
allocated beyond the tables (tracemalloc).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from lines import Line, at_least, at_most, cpu_seconds, numbers_asked, report

from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.rowset import rowset_digest, shared_rows


def mixed_frame(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    columns: dict[str, object] = {f"f{i}": rng.normal(size=rows) for i in range(10)}
    columns |= {f"i{i}": rng.integers(0, 100, rows) for i in range(5)}
    columns |= {f"s{i}": rng.choice(["north", "south", "elsewhere"], rows) for i in range(4)}
    columns |= {"id": [f"patient-{i}" for i in range(rows)], "flag": rng.random(rows) < 0.5}
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


def row_sets(rows: int) -> Iterator[Line]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, 30))
    plain = cpu_seconds(lambda: hashlib.sha256(numbers.data).digest()) / numbers.nbytes
    mixed = mixed_frame(rows, rng)
    tables: dict[str, tuple[object, int, float | None]] = {
        "30 numbers, pandas": (pd.DataFrame(numbers).copy(), numbers.nbytes, 200),
        "30 numbers, numpy": (numbers, numbers.nbytes, 200),
        "30 numbers, Arrow": (pa.table({str(i): numbers[:, i] for i in range(30)}), numbers.nbytes, 200),
        "mixed columns, pandas": (mixed, int(mixed.memory_usage(deep=True).sum()), 100),
    }
    for name, (table, size, target) in tables.items():
        seconds = min(cpu_seconds(lambda table=table: rowset_digest(table)) for _ in range(2))  # type: ignore[misc]
        note = f"{seconds / size / plain:.1f} x plain sha256"
        yield at_least(
            f"row-set digest, {rows:,} rows, {name}", size / seconds / 1e6, target or 0, "MB/s", digits=0, note=note
        )
    other = rng.normal(size=(rows, 30))
    other[: rows // 1000] = numbers[: rows // 1000]
    sides = pd.DataFrame(numbers), pd.DataFrame(other)
    yield at_most(f"shared rows, {rows:,} + {rows:,} x 30", cpu_seconds(lambda: shared_rows(*sides)), 2, "s CPU")
    tracemalloc.start()
    shared_rows(*sides)
    extra = tracemalloc.get_traced_memory()[1] / (2 * numbers.nbytes)
    tracemalloc.stop()
    yield at_most("extra memory of that", extra, 0.3, "x the data")


def model_files() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"weights-{i}" for i in range(4)]
        for file in files:
            file.write_bytes(os.urandom(64 << 20))
        tool = shutil.which("sha256sum")
        if tool is None:
            yield Line("model digest, 4 files of 64 MiB", "not measured: there is no sha256sum here")
            return
        ours = min(_wall(lambda: model_digest(Path(folder))) for _ in range(3))
        theirs = min(_wall(lambda: subprocess.run([tool, *files], check=True, capture_output=True)) for _ in range(3))
    yield at_least("model digest, 4 files of 64 MiB", theirs / ours, 0.9, "x the speed of sha256sum")


def _wall(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(rows: int) -> Iterator[Line]:
    yield from row_sets(rows)
    yield from model_files()


if __name__ == "__main__":
    raise SystemExit(report(measure(numbers_asked(1_000_000))))
