from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import TARGET, FakeModel, FakeRegistry, PerfectlyLeakyModel, by_probability, rows, splits, tools
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.recipe_changes import NO_CHANGES, Changes, Parameter
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.checks.checking import Wishes, run_check
from mlflow_privacy_gate.checks.suggesting import FIXED_NOISE, LABELS_REMAIN, NO_REFERENCES, RETRAIN
from mlflow_privacy_gate.cli.check_formats import as_json, as_markdown, text
from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models._interface import LoadedModel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.policy import Policy, built_in_policy, parse_policy

MARGIN = 0.55
SUGGEST = Wishes(suggest=True)
Sides = tuple[pd.DataFrame, pd.DataFrame]


def checked(
    tmp_path: Path, model: LoadedModel, sides: Sides, *, wishes: Wishes = SUGGEST, policy: Policy | None = None
) -> CheckResult:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
    registry = FakeRegistry(tmp_path)
    return run_check("models:/credit/1", policy or built_in_policy(), tools(registry, model, splits(*sides)), wishes)


@pytest.fixture(scope="module")
def tumours() -> Sides:
    frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": TARGET})
    members, others = train_test_split(frame, test_size=0.5, stratify=frame[TARGET], random_state=0)
    return members.reset_index(drop=True), others.reset_index(drop=True)


@pytest.fixture(scope="module")
def patients() -> Sides:
    """Whether diabetes got worse than in most, a label that is hard to tell."""
    frame = load_diabetes(as_frame=True).frame
    frame = frame.assign(**{TARGET: (frame["target"] > frame["target"].median()).astype(int)}).drop(columns="target")
    return frame.iloc[::2].reset_index(drop=True), frame.iloc[1::2].reset_index(drop=True)


def fitted(estimator: BaseEstimator, sides: Sides) -> SklearnModel:
    members = sides[0]
    return SklearnModel(estimator.fit(members.drop(columns=TARGET), members[TARGET]))


def overfitted(name: str) -> BaseEstimator:
    if name == "forest":
        return RandomForestClassifier(bootstrap=False, random_state=0)
    return make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(C=100, max_iter=5000))


@pytest.mark.parametrize(("name", "rows_of"), [("forest", "tumours"), ("polynomial", "patients")])
def test_the_best_mitigation_applied_gives_the_predicted_auc_within_its_interval(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, rows_of: str
) -> None:
    sides: Sides = request.getfixturevalue(rows_of)
    result = checked(tmp_path, fitted(overfitted(name), sides), sides)
    assert result.attack_auc is not None
    assert result.attack_auc > MARGIN
    best = result.mitigations[0]
    assert best.retrains
    assert best.attack_auc <= MARGIN
    assert best.changes or best.columns
    kept = [*best.columns, TARGET] if best.columns else list(sides[0].columns)
    members, others = sides[0][kept], sides[1][kept]
    applied = overfitted(name).set_params(**best.changes)
    again = checked(tmp_path, fitted(applied, (members, others)), (members, others))
    assert again.attack_auc is not None
    assert best.ci_low is not None
    assert best.ci_high is not None
    assert best.ci_low <= again.attack_auc <= best.ci_high


def test_mitigations_come_best_first_and_each_says_what_it_costs(tmp_path: Path, tumours: Sides) -> None:
    found = checked(tmp_path, fitted(overfitted("forest"), tumours), tumours).mitigations
    within = [one for one in found if one.attack_auc <= MARGIN]
    assert found[: len(within)] == tuple(within)
    retrained = [one for one in within if one.retrains]
    assert within[: len(retrained)] == retrained
    costs = [-(one.accuracy_change or 0.0) for one in retrained]
    assert costs == sorted(costs)
    over = [one.attack_auc for one in found[len(within) :]]
    assert over == sorted(over)
    assert {one.note for one in found} == {LABELS_REMAIN, f"{FIXED_NOISE}; {LABELS_REMAIN}", RETRAIN}
    assert all(one.accuracy_change is not None for one in found)


