"""What a whole check costs beyond asking the model: CPU time against the two ``predict_proba`` passes alone, in one run.

Run it with ``PYTHONPATH=tests python tests/benchmarks/check_benchmark.py [rows a side]``.
A fitted forest, 30 numeric columns, the standard preset: digests,
shared rows, score-only attacks with DeLong intervals, card and report. The blind baseline works on a capped sample; it is timed beside
and taken off. The model is opened in-process and the registry is one in memory: what a child process and MLflow cost is left out.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from fakes import NOW, TARGET, FakeRegistry
from lines import Line, at_most, cpu_seconds, numbers_asked, report
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from mlflow_privacy_gate.attacks.blind import blind_baseline
from mlflow_privacy_gate.checks.checking import Tools, Wishes, run_check
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.splits._interface import Split, Splits
from mlflow_privacy_gate.vocabulary import Isolation, SplitOrigin

ROWS = 1_000_000
COLUMNS = 30
FITTED_ROWS = 50_000
TREES = 100


@dataclass
class TableSplits:
    """Splits of two tables in memory, digested when they are asked for, as a source does that loads them."""

    members: pd.DataFrame
    non_members: pd.DataFrame
    origin: SplitOrigin = SplitOrigin.MANIFEST

    def find(self, model: ResolvedModel) -> Splits:
        members, non_members = (Split(side, rowset_digest(side)) for side in (self.members, self.non_members))
        return Splits(members, non_members, target=TARGET, origin=self.origin, as_logged=True)


def labelled_rows(count: int) -> pd.DataFrame:
    features, labels = make_classification(count, COLUMNS, n_informative=10, flip_y=0.2, random_state=0)
    frame: pd.DataFrame = pd.DataFrame(features, columns=[f"x{i}" for i in range(COLUMNS)])
    frame[TARGET] = labels
    return frame


def measure(rows: int) -> Iterator[Line]:
    frame = labelled_rows(2 * rows)
    members, non_members = frame.iloc[:rows], frame.iloc[rows:].reset_index(drop=True)
    fitted = members.head(FITTED_ROWS)
    forest = RandomForestClassifier(TREES, random_state=0, n_jobs=-1).fit(fitted.drop(columns=TARGET), fitted[TARGET])
    forest.set_params(n_jobs=1)
    asked = [side.drop(columns=TARGET) for side in (members, non_members)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
        tools = Tools(
            registry=FakeRegistry(Path(folder)),
            open_model=lambda _: nullcontext(SklearnModel(forest)),
            isolation=Isolation.IN_PROCESS,
            split_sources=lambda _: (TableSplits(members, non_members),),
            signer=None,
            clock=lambda: NOW,
        )
        policy = parse_policy("version: 1\n", "privacy-gate.yaml")
        # Twice in turn, the better of each: the first touch of new memory costs whoever comes first.
        turns = [
            (
                cpu_seconds(lambda: [forest.predict_proba(side) for side in asked]),
                cpu_seconds(lambda: blind_baseline(members, non_members, rng=np.random.default_rng(0))),
                cpu_seconds(lambda: run_check("models:/credit/1", policy, tools, Wishes(dry_run=True))),
            )
            for _ in range(2)
        ]
    passes, blind, whole = (min(times) for times in zip(*turns, strict=True))
    yield at_most(
        f"whole check of a forest of {TREES} trees, {rows:,} + {rows:,} rows x {COLUMNS}, score-only attacks, digests, shared rows",
        (whole - blind) / passes,
        1.25,
        "x the two predict_proba passes",
        note=f"passes {passes:.1f} s, check {whole:.1f} s, of which blind baseline {blind:.1f} s taken off",
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Line("peak memory of that process, the rows included", f"{peak:.0f} MB")


if __name__ == "__main__":
    raise SystemExit(report(measure(numbers_asked(ROWS))))
