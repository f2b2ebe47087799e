"""The demo as a newcomer runs it, twice in the same folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

pytestmark = pytest.mark.slow


def demo(home: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a home of its own, with nothing set that a fresh shell would not have."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LD_LIBRARY_PATH")}
    return subprocess.run(
        [sys.executable, "-m", "mlflow_privacy_gate", "demo"],
        cwd=home,
        env={**kept, "HOME": str(home), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def outside(home: Path) -> set[str]:
    """Name what lies beside the demo's folder; what MLflow keeps of itself in ``~`` is not the demo's."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file()
        and not str(path.relative_to(home)).startswith(("privacy-gate-demo/", ".mlflow/", ".cache/", ".config/"))
    }


def test_the_demo_refuses_one_model_promotes_another_and_may_be_run_again(tmp_path: Path) -> None:
    for attempt in (1, 2):
        started = time.monotonic()
        ran = demo(tmp_path)
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert time.monotonic() - started < 300  # 90 s on two quiet cores
        assert "Traceback" not in ran.stderr
        assert re.search(rf"demo-overfitted\W+{attempt}\W+0\.\d+ .*fail.*refused", ran.stdout)
        assert re.search(rf"demo-regularised\W+{attempt}\W+0\.\d+ .*pass.*promoted", ran.stdout)
        assert "this is what a simple test misses" in ran.stdout
        assert "PG201" in ran.stdout
        assert "mlflow server" in ran.stdout
        assert outside(tmp_path) == set()
    database = f"sqlite:///{tmp_path / 'privacy-gate-demo' / 'mlflow.db'}"
    client = MlflowClient(database, database)
    stages = {
        name: [client.get_model_version(name, str(version)).current_stage for version in (1, 2)]
        for name in ("demo-overfitted", "demo-regularised")
    }
    assert stages["demo-overfitted"] == ["None", "None"]
    assert stages["demo-regularised"][1] == "Production"
    assert float(client.get_model_version("demo-overfitted", "1").tags["privacy_gate.attack_auc"]) > 0.55
    folder = tmp_path / "privacy-gate-demo"
    assert {"mlflow.db", "mlartifacts", "privacy-gate.yaml", "privacy-gate.key"} <= {
        path.name for path in folder.iterdir()
    }
    assert list(folder.glob("mlartifacts/**/README.md"))
    assert list(folder.glob("mlartifacts/**/report.html"))
