"""What the extra ``dp`` brings: tests that need it are skipped aloud where it is missing, and never in CI."""

from __future__ import annotations

import importlib.util
import os

import pytest

needs_dp_accounting = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None and not os.environ.get("CI"),
    reason="dp-accounting is not installed: pip install 'mlflow-privacy-gate[dp]'",
)
