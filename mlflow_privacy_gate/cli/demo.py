"""``demo``: the main job on real data, in one folder, with what became of each promotion, and what a simple test misses."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlflow_privacy_gate.cli.init import POLICY_FILE, guarded_server, write_key_and_policy

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from mlflow_privacy_gate.checks import CheckResult

EXPERIMENT = "privacy-gate-demo"
TARGET = "benign"
SPLIT_SEED = 7
THOROUGH = "version: 1\npreset: thorough\n"

CARD = """\
---
license: cc-by-4.0
tags:
- demo
---

# {name}

{what} Trained on half of scikit-learn's copy of the Breast Cancer Wisconsin (Diagnostic) data set: 569 tumours, 30 measurements
each. The other half was held out.

The rows are health data, and a real model on them would declare `data_categories: [health]`, which lowers the margin to 0.52. At that
margin the test needs 1,128 rows a side, more than the data set holds, and every verdict would be "inconclusive". This demo declares no
category so that you can see a pass and a fail.
"""


@dataclass(frozen=True)
class DemoModel:
    """One model of the demo: its registered name, what it is, and a fresh estimator."""

    name: str
    what: str
    estimator: Any


@dataclass(frozen=True)
class Attempt:
    """What became of one model: its version, its check, the refusal (None when it went to Production).

    ``thorough`` is the same model under the preset of that name, measured and not recorded.
    """

    name: str
    version: str
    result: CheckResult
    thorough: CheckResult
    refusal: str | None


@click.command("demo")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("privacy-gate-demo"),
    show_default=True,
    metavar="FOLDER",
    help="Where everything goes; nothing is left outside it.",
)
def command(folder: Path) -> None:
    """Train three models on real data, check them, and try to promote them: one is refused, one deserved to be.

    The data are scikit-learn's copy of the Breast Cancer Wisconsin (Diagnostic) data set. Nothing is downloaded.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / POLICY_FILE).exists():
        write_key_and_policy(folder)
    say(f"Everything goes to {folder}; this takes about a minute.")
    say("Preparing MLflow's database …")
    with quiet_mlflow(), demo_home(folder):
        attempts = [attempt(model, folder) for model in demo_models()]
    report(attempts, folder)


def say(step: str) -> None:
    """Tell the person who waits what is being done now, on stderr."""
    click.echo(step, err=True)


@contextmanager
def demo_home(folder: Path) -> Iterator[None]:
    """Point MLflow and the gate at ``folder`` for as long as the demo runs, and put everything back after it."""
    import mlflow

    database = f"sqlite:///{folder / 'mlflow.db'}"
    environment = {
        "PRIVACY_GATE_POLICY": str(folder / POLICY_FILE),
        "PRIVACY_GATE_SIGNING_KEY": str(folder / "privacy-gate.key"),
    }
    before = {name: os.environ.get(name) for name in environment}
    tracking_before, registry_before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    os.environ.update(environment)
    mlflow.set_tracking_uri(database)
    mlflow.set_registry_uri(f"privacy-gate:{database}")
    try:
        if mlflow.get_experiment_by_name(EXPERIMENT) is None:
            mlflow.create_experiment(EXPERIMENT, artifact_location=(folder / "mlartifacts").as_uri())
        yield
    finally:
        mlflow.set_tracking_uri(tracking_before)
        mlflow.set_registry_uri(registry_before)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def demo_models() -> list[DemoModel]:
    """Give the demo's models: one that remembers its rows, one that was held back, one that remembers quietly."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return [
        DemoModel(
            "demo-overfitted",
            "A random forest whose every tree saw every row and grew to the end.",
            RandomForestClassifier(bootstrap=False, random_state=0),
        ),
        DemoModel(
            "demo-regularised",
            "A scaled logistic regression under strong regularisation (C = 0.001).",
            make_pipeline(StandardScaler(), LogisticRegression(C=0.001)),
        ),
        DemoModel(
            "demo-quiet",
            "A random forest with at least ten rows in every leaf.",
            RandomForestClassifier(min_samples_leaf=10, random_state=0),
        ),
    ]


def demo_splits(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, Path, Path]:
    """Write the stratified halves of the breast cancer data as parquet and give them with their paths."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": TARGET})
    members, non_members = train_test_split(frame, test_size=0.5, stratify=frame[TARGET], random_state=SPLIT_SEED)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    members_path, non_members_path = data / "members.parquet", data / "non_members.parquet"
    members.to_parquet(members_path, index=False)
    non_members.to_parquet(non_members_path, index=False)
    return members.reset_index(drop=True), non_members.reset_index(drop=True), members_path, non_members_path


