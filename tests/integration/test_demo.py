"""The demo as a newcomer runs it, twice in the same folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from live_server import typed_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

pytestmark = pytest.mark.slow


def demo(home: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a home of its own, with nothing set that a fresh shell would not have."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LD_LIBRARY_PATH")}
    return subprocess.run(
        [sys.executable, "-m", "mlflow_privacy_gate", "demo"],
        cwd=home,
        env={**kept, "PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


STEPS = (
    "Preparing MLflow's database",
    *(
        f"{step} demo-{name}"
        for name in ("overfitted", "regularised", "quiet")
        for step in ("Training and logging", "Checking", "Moving")
    ),
)


def outside(home: Path) -> set[str]:
    """Name what lies beside the demo's folder; what MLflow keeps of itself in ``~`` is not the demo's."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file()
        and not str(path.relative_to(home)).startswith(("privacy-gate-demo/", ".mlflow/", ".cache/", ".config/"))
    }


@dataclass(frozen=True)
class FirstRun:
    """The demo's first run in a folder: the home it was run in, what it printed, and how long it took."""

    home: Path
    ran: subprocess.CompletedProcess[str]
    seconds: float


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    home = tmp_path_factory.mktemp("a home")
    started = time.monotonic()
    return FirstRun(home, demo(home), time.monotonic() - started)


def test_the_demo_refuses_one_model_promotes_another_and_may_be_run_again(first: FirstRun) -> None:
    assert first.seconds < 300  # 90 s on two quiet cores
    for attempt, ran in ((1, first.ran), (2, demo(first.home))):
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert "Traceback" not in ran.stderr
        for name, verdict, moved, thorough in (
            ("overfitted", "fail", "refused", "fail"),
            ("regularised", "pass", "promoted", "pass"),
            ("quiet", "pass", "promoted", "fail"),
        ):
            row = rf"demo-{name}\W+{attempt}\W+0\.\d+ .*\b{verdict}\b.*\b{moved}\b\W+{thorough}: 0\.\d+"
            assert re.search(row, ran.stdout), ran.stdout
        assert "demo-quiet passes the standard preset and fails the thorough one" in ran.stdout
        assert "PG201" in ran.stdout
        assert [step for step in STEPS if step not in ran.stderr] == []
        assert "INFO" not in ran.stderr
        assert outside(first.home) == set()
    database = f"sqlite:///{first.home / 'privacy-gate-demo' / 'mlflow.db'}"
    client = MlflowClient(database, database)
    stages = {
        name: [client.get_model_version(name, str(version)).current_stage for version in (1, 2)]
        for name in ("demo-overfitted", "demo-regularised")
    }
    assert stages["demo-overfitted"] == ["None", "None"]
    assert stages["demo-regularised"][1] == "Production"
    assert float(client.get_model_version("demo-overfitted", "1").tags["privacy_gate.attack_auc"]) > 0.55
    folder = first.home / "privacy-gate-demo"
    assert {"mlflow.db", "mlartifacts", "privacy-gate.yaml", "privacy-gate.key"} <= {
        path.name for path in folder.iterdir()
    }
    assert list(folder.glob("mlartifacts/**/README.md"))
    assert list(folder.glob("mlartifacts/**/report.html"))
    for name in ("demo-overfitted", "demo-regularised"):  # each path stands under the name of its model
        [run] = re.findall(rf"^  {name} version 2\n    .+/mlartifacts/(\w+)/", ran.stdout, flags=re.MULTILINE)
        assert client.get_model_version(name, "2").run_id == run


def test_the_server_command_that_the_demo_prints_works_in_a_shell_without_the_environment(first: FirstRun) -> None:
    printed = first.ran.stdout
    command = printed[printed.index("  PRIVACY_GATE_POLICY=") :]
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(first.home), "MLFLOW_DISABLE_TELEMETRY": "true"}
    with typed_server(command, first.home, bare) as url:
        client = MlflowClient(url, url)
        with pytest.raises(MlflowException, match="PG201"):
            client.set_registered_model_alias("demo-overfitted", "champion", "1")
        client.set_registered_model_alias("demo-regularised", "champion", "1")
