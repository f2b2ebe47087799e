"""A working folder with a policy and a key in it, beside a real MLflow: where a test checks models as a user does."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

# MLflow's own, on logging and loading models with pickle and with integer columns.
MLFLOW_WARNINGS = [
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*integer column:UserWarning"),
]


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder with a fresh policy and key; give the policy's path."""
    monkeypatch.chdir(tmp_path)
    for name in ("PRIVACY_GATE_POLICY", "PRIVACY_GATE_SIGNING_KEY", "PRIVACY_GATE_KEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    assert run("init").exit_code == 0
    return tmp_path / "privacy-gate.yaml"
