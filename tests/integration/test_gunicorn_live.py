"""The gate under gunicorn, and over a disk that clients reach themselves: for those who serve MLflow in other ways than by default."""

from __future__ import annotations

import importlib.util
import urllib.request
from pathlib import Path

import pytest
from evidence_builder import attestation, fresh_signer, passing_evidence, write_policy
from live_server import live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from registry_seed import seed_version

from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="gunicorn is not installed"),
]


def test_pages_answer_and_promotions_are_guarded(tmp_path: Path) -> None:
    signer = fresh_signer()
    policy = write_policy(tmp_path / "privacy-gate.yaml", signer)
    options = ["--gunicorn-opts", "--timeout 60", "--default-artifact-root", "./mlruns", "--no-serve-artifacts"]
    with live_server(tmp_path / "server", policy=policy, options=options) as server:
        for page in ("/health", "/", "/version"):
            with urllib.request.urlopen(f"{server.url}{page}", timeout=30) as answer:
                assert answer.status == 200
        client = MlflowClient(tracking_uri=server.url, registry_uri=server.url)
        seeded = seed_version(client, "credit")
        assert seeded.source.startswith(str(tmp_path / "server" / "mlruns"))
        with pytest.raises(MlflowException) as caught:
            client.set_registered_model_alias("credit", "champion", "1")
        assert caught.value.error_code == "PERMISSION_DENIED"
        tag = attestation(passing_evidence(seeded.digest), signer)
        client.set_model_version_tag("credit", "1", ATTESTATION_TAG, tag)
        client.set_registered_model_alias("credit", "champion", "1")
    assert "gunicorn" in server.log.read_text(errors="replace")
