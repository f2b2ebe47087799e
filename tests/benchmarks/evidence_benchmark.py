"""Speed of row-set digests, shared rows and model digests, as ratios to plain sha256 over the same bytes in the same run.

Run with ``python tests/benchmarks/evidence_benchmark.py [rows]``. Times are CPU seconds of this process; memory is what numpy and Python
allocated beyond the tables (tracemalloc).
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.rowset import rowset_digest, shared_rows


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def mixed_frame(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    columns: dict[str, object] = {f"f{i}": rng.normal(size=rows) for i in range(10)}
    columns |= {f"i{i}": rng.integers(0, 100, rows) for i in range(5)}
    columns |= {f"s{i}": rng.choice(["north", "south", "elsewhere"], rows) for i in range(4)}
    columns |= {"id": [f"patient-{i}" for i in range(rows)], "flag": rng.random(rows) < 0.5}
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, 30))
    plain = cpu_seconds(lambda: hashlib.sha256(numbers.data).digest()) / numbers.nbytes
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}")
    print(f"plain sha256: {1e-6 / plain:.0f} MB/s; {rows} rows\n")
    mixed = mixed_frame(rows, rng)
    tables = {
        "30 floats, numpy": (numbers, numbers.nbytes),
        "30 floats, pandas": (pd.DataFrame(numbers).copy(), numbers.nbytes),
        "30 floats, Arrow": (pa.table({str(i): numbers[:, i] for i in range(30)}), numbers.nbytes),
        "5 floats, pandas": (pd.DataFrame(numbers[:, :5].copy()), numbers.nbytes // 6),
        "10 floats, 5 integers, 5 texts, 1 boolean, pandas": (mixed, int(mixed.memory_usage(deep=True).sum())),
    }
    for name, (table, size) in tables.items():
        seconds = min(cpu_seconds(lambda table=table: rowset_digest(table)) for _ in range(2))  # type: ignore[misc]
        print(f"row-set digest, {name}: {size / seconds / 1e6:.0f} MB/s, {seconds / size / plain:.1f} x plain sha256")
    other = rng.normal(size=(rows, 30))
    other[: rows // 1000] = numbers[: rows // 1000]
    sides = pd.DataFrame(numbers), pd.DataFrame(other)
    seconds = cpu_seconds(lambda: shared_rows(*sides))
    tracemalloc.start()
    shared_rows(*sides)
    extra = tracemalloc.get_traced_memory()[1] / (2 * numbers.nbytes)
    tracemalloc.stop()
    print(f"shared rows, {rows} + {rows} x 30: {seconds:.2f} s CPU, {extra:.2f} x the data in extra memory")
    with tempfile.TemporaryDirectory() as folder:
        for i in range(4):
            (Path(folder) / f"weights-{i}").write_bytes(os.urandom(64 << 20))
        started = time.perf_counter()
        model_digest(Path(folder))
        wall = time.perf_counter() - started
        print(
            f"model digest, 4 files of 64 MiB: {(256 << 20) / wall / 1e6:.0f} MB/s, {wall / (256 << 20) / plain:.2f} x plain sha256"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
