from __future__ import annotations

import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from mlflow_privacy_gate.cli.init import guarded_server
from mlflow_privacy_gate.evidence.signing import load_signer
from mlflow_privacy_gate.policy import load_policy


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PRIVACY_GATE_POLICY", "PRIVACY_GATE_KEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def test_init_writes_a_policy_that_trusts_the_key_beside_it(tmp_path: Path) -> None:
    ran = run("init")
    assert ran.exit_code == 0
    policy = load_policy(tmp_path / "privacy-gate.yaml")
    signer = load_signer(tmp_path / "privacy-gate.key")
    assert [(key.id, key.role) for key in policy.keys] == [("tester", "tester")]
    assert (policy.keys[0].public_key or "").strip() == signer.public_pem.strip()
    assert policy.mode == "enforce"


def test_the_key_is_its_owners_alone_even_under_a_loose_umask(tmp_path: Path) -> None:
    import os

    before = os.umask(0)
    try:
        assert run("init").exit_code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "privacy-gate.key").stat().st_mode) == 0o600


def test_the_key_is_ignored_by_git_and_the_policy_is_not(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.pyc")  # no newline at its end
    assert run("init").exit_code == 0
    listed = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert "privacy-gate.yaml" in listed
    assert "privacy-gate.key" not in listed
    assert (tmp_path / ".gitignore").read_text().splitlines()[0] == "*.pyc"


@pytest.mark.parametrize("standing", ["privacy-gate.yaml", "privacy-gate.key"])
def test_init_never_overwrites_either_file_and_writes_neither(tmp_path: Path, standing: str) -> None:
    (tmp_path / standing).write_text("mine")
    ran = run("init")
    assert ran.exit_code == 2
    assert standing in ran.stderr
    assert "left alone" in ran.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {standing: "mine"}


@pytest.mark.parametrize("standing", ["privacy-gate.yaml", "privacy-gate.key"])
def test_init_does_not_write_through_a_dangling_link(tmp_path: Path, standing: str) -> None:
    (tmp_path / standing).symlink_to(tmp_path / "elsewhere")
    assert run("init").exit_code == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_password_encrypts_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVACY_GATE_KEY_PASSWORD", "correct horse")
    ran = run("init")
    assert ran.exit_code == 0
    assert "ENCRYPTED" in (tmp_path / "privacy-gate.key").read_text()
    assert "correct horse" not in ran.stdout + ran.stderr


def test_nothing_private_is_printed_and_the_server_command_is(tmp_path: Path) -> None:
    ran = run("init")
    secret = (tmp_path / "privacy-gate.key").read_text().splitlines()[1]
    assert secret not in ran.stdout + ran.stderr
    assert secret not in (tmp_path / "privacy-gate.yaml").read_text()
    assert f"PRIVACY_GATE_POLICY={tmp_path / 'privacy-gate.yaml'}" in ran.stdout
    assert "--registry-store-uri privacy-gate:" in ran.stdout


@pytest.mark.parametrize("activated", [True, False])
def test_the_printed_server_command_works_activated_or_not_and_with_blanks_in_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activated: bool
) -> None:
    environment = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{environment}:/usr/bin:/bin" if activated else "/usr/bin:/bin")
    policy = tmp_path / "my folder" / "privacy-gate.yaml"
    command = guarded_server(policy, "sqlite:///my folder/mlflow.db")
    assert ("  mlflow server " in command) is activated
    shown = subprocess.run(["bash", "-c", f"{command} --help"], capture_output=True, text=True, check=True).stdout
    assert "--registry-store-uri" in shown
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == f"PRIVACY_GATE_POLICY={policy}"
    assert words[-1] == "privacy-gate:sqlite:///my folder/mlflow.db"