def test_every_kind_of_mitigation_is_measured(tmp_path: Path, tumours: Sides) -> None:
    found = checked(tmp_path, fitted(overfitted("forest"), tumours), tumours).mitigations
    descriptions = [one.description for one in found]
    for words in (
        "answers rounded to 2 digits",
        "answers rounded to 1 digit",
        "answers flattened by temperature 2",
        "Gaussian noise of 0.05 on the answers, drawn once per row",
        "the predicted class and its probability alone",
        "the predicted label alone",
        "smaller trees: max_depth none → 8",
        "larger leaves: min_samples_leaf 1 → 10",
    ):
        assert words in descriptions
    fewest = next(one for one in found if "the 3 most telling of 30 columns" in one.description)
    assert len(fewest.columns) == 3
    assert all(column in fewest.description and column in tumours[0].columns for column in fewest.columns)


class NoisyForest(RandomForestClassifier):  # type: ignore[misc]  # scikit-learn has no types
    """Leaks, and answers with noise of 0.2: the same for the same row, or drawn anew for every asking."""

    anew = False

    def predict_proba(self, X: Any) -> np.ndarray:
        exact = np.asarray(super().predict_proba(X))
        noise = [np.random.default_rng(None if self.anew else list(row.tobytes())) for row in np.asarray(X)]
        drawn = np.clip(exact + [rng.normal(scale=0.2, size=exact.shape[1]) for rng in noise], 0.0, 1.0) + 1e-9
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


class RestlessForest(NoisyForest):
    anew = True


@pytest.mark.parametrize(("kind", "judged"), [(NoisyForest, True), (RestlessForest, False)])
def test_noise_applied_as_its_note_asks_is_judged_and_gives_the_predicted_auc(
    tmp_path: Path, tumours: Sides, kind: type[NoisyForest], judged: bool
) -> None:
    found = checked(tmp_path, fitted(overfitted("forest"), tumours), tumours).mitigations
    noise = next(one for one in found if one.description.startswith("Gaussian noise of 0.2"))
    assert FIXED_NOISE in (noise.note or "")
    again = checked(tmp_path, fitted(kind(bootstrap=False, random_state=0), tumours), tumours, wishes=Wishes())
    assert ("PG110" not in {str(one.code) for one in again.findings}) is judged
    assert again.attack_auc is not None
    assert noise.ci_low is not None
    assert noise.ci_high is not None
    assert noise.ci_low <= again.attack_auc <= noise.ci_high


def test_a_family_stops_at_its_first_step_that_is_enough(tmp_path: Path, patients: Sides) -> None:
    found = checked(tmp_path, fitted(overfitted("polynomial"), patients), patients).mitigations
    steps = [one for one in found if one.description.startswith("stronger regularisation")]
    values = sorted((one.changes["logisticregression__C"], one.attack_auc <= MARGIN) for one in steps)
    assert sum(enough for _, enough in values) <= 1
    assert all(value > values[0][0] for value, _ in values[1:])
    assert values[0][1] or len(values) == 3


def test_suggestions_change_neither_the_verdict_nor_the_evidence(tmp_path: Path, tumours: Sides) -> None:
    model = fitted(overfitted("forest"), tumours)
    plain, suggesting = (checked(tmp_path, model, tumours, wishes=wishes) for wishes in (Wishes(), SUGGEST))
    assert plain.mitigations == ()
    assert replace(suggesting.evidence, nonce="") == replace(plain.evidence, nonce="")


def test_a_model_within_the_margin_gets_no_suggestions(tmp_path: Path, tumours: Sides) -> None:
    calm = make_pipeline(StandardScaler(), LogisticRegression(C=0.001))
    assert checked(tmp_path, fitted(calm, tumours), tumours).mitigations == ()


def test_a_regression_is_suggested_other_recipes_only(tmp_path: Path) -> None:
    frame = load_diabetes(as_frame=True).frame.rename(columns={"target": TARGET})
    sides = frame.iloc[::2].reset_index(drop=True), frame.iloc[1::2].reset_index(drop=True)
    found = checked(tmp_path, fitted(DecisionTreeRegressor(random_state=0), sides), sides).mitigations
    assert found
    assert all(one.retrains and one.accuracy_change is None for one in found)
    assert {one.description.partition(":")[0] for one in found} == {"smaller trees", "larger leaves", "fewer features"}


