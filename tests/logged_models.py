"""Real models on a real MLflow: trained on noisy rows, logged and registered the quick way, with or without their splits."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.models import infer_signature
from sklearn.linear_model import LogisticRegression

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG

TARGET = "label"
ROWS = 200


@dataclass(frozen=True)
class Registered:
    """A registered version with the model that was fitted."""

    name: str
    version: str
    run_id: str
    model_id: str
    estimator: Any

    @property
    def uri(self) -> str:
        return f"models:/{self.name}/{self.version}"

    @property
    def tags(self) -> Mapping[str, str]:
        tags: Mapping[str, str] = MlflowClient().get_model_version(self.name, self.version).tags
        return tags


def noisy_rows(count: int = ROWS, *, seed: int = 0) -> pd.DataFrame:
    """Give rows of six numbers and a label (0 or 1) that hangs on the first, loosely."""
    rng = np.random.default_rng(seed)
    frame: pd.DataFrame = pd.DataFrame(rng.normal(size=(count, 6)), columns=list("abcdef"))
    frame[TARGET] = (frame["a"] + 2 * rng.normal(size=count) > 0).astype("int64")
    return frame


MEMBERS, NON_MEMBERS = noisy_rows(seed=1), noisy_rows(seed=2)


def held_back() -> Any:
    """An estimator that remembers next to nothing of its rows."""
    return LogisticRegression(C=0.001)


def log_model(
    estimator: Any, members: pd.DataFrame = MEMBERS, *, target: str = TARGET, signature: bool = True, **options: Any
) -> Registered:
    """Fit, log and register under a fresh name, in the active run."""
    features = members.drop(columns=target)
    estimator.fit(features, members[target])
    name = f"model-{uuid.uuid4().hex[:8]}"
    info = mlflow.sklearn.log_model(
        estimator,
        name="model",
        registered_model_name=name,
        pip_requirements=["scikit-learn"],
        signature=infer_signature(features, estimator.predict(features)) if signature else None,
        **{"serialization_format": "cloudpickle", **options},
    )
    return Registered(name, str(info.registered_model_version), info.run_id, info.model_id, estimator)


def log_checked_model(
    estimator: Any,
    members: pd.DataFrame = MEMBERS,
    non_members: pd.DataFrame = NON_MEMBERS,
    *,
    target: str = TARGET,
    **options: Any,
) -> Registered:
    """Log a model with its splits, as a training script does; the rows are stored beside the run."""
    with mlflow.start_run():
        logged = log_model(estimator, members, target=target, **options)
        privacy_gate.log_splits(members, non_members, target=target, store_rows=True)
    return logged


def nothing_was_written(model: Registered) -> bool:
    """Whether no check has left anything on the version or in its run."""
    client = MlflowClient()
    artifacts = {item.path for item in client.list_artifacts(model.run_id, "privacy_gate")}
    artifacts |= {item.path for item in client.list_artifacts(model.run_id)}
    metrics = client.get_run(model.run_id).data.metrics
    ours = {
        "README.md",
        *(f"privacy_gate/{name}" for name in ("report.html", "report.md", "curves.json", "attestation.dsse.json")),
    }
    tags = {name for name in model.tags if name.startswith("privacy_gate.")}
    assert not tags & {VERDICT_TAG, ATTESTATION_TAG}
    return not (tags or artifacts & ours or any(name.startswith("privacy_gate/") for name in metrics))