def attempt(model: DemoModel, folder: Path) -> Attempt:
    """Train and log one model with its splits, check it, and try to move it to Production."""
    import mlflow

    import mlflow_privacy_gate as privacy_gate
    from mlflow_privacy_gate.policy import parse_policy

    say(f"Training and logging {model.name} …")
    members, non_members, members_path, non_members_path = demo_splits(folder)
    mlflow.set_experiment(EXPERIMENT)
    with mlflow.start_run(run_name=model.name):
        model.estimator.fit(members.drop(columns=TARGET), members[TARGET])
        info = mlflow.sklearn.log_model(
            model.estimator,
            name="model",
            registered_model_name=model.name,
            input_example=members.drop(columns=TARGET).head(2),
            skops_trusted_types=["sklearn.tree._tree.Tree"],
        )
        mlflow.log_text(CARD.format(name=model.name, what=model.what), "README.md")
        privacy_gate.log_splits(
            members,
            non_members,
            target=TARGET,
            members_source=str(members_path),
            non_members_source=str(non_members_path),
        )
    version = str(info.registered_model_version)
    uri = f"models:/{model.name}/{version}"
    say(f"Checking {model.name} version {version} …")
    result = privacy_gate.check(uri)
    say(f"Moving {model.name} version {version} to Production …")
    refusal = promote(model.name, version)
    say(f"Checking {model.name} version {version} again, under the preset thorough …")
    thorough = privacy_gate.check(uri, policy=parse_policy(THOROUGH, "the preset thorough"), dry_run=True)
    return Attempt(model.name, version, result, thorough, refusal)


def promote(name: str, version: str) -> str | None:
    """Ask the gated registry for Production; give the refusal, or None when it was allowed."""
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import PERMISSION_DENIED, ErrorCode

    try:
        MlflowClient().transition_model_version_stage(name, version, "Production")
    except MlflowException as refusal:
        if refusal.error_code != ErrorCode.Name(PERMISSION_DENIED):
            raise
        return refusal.message
    return None


@contextmanager
def quiet_mlflow() -> Iterator[None]:
    """Keep MLflow's notices out of the demo's output."""
    import mlflow  # its import sets the level of its own logger

    logger = logging.getLogger(mlflow.__name__)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", "Hint: Inferred schema contains integer", UserWarning)
            yield
    finally:
        logger.setLevel(level)


def report(attempts: list[Attempt], folder: Path) -> None:
    """Print the table, the refusals, where things lie, and the command that opens MLflow on them."""
    from rich.console import Console

    from mlflow_privacy_gate.vocabulary import Outcome

    console = Console(width=max(100, shutil.get_terminal_size().columns))
    console.print(table_of(attempts))
    for one in attempts:
        if one.result.verdict is Outcome.PASS and one.thorough.verdict is Outcome.FAIL:
            console.print(
                f"{one.name} passes the standard preset and fails the thorough one: this is what a simple test misses.",
                highlight=False,
            )
    for one in attempts:
        if one.refusal:
            console.print(f"\n{one.name} was refused by the registry:\n", style="bold")
            console.print(one.refusal, markup=False, highlight=False, soft_wrap=True)
    console.print("\nCards and reports:", style="bold")
    for one in attempts:
        run = one.result.model.run_id
        console.print(f"  {one.name} version {one.version}", highlight=False)
        for path in (folder / "mlartifacts").glob(f"{run}/artifacts/**/*"):
            if path.name in ("README.md", "report.html"):
                console.print(f"    {path}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        "\nLook at it in MLflow's own pages (http://127.0.0.1:5000), and try to promote it there:", style="bold"
    )
    database = f"sqlite:///{folder / 'mlflow.db'}"
    command = guarded_server(folder / POLICY_FILE, database, "--default-artifact-root", str(folder / "mlartifacts"))
    console.print(command, markup=False, highlight=False, soft_wrap=True)


def table_of(attempts: list[Attempt]) -> Table:
    """Lay out what became of each model, one row each."""
    from rich.table import Table

    from mlflow_privacy_gate.cards.numbers import exact

    table = Table(title="What became of each model")
    for heading in ("model", "version", "attack AUC", "margin", "verdict", "Production", "under preset thorough"):
        table.add_column(heading)
    for one in attempts:
        table.add_row(
            one.name,
            one.version,
            measured(one.result),
            exact(one.result.margin),
            str(one.result.verdict),
            "refused" if one.refusal else "promoted",
            f"{one.thorough.verdict}: {measured(one.thorough)}",
        )
    return table


def measured(result: CheckResult) -> str:
    """Give the deciding attack AUC with its attack's name, for the table."""
    from mlflow_privacy_gate.cards.numbers import plain

    if result.attack_auc is None:
        return "not measured"
    return f"{plain(result.attack_auc, limit=result.margin)} ({result.attack})"
