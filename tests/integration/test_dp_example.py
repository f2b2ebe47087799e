"""The example of differentially private training runs as it says, and shows what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dp_extra import needs_dp_accounting

SCRIPT = Path(__file__).parents[2] / "examples" / "dp_training" / "train.py"


@needs_dp_accounting
@pytest.mark.slow
def test_the_example_shows_epsilon_accuracy_and_both_attacks_with_and_without_privacy(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    head, *lines = ran.stdout.strip().splitlines()[:4]
    words = "privacy epsilon accuracy held out confidence AUC calibrated AUC AUC allowed epsilon needed"
    assert " ".join(head.split()) == words
    table = {cells[0]: cells[1:] for cells in (line.split() for line in lines)}
    assert list(table) == ["without", "moderate", "strong"]
    epsilon, _, held_out, confidence, calibrated, allowed, needed = table["strong"]
    assert 0.5 < float(epsilon) <= 1
    assert float(held_out) > 0.8
    assert max(float(confidence), float(calibrated)) <= float(allowed)
    assert float(needed) <= float(epsilon)
    assert table["without"][0] == "none"
    assert float(table["without"][4]) > float(calibrated) + 0.02  # the calibrated attack sees what confidence does not
    assert float(table["without"][6]) > 1
    assert (tmp_path / "dp_training.png").read_bytes().startswith(b"\x89PNG")
