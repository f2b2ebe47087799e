from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.policy.location import PolicyFile, find_policy, server_policy, server_policy_file
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.policy.parsing import load_policy


def write(path: Path, mode: str = "enforce") -> Path:
    path.write_text(f"version: 1\nmode: {mode}\n")
    return path


def test_commands_look_in_the_option_then_the_variable_then_the_folder_then_the_built_in(tmp_path: Path) -> None:
    assert find_policy(None, {}, tmp_path).source_name == "built-in policy"
    write(tmp_path / "privacy-gate.yaml", "warn")
    assert find_policy(None, {}, tmp_path).mode is Mode.WARN
    named = write(tmp_path / "named.yaml", "off")
    assert find_policy(None, {"PRIVACY_GATE_POLICY": str(named)}, tmp_path).mode is Mode.OFF
    option = write(tmp_path / "option.yaml", "enforce")
    found = find_policy("option.yaml", {"PRIVACY_GATE_POLICY": str(named)}, tmp_path)
    assert (found.mode, found.source_name, found.folder) == (Mode.ENFORCE, "option.yaml", option.parent)


def test_a_named_file_that_is_missing_is_never_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "privacy-gate.yaml")
    with pytest.raises(PolicyError, match=r"gone\.yaml: cannot be read: No such file"):
        find_policy("gone.yaml", {}, tmp_path)
    with pytest.raises(PolicyError, match=r"gone\.yaml: cannot be read"):
        find_policy(None, {"PRIVACY_GATE_POLICY": "gone.yaml"}, tmp_path)


def test_a_broken_link_in_the_folder_is_not_taken_for_no_policy(tmp_path: Path) -> None:
    (tmp_path / "privacy-gate.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(PolicyError):
        find_policy(None, {}, tmp_path)


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is a folder; name the file in it"):
        load_policy(tmp_path)


def test_a_path_with_a_nul_byte_is_a_policy_error() -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(Path("a\0b"))


def test_relative_paths_in_a_policy_count_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\ntemplates: ./ours\n")
    policy = load_policy(tmp_path / "p.yaml")
    assert policy.templates is not None
    assert policy.locate(policy.templates) == tmp_path / "ours"


def test_the_store_never_reads_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "privacy-gate.yaml", "off")
    monkeypatch.chdir(tmp_path)
    assert server_policy({}).mode is Mode.ENFORCE
    assert server_policy({}).source_name == "built-in policy"


def test_the_store_refuses_a_missing_or_invalid_named_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        server_policy({"PRIVACY_GATE_POLICY": str(tmp_path / "gone.yaml")})
    (tmp_path / "bad.yaml").write_text("version: 1\nmode: maybe\n")
    with pytest.raises(PolicyError, match=r"bad\.yaml:2: mode"):
        server_policy({"PRIVACY_GATE_POLICY": str(tmp_path / "bad.yaml")})


def test_a_change_is_seen_even_with_the_same_size_and_times(tmp_path: Path) -> None:
    path = write(tmp_path / "p.yaml", "enforce")
    file = server_policy_file({"PRIVACY_GATE_POLICY": str(path)})
    assert file.current().mode is Mode.ENFORCE
    stat = path.stat()
    path.write_text("version: 1\nmode:    warn\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert file.current().mode is Mode.WARN


def test_an_unchanged_policy_is_parsed_once(tmp_path: Path) -> None:
    file = PolicyFile(write(tmp_path / "p.yaml"))
    assert file.current() is file.current()


def test_a_file_that_becomes_invalid_refuses_until_it_is_mended(tmp_path: Path) -> None:
    path = write(tmp_path / "p.yaml")
    file = PolicyFile(path)
    file.current()
    path.write_text("version: 1\nmode: nope\n")
    for _ in range(2):
        with pytest.raises(PolicyError, match=r"p\.yaml:2"):
            file.current()
    path.unlink()
    with pytest.raises(PolicyError, match="cannot be read"):
        file.current()
    write(path, "warn")
    assert file.current().mode is Mode.WARN


@pytest.mark.parametrize("put", ["pipe", "device", "folder", "large file", "large flow"])
def test_a_file_that_is_swapped_for_no_policy_refuses_soon_and_until_it_is_back(tmp_path: Path, put: str) -> None:
    path = write(tmp_path / "p.yaml")
    file = PolicyFile(path)
    file.current()
    path.unlink()
    if put == "pipe":
        os.mkfifo(path)
    elif put == "device":
        path.symlink_to("/dev/zero")
    elif put == "folder":
        path.mkdir()
    elif put == "large file":
        path.touch()
        os.truncate(path, 2**30)
    else:
        path.write_text(f"a: [{'1,' * 500_000}]")
    started = time.monotonic()
    with pytest.raises(PolicyError, match=r"^p\.yaml") as caught:
        file.current()
    assert time.monotonic() - started < 2
    assert str(tmp_path) not in str(caught.value)
    path.replace(tmp_path / "away")
    write(path, "warn")
    assert file.current().mode is Mode.WARN


def test_threads_see_whole_policies_only(tmp_path: Path) -> None:
    path = write(tmp_path / "p.yaml")
    file = PolicyFile(path)
    seen: list[Policy] = []
    failures: list[Exception] = []

    def read() -> None:
        try:
            seen.extend(file.current() for _ in range(50))
        except Exception as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for mode in ("warn", "enforce") * 10:
        write(tmp_path / "next.yaml", mode).replace(path)
    for reader in readers:
        reader.join()
    assert not failures
    assert len(seen) == 400
    assert file.current().mode is Mode.ENFORCE
