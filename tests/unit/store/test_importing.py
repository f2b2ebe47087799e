"""What runs inside somebody's tracking server stays light."""

from __future__ import annotations

import json
import subprocess
import sys


def test_importing_the_store_loads_neither_sklearn_nor_torch() -> None:
    program = (
        "import sys, json, mlflow_privacy_gate.store;"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(finished.stdout.splitlines()[-1]))
    assert "mlflow" in loaded
    assert not loaded & {"sklearn", "torch", "tensorflow", "xgboost", "matplotlib"}


def test_mlflow_finds_the_store_by_its_scheme() -> None:
    from importlib.metadata import entry_points

    found = entry_points(group="mlflow.model_registry_store", name="privacy-gate")
    assert [point.value for point in found] == ["mlflow_privacy_gate.store:open_gated_store"]
