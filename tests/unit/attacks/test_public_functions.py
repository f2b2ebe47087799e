"""Promises on the functions that others may use without MLflow: their names, their parameters, and what they do not import."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest

from mlflow_privacy_gate import attacks, stats

PUBLIC: dict[str, tuple[Callable[..., object], list[str]]] = {
    "stats.attack_auc": (stats.attack_auc, ["member_scores", "non_member_scores"]),
    "stats.delong_interval": (stats.delong_interval, ["member_scores", "non_member_scores"]),
    "stats.bootstrap_intervals": (stats.bootstrap_intervals, ["member_scores", "non_member_scores"]),
    "stats.tpr_at_fpr": (stats.tpr_at_fpr, ["member_scores", "non_member_scores", "fpr"]),
    "stats.tpr_upper_bound": (stats.tpr_upper_bound, ["member_scores", "non_member_scores", "fpr"]),
    "Observations.from_probabilities": (
        attacks.Observations.from_probabilities,
        ["probabilities", "labels", "classes"],
    ),
    "Observations.from_logits": (attacks.Observations.from_logits, ["logits", "labels", "classes"]),
    "Observations.from_predictions": (attacks.Observations.from_predictions, ["predictions", "targets"]),
    "Observations.from_log_likelihood": (attacks.Observations.from_log_likelihood, ["target", "reference"]),
    "attacks.scores": (attacks.scores, ["name", "observations", "references"]),
}

WITHOUT_MLFLOW = """
import sys
import numpy as np
from mlflow_privacy_gate import attacks, stats
from mlflow_privacy_gate.attacks.refitting import fit_references
from sklearn.tree import DecisionTreeClassifier
X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
tree = DecisionTreeClassifier(random_state=0).fit(X[:40], y[:40])
observed = attacks.Observations.from_probabilities(tree.predict_proba(X), y, tree.classes_)
references = fit_references(tree, X, y, tree.classes_, count=4, seed=0)
for name in ("confidence", "loss", "entropy", "modified_entropy", "margin_gap", "correctness", "calibrated", "rmia"):
    found = attacks.scores(name, observed, references)
    sides = found[:40][~np.isnan(found[:40])], found[40:][~np.isnan(found[40:])]
    stats.attack_auc(*sides), stats.delong_interval(*sides), stats.tpr_at_fpr(*sides, 0.1), stats.tpr_upper_bound(*sides, 0.1)
    stats.bootstrap_intervals(*sides, rng=np.random.default_rng(0), replicates=10)
attacks.scores("error", attacks.Observations.from_predictions([1.0], [2.0]))
attacks.scores("likelihood_ratio", attacks.Observations.from_log_likelihood([1.0], [2.0]))
attacks.scores("loss", attacks.Observations.from_logits([[0.0, 1.0]], [1], [0, 1]))
assert not {"mlflow", "flask", "fastapi", "torch", "sqlalchemy"} & set(sys.modules), set(sys.modules)
"""


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_takes_what_it_always_took_in_that_order(name: str) -> None:
    function, expected = PUBLIC[name]
    parameters = inspect.signature(function).parameters.values()
    positional = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == expected
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters if one.name not in expected)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_functions_docstring_says_what_it_gives_and_when_it_refuses(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name][0]) or ""
    assert text.partition("\n")[0].endswith((".", "?")), "it opens with one sentence"
    assert "rror" in text, "it names its errors, or where they are named"


def test_attacks_and_statistics_work_without_mlflow() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_MLFLOW], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
