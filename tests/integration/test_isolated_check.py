"""The whole check with the model in a child process, as the command line does it, against models that mean harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest
from evidence_builder import write_policy
from hostile_models import FOREST, SEARCH, X, Y, can_shut_in, make_hostile
from mlflow_home import MlflowHome, mlflow_home, mlflow_store

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.signing import generate_key

__all__ = ["mlflow_home", "mlflow_store"]

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="child processes of this kind need POSIX"),
    pytest.mark.slow,
]

PASSWORD = "hush-hush"
PRIVATE = "PRIVATE KEY"


@dataclass(frozen=True)
class Logged:
    """A logged model: its URI, its folder, and a policy with a key beside it."""

    uri: str
    folder: Path
    policy: Path
    key: Path
    home: MlflowHome

    def check(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run ``check`` as a user would, with secrets in its environment."""
        environ = {
            **os.environ,
            **{"PRIVACY_GATE_SIGNING_KEY": str(self.key), "AWS_SECRET_ACCESS_KEY": PASSWORD},
            **{"MLFLOW_TRACKING_TOKEN": PASSWORD, "PRIVACY_GATE_NOTE": PASSWORD},
        }
        command = [sys.executable, "-m", "mlflow_privacy_gate", "check", self.uri, "--policy", str(self.policy)]
        servers = ["--tracking-uri", self.home.uri, "--registry-uri", self.home.uri]
        return subprocess.run(
            [*command, *servers, *options], env=environ, capture_output=True, text=True, timeout=120, check=False
        )


@pytest.fixture
def logged(mlflow_home: MlflowHome, tmp_path: Path) -> Logged:
    key = tmp_path / "privacy-gate.key"
    policy = write_policy(tmp_path / "privacy-gate.yaml", generate_key(key))
    policy.write_text(policy.read_text() + "limits: {seconds: 20, memory_gb: 2}\n")
    frame = X.assign(label=Y)
    with warnings.catch_warnings(), mlflow.start_run():
        warnings.simplefilter("ignore", UserWarning)
        info = mlflow.sklearn.log_model(
            FOREST, name="model", serialization_format="cloudpickle", pip_requirements=["scikit-learn"]
        )
        privacy_gate.log_splits(frame.iloc[:120], frame.iloc[120:], target="label", store_rows=True)
    (pickled,) = mlflow_home.artifacts.rglob("model.pkl")
    return Logged(info.model_uri, pickled.parent, policy, key, mlflow_home)


def test_the_command_line_opens_the_model_in_a_child_and_says_so(logged: Logged) -> None:
    done = logged.check("--output", "json", "--dry-run")
    assert done.returncode in (0, 1, 3), done.stderr
    here = logged.check("--output", "json", "--dry-run", "--in-process")
    child, in_process = (json.loads(one.stdout) for one in (done, here))
    assert (child.pop("isolation"), in_process.pop("isolation")) == ("child-process", "in-process")
    assert child["attack_auc"] == in_process["attack_auc"]
    assert child["confidence_auc"] == in_process["confidence_auc"]


def test_a_training_script_has_the_choice(logged: Logged) -> None:
    result = privacy_gate.check(logged.uri, policy=logged.policy, isolation="child-process", dry_run=True)
    assert result.evidence.tool.isolation == "child-process"
    default = privacy_gate.check(logged.uri, policy=logged.policy, dry_run=True)
    assert default.evidence.tool.isolation == "in-process"
    assert result.evidence.attacks == default.evidence.attacks
    with pytest.raises(UsageError, match="expected 'in-process' or 'child-process', got 'sandbox'"):
        privacy_gate.check(logged.uri, isolation="sandbox")


def test_a_logged_model_that_searches_the_machine_finds_no_key_and_no_credential(
    logged: Logged, tmp_path: Path
) -> None:
    make_hostile(logged.folder, SEARCH.format(mark=PASSWORD[::-1], paths=[str(logged.key)]))
    credential_here, credential = logged.check("--in-process"), logged.check()
    make_hostile(logged.folder, SEARCH.format(mark=PRIVATE[::-1], paths=[str(logged.key)]))
    key_here, key = logged.check("--in-process"), logged.check()
    # The search is one that finds, where it may.
    assert "FOUND ['environ', 'environ of a process'" in credential_here.stderr
    assert "'file by its path'" in key_here.stderr
    assert (credential.returncode, key.returncode) == (3, 3)
    assert "FOUND [" in credential.stderr
    assert "'environ'" not in credential.stderr
    if can_shut_in(tmp_path / "harmless"):  # elsewhere, cards say that it was not
        assert "FOUND []" in credential.stderr
        assert "FOUND []" in key.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(0)",
        "while True: pass",
        "held = []\nwhile True: held.append(bytearray(1 << 24))",
        "import os\nfor number in range(3, 64):\n    try: os.write(number, b'x' * 100)\n    except OSError: pass",
        "print('pass ' * 1000); raise SystemExit(0)",
    ],
    ids=["exits", "hangs", "allocates", "talks nonsense", "prints"],
)
def test_a_harmful_model_could_not_be_judged_within_the_limits(logged: Logged, code: str) -> None:
    make_hostile(logged.folder, code)
    start = time.monotonic()
    done = logged.check()
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert (
        time.monotonic() - start < 120
    )  # most of it is the start of the command on a busy machine; without a limit it never ends
