"""A store's URI is said without credentials."""

from __future__ import annotations

import pytest

from mlflow_privacy_gate.registry.stores import said_without_credentials


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("sqlite:///mlflow.db", "sqlite:///mlflow.db"),
        ("sqlite:////srv/mlflow.db", "sqlite:////srv/mlflow.db"),
        ("postgresql+psycopg2://user:secret@db:5432/ml", "postgresql+psycopg2://db:5432/ml"),
        ("privacy-gate:mysql+pymysql://u:p@w@db/ml?ssl_key=/k", "privacy-gate:mysql+pymysql://db/ml"),
        ("https://token@mlflow.bank/path", "https://mlflow.bank/path"),
        ("privacy-gate:sqlite:///m.db", "privacy-gate:sqlite:///m.db"),
        ("databricks-uc", "databricks-uc"),
        ("/srv/mlruns", "/srv/mlruns"),
    ],
)
def test_a_store_is_named_without_credentials(uri: str, said: str) -> None:
    assert said_without_credentials(uri) == said