def test_with_reference_models_each_recipe_is_measured_with_references_of_its_own(
    tmp_path: Path, tumours: Sides
) -> None:
    policy = parse_policy(
        "version: 1\nattacks: {gating: [confidence, loss, entropy, modified_entropy, calibrated], references: 4}\n"
    )
    small = RandomForestClassifier(n_estimators=5, bootstrap=False, random_state=0)
    found = checked(tmp_path, fitted(small, tumours), tumours, policy=policy).mitigations
    answers = [one for one in found if not one.retrains]
    assert answers
    assert all(NO_REFERENCES in (one.note or "") for one in answers)
    assert any(one.retrains for one in found)


class OneWayModel(PerfectlyLeakyModel):
    """Leaks, and cannot be trained again."""


def test_a_model_that_cannot_be_trained_again_is_suggested_other_answers_only(tmp_path: Path) -> None:
    members, others = rows(250, seed=1), rows(250, seed=2)
    found = checked(tmp_path, OneWayModel(members=frozenset(members["a"])), (members, others)).mitigations
    assert found
    assert not any(one.retrains for one in found)


@dataclass
class BreakingModel(PerfectlyLeakyModel):
    """Leaks, says that it can be trained again, and fails at it."""

    parameters: Mapping[str, Parameter] = field(default_factory=lambda: {"C": 1.0})

    def refit(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        train_rows: int,
        seed: int,
        changes: Changes = NO_CHANGES,
    ) -> Observations | None:
        raise ModelUnusable("it does not converge")


def test_a_recipe_that_fails_is_left_out_and_the_check_stands(tmp_path: Path) -> None:
    members, others = rows(250, seed=1), rows(250, seed=2)
    result = checked(tmp_path, BreakingModel(members=frozenset(members["a"])), (members, others))
    assert result.exit_code == 1
    assert result.mitigations
    assert not any(one.retrains for one in result.mitigations)


class ListeningModel(PerfectlyLeakyModel):
    """Leaks by its columns: a refit sees what it is given."""

    def __init__(self, members: frozenset[float]) -> None:
        super().__init__(parameters={"C": 1.0}, members=members)
        self.refits: list[tuple[int, dict[str, float], int]] = []

    def refit(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        train_rows: int,
        seed: int,
        changes: Changes = NO_CHANGES,
    ) -> Observations | None:
        self.refits.append((train_rows, dict(changes), features.shape[1]))
        return by_probability(np.full(len(features), 0.5), labels)


def test_refits_are_trained_on_the_members_alone_with_the_changes_asked_for(tmp_path: Path) -> None:
    members, others = rows(250, seed=1), rows(250, seed=2)
    model = ListeningModel(frozenset(members["a"]))
    found = checked(tmp_path, model, (members, others)).mitigations
    assert model.refits == [(250, {"C": 0.1}, 2)]
    assert found[0] == Mitigation(
        "stronger regularisation: C 1 → 0.1",
        0.5,
        found[0].accuracy_change,
        RETRAIN,
        found[0].ci_low,
        found[0].ci_high,
        retrains=True,
        changes={"C": 0.1},
    )


def test_the_answers_of_a_check_show_what_was_measured(tmp_path: Path, tumours: Sides) -> None:
    result = checked(tmp_path, fitted(overfitted("forest"), tumours), tumours)
    best = result.mitigations[0]
    assert "Measured on the tested rows, best first:" in text(result)
    assert json.loads(as_json(result))["mitigations"][0] == {
        "description": best.description,
        "attack_auc": best.attack_auc,
        "accuracy_change": best.accuracy_change,
        "note": RETRAIN,
        "ci_low": best.ci_low,
        "ci_high": best.ci_high,
        "retrains": True,
        "changes": dict(best.changes),
        "columns": [],
    }
    for paper in (text(result), as_markdown(result), result.card, result.report):
        assert paper.count("predicted label alone") == 1
    order = [result.card.index(words) for words in ("larger leaves", "predicted label alone", "rounded to 2 digits")]
    assert order == sorted(order)


def test_a_fake_of_another_kind_is_no_subject(tmp_path: Path) -> None:
    class SureModel(FakeModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            return by_probability(np.full(len(features), 0.5), labels)

    members, others = rows(250, seed=1), rows(250, seed=2)
    assert checked(tmp_path, SureModel(), (members, others)).mitigations == ()
