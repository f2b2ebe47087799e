"""What a user installs is what stands in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_template_as_it_stands_in_the_repository(wheel: zipfile.ZipFile) -> None:
    inside = "mlflow_privacy_gate/_templates/"
    shipped = {name.removeprefix(inside): wheel.read(name) for name in wheel.namelist() if name.startswith(inside)}
    assert shipped == {path.name: path.read_bytes() for path in (ROOT / "templates").iterdir()}
    assert shipped


def test_the_wheel_is_typed_and_registers_the_store_and_the_program(wheel: zipfile.ZipFile) -> None:
    assert "mlflow_privacy_gate/py.typed" in wheel.namelist()
    (points,) = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "[mlflow.model_registry_store]\nprivacy-gate = mlflow_privacy_gate.store:open_gated_store" in points
    assert "mlflow-privacy-gate = mlflow_privacy_gate.__main__:main" in points


def test_the_top_level_holds_nothing_unexpected() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    top = {name.split("/")[0] for name in listed if name and not name.startswith(".")}
    assert top == {
        "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "mlflow_privacy_gate", "templates", "tests", "examples",
    }  # fmt: skip


def test_every_direct_import_is_a_declared_dependency() -> None:
    required = requires("mlflow-privacy-gate") or []
    declared = {re.split(r"[^\w-]", line)[0].lower().replace("-", "_") for line in required}
    names = {"sklearn": "scikit_learn", "yaml": "pyyaml"}
    found: dict[str, set[str]] = {}
    for path in (ROOT / "mlflow_privacy_gate").rglob("*.py"):
        for module in _top_level_imports(path.read_text(encoding="utf-8")):
            found.setdefault(names.get(module, module), set()).add(path.name)
    ours = {"mlflow_privacy_gate"}
    missing = {module: sorted(paths) for module, paths in found.items() if module not in declared | ours}
    assert missing == {}


def _top_level_imports(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names)
