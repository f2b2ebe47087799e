"""Train a model, log it with its splits, and check it.

Needs MLFLOW_TRACKING_URI to name a tracking server (see README.md, "Ten minutes to a refused promotion"), and privacy-gate.yaml
with its key in the working folder (`mlflow-privacy-gate init`).

    python train.py                 # a forest that learns its rows by heart
    python train.py --regularised   # a model that was held back
"""

import sys
from pathlib import Path

import mlflow
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlflow_privacy_gate as privacy_gate

frame = load_breast_cancer(as_frame=True).frame
train, holdout = train_test_split(frame, test_size=0.5, stratify=frame["target"], random_state=7)
data = Path("data").resolve()
data.mkdir(exist_ok=True)
train.to_parquet(data / "train.parquet", index=False)
holdout.to_parquet(data / "holdout.parquet", index=False)

if "--regularised" in sys.argv:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.001))
else:
    model = RandomForestClassifier(bootstrap=False, random_state=0)

mlflow.set_experiment("quickstart")
with mlflow.start_run():
    model.fit(train.drop(columns="target"), train["target"])
    info = mlflow.sklearn.log_model(
        model,
        name="model",
        registered_model_name="tumours",
        skops_trusted_types=["sklearn.tree._tree.Tree"],  # MLflow opens forests only when told to
    )
    privacy_gate.log_splits(
        train,
        holdout,
        target="target",
        members_source=str(data / "train.parquet"),
        non_members_source=str(data / "holdout.parquet"),
    )

result = privacy_gate.check(f"models:/tumours/{info.registered_model_version}")
print(f"version {info.registered_model_version}: {result.verdict}")
print(f"{result.attack} tells training rows apart with AUC {result.attack_auc:.4f}; the margin is {result.margin}")
