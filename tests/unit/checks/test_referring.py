"""Promises on where reference models come from: who may be believed, in which order, and what the card says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import TARGET, FairModel, FakeRegistry, rows, splits, tools
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture
from training_functions import train_forest, train_regression

from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.checks.checking import Wishes, run_check
from mlflow_privacy_gate.checks.measuring import Measurement, measure
from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, SplitsUnavailable
from mlflow_privacy_gate.models._interface import LoadedModel
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.policy import Policy, parse_policy
from mlflow_privacy_gate.splits._interface import ReferenceModels, Splits, TrainingFunction
from mlflow_privacy_gate.vocabulary import Membership, Outcome, ReasonCode

ROWS, COUNT = 250, 8
MEMBERS, NON_MEMBERS = rows(ROWS, seed=1), rows(ROWS, seed=2)
SPLITS = splits(MEMBERS, NON_MEMBERS)
FUNCTION = TrainingFunction("training_functions:train_forest", seed=5)
CALIBRATED = "calibrated"


def policy_of(*origins: str, attacks: str = "", more: str = "") -> Policy:
    admitted = ", ".join(origins)
    return parse_policy(
        f"version: 1\nattacks: {{gating: [confidence, loss, entropy, modified_entropy, {CALIBRATED}], references: {COUNT}, "
        f"unsafe_reference_origins: [{admitted}]{attacks}}}\n{more}"
    )


def forest(train: Callable[[Any, Any, int], Any] = train_forest, seed: int = 5) -> Any:
    return train(MEMBERS.drop(columns=TARGET), MEMBERS[TARGET], seed)


def cloneable() -> SklearnModel:
    return SklearnModel(forest())


def uncloneable(train: Callable[[Any, Any, int], Any] = train_forest) -> SklearnModel:
    return SklearnModel(FrozenEstimator(forest(train)))


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., CheckResult]:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")

    def check(model: LoadedModel, policy: Policy, found: Splits = SPLITS, **wishes: Any) -> CheckResult:
        return run_check("models:/credit/1", policy, tools(FakeRegistry(tmp_path), model, found), Wishes(**wishes))

    return check


def of_calibrated(result: CheckResult) -> tuple[int, str | None]:
    facts = result.evidence.attack(CALIBRATED)
    return (0, None) if facts is None else (facts.references, facts.references_origin)


def of_requirements(result: CheckResult) -> str:
    return " ".join(finding.message for finding in result.findings if finding.code is ReasonCode.PG006)


def test_a_training_function_serves_where_the_model_cannot_be_cloned(checked: Callable[..., CheckResult]) -> None:
    found = replace(SPLITS, training_function=FUNCTION)
    result = checked(uncloneable(), policy_of("clone", "training_function"), found)
    assert of_calibrated(result) == (COUNT, "training_function")
    assert of_requirements(result) == ""
    assert result.verdict is Outcome.FAIL
    assert result.evidence.splits.membership is Membership.REPRODUCED
    assert "trained by the function training_functions:train_forest" in " ".join(result.evidence.limitations)
    assert "trained by the function" in result.card
    assert f"calibrated {COUNT} (training_function)" in result.report


def test_a_function_with_another_seed_or_none_does_not_reproduce_the_membership(
    checked: Callable[..., CheckResult],
) -> None:
    for seed in (6, None):
        found = replace(SPLITS, training_function=replace(FUNCTION, seed=seed))
        result = checked(uncloneable(), policy_of("training_function"), found)
        assert of_calibrated(result) == (COUNT, "training_function")
        assert result.evidence.splits.membership is Membership.DECLARED


def test_membership_is_not_reproduced_where_the_model_was_trained_on_more_than_the_members(
    checked: Callable[..., CheckResult],
) -> None:
    more = pd.concat((MEMBERS, NON_MEMBERS.head(20)))
    overfitted = SklearnModel(train_forest(more.drop(columns=TARGET), more[TARGET], 5))
    assert checked(cloneable(), policy_of("clone")).evidence.splits.membership is Membership.REPRODUCED
    assert checked(overfitted, policy_of("clone")).evidence.splits.membership is Membership.DECLARED


def test_a_function_that_the_policy_does_not_admit_is_never_run(checked: Callable[..., CheckResult]) -> None:
    found = replace(SPLITS, training_function=TrainingFunction("training_functions:fail"))
    result = checked(uncloneable(train_regression), policy_of("clone"), found)
    assert of_calibrated(result) == (0, None)
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "cannot be trained again from its own parameters; the policy admits clone" in of_requirements(result)


def test_a_clone_comes_before_the_authors_word(checked: Callable[..., CheckResult]) -> None:
    found = replace(SPLITS, training_function=TrainingFunction("training_functions:fail"))
    result = checked(cloneable(), policy_of("training_function", "clone"), found)
    assert of_calibrated(result) == (COUNT, "clone")
    assert "author's word" not in " ".join(result.evidence.limitations)


def test_a_policy_may_admit_the_function_alone(checked: Callable[..., CheckResult]) -> None:
    result = checked(cloneable(), policy_of("training_function"), replace(SPLITS, training_function=FUNCTION))
    assert of_calibrated(result) == (COUNT, "training_function")


@pytest.mark.parametrize(
    ("name", "because"),
    [
        (
            "no_such_package.training:train",
            r"no_such_package.training:train cannot be imported here \(ModuleNotFoundError",
        ),
        ("training_functions:no_such", "cannot be imported here"),
        ("training_functions:NO_FUNCTION", "is no function but int"),
        ("training_functions:leave", r"reference 1 of 8, .* SystemExit: 0"),
        ("a_script_that_ends:train", "cannot be imported here .SystemExit: 0"),
        ("training_functions:fail", r"reference 1 of 8, .* ValueError: no such solver"),
    ],
)
def test_a_function_that_cannot_train_is_an_error_that_names_it_and_never_a_smaller_test(
    checked: Callable[..., CheckResult], name: str, because: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "a_script_that_ends.py"
    script.write_text("import sys; sys.exit(0)", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = replace(SPLITS, training_function=TrainingFunction(name))
    with pytest.raises(ModelUnusable, match=because):
        checked(uncloneable(), policy_of("training_function"), found)


@dataclass
class Logged:
    """Models that were logged before, each trained on a half of both sides, with the masks as ``log_splits`` stores them."""

    models: dict[str, LoadedModel]
    masks: np.ndarray[Any, Any]
    opened: list[str]

    @contextmanager
    def open(self, uri: str) -> Iterator[LoadedModel]:
        self.opened.append(uri)
        yield self.models[uri]

    @property
    def named(self) -> ReferenceModels:
        return ReferenceModels(tuple(self.models), lambda: self.masks)


def logged_before(count: int = COUNT, train: Callable[[Any, Any, int], Any] = train_forest) -> Logged:
    from mlflow_privacy_gate.evidence.rowset import shared_rows

    together = pd.concat((MEMBERS, NON_MEMBERS), ignore_index=True)
    shared = shared_rows(MEMBERS, NON_MEMBERS)
    by_content = np.concatenate((shared.member_order, shared.non_member_order + ROWS))
    rng = np.random.default_rng(0)
    trained_on = rng.random((count, 2 * ROWS)) < 0.5
    models: dict[str, LoadedModel] = {
        f"models:/earlier/{k + 1}": SklearnModel(train(half.drop(columns=TARGET), half[TARGET], k))
        for k, half in enumerate(together[mask] for mask in trained_on)
    }
    return Logged(models, trained_on[:, by_content], [])


def measured(model: LoadedModel, policy: Policy, found: Splits, logged: Logged) -> Measurement:
    open_logged: Callable[[str], AbstractContextManager[LoadedModel]] = logged.open
    return measure(model, found, policy, open_logged=open_logged)


def auc_of(measurement: Measurement, name: str = CALIBRATED) -> float:
    metric = next(facts for facts in measurement.attacks if facts.id == name).metric("auc")
    assert metric is not None
    assert metric.value is not None
    return metric.value


def test_models_that_were_logged_before_serve_with_their_masks() -> None:
    logged = logged_before()
    found = replace(SPLITS, reference_models=logged.named)
    measurement = measured(uncloneable(), policy_of("logged_models"), found, logged)
    facts = next(one for one in measurement.attacks if one.id == CALIBRATED)
    assert (facts.references, facts.references_origin, facts.seed) == (COUNT, "logged_models", None)
    assert logged.opened == list(logged.models)
    assert auc_of(measurement) > 0.7
    assert f"The reference models are {COUNT} models that were logged before" in " ".join(measurement.limitations)


def test_masks_belong_to_their_rows_whatever_order_a_file_gives_them_in() -> None:
    logged = logged_before()
    policy = policy_of("logged_models")
    straight = measured(cloneable(), policy, replace(SPLITS, reference_models=logged.named), logged)
    turned = splits(MEMBERS.iloc[::-1].reset_index(drop=True), NON_MEMBERS.sample(frac=1, random_state=0))
    again = measured(cloneable(), policy, replace(turned, reference_models=logged.named), logged)
    assert again.attacks == straight.attacks
    swapped = replace(logged.named, trained_on=lambda: ~logged.masks)
    assert auc_of(measured(cloneable(), policy, replace(SPLITS, reference_models=swapped), logged)) != auc_of(straight)


def test_fewer_logged_models_than_the_policy_asks_for_do_not_pass(tmp_path: Path) -> None:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
    logged = logged_before(3, train_regression)
    found = replace(SPLITS, reference_models=logged.named)
    models = iter([uncloneable(train_regression), *logged.models.values()])
    told = tools(FakeRegistry(tmp_path), FairModel(), found, open_model=lambda _: nullcontext(next(models)))
    result = run_check("models:/credit/1", policy_of("logged_models"), told, Wishes(dry_run=True))
    assert of_calibrated(result) == (3, "logged_models")
    assert "used 3 reference models; the policy asks for 8" in of_requirements(result)
    assert result.verdict is not Outcome.PASS


def test_the_model_under_test_is_no_reference_for_itself() -> None:
    logged = logged_before(2)
    logged.models["models:/earlier/2"] = cloneable()
    with pytest.raises(ModelUnusable, match=r"models:/earlier/2 gives the very answers of the model under test"):
        measured(cloneable(), policy_of("logged_models"), replace(SPLITS, reference_models=logged.named), logged)


def test_a_logged_model_that_cannot_be_asked_is_an_error_that_names_it() -> None:
    logged = logged_before(2)
    other = rows(ROWS, seed=3).rename(columns={"a": "c"})
    logged.models["models:/earlier/1"] = SklearnModel(train_forest(other.drop(columns=TARGET), other[TARGET], 0))
    with pytest.raises(ModelUnusable, match="reference model models:/earlier/1 cannot be used"):
        measured(cloneable(), policy_of("logged_models"), replace(SPLITS, reference_models=logged.named), logged)


def test_masks_that_cannot_be_had_are_an_error() -> None:
    def lost() -> np.ndarray[Any, Any]:
        raise SplitsUnavailable("the masks are gone")

    logged = logged_before(2)
    found = replace(SPLITS, reference_models=replace(logged.named, trained_on=lost))
    with pytest.raises(SplitsUnavailable, match="gone"):
        measured(cloneable(), policy_of("logged_models"), found, logged)


def test_masks_of_other_rows_are_not_used() -> None:
    logged = logged_before(2)
    found = replace(SPLITS, reference_models=logged.named, as_logged=False)
    measurement = measured(cloneable(), policy_of("logged_models"), found, logged)
    reasons = {one.id: one.reason for one in measurement.not_run}
    assert "masks are of the rows that were logged" in reasons[CALIBRATED]
    assert logged.opened == []


def test_references_that_would_not_fit_into_memory_are_refused_before_any_is_trained(
    checked: Callable[..., CheckResult],
) -> None:
    policy = policy_of("clone", more="limits: {memory_gb: 0.00002}\n")
    with pytest.raises(CouldNotJudge, match=r"8 reference models about 500 rows need 0.0 GB, more than"):
        checked(cloneable(), policy)


def test_stopping_early_trains_no_reference_once_a_simple_attack_decides_and_the_card_says_so(
    checked: Callable[..., CheckResult],
) -> None:
    whole = checked(cloneable(), policy_of("clone"))
    early = checked(cloneable(), policy_of("clone"), stop_early=True)
    assert (whole.verdict, early.verdict) == (Outcome.FAIL, Outcome.FAIL)
    assert (of_calibrated(whole)[0], of_calibrated(early)[0]) == (COUNT, 0)
    assert "Stopped early" in early.card
    assert "Stopped early" not in whole.card


def test_stopping_early_stops_nothing_while_the_verdict_is_open(checked: Callable[..., CheckResult]) -> None:
    result = checked(SklearnModel(forest(train_regression)), policy_of("clone"), stop_early=True)
    assert of_calibrated(result) == (COUNT, "clone")
    assert "Stopped early" not in result.card


def test_without_references_asked_for_there_is_nothing_to_stop(checked: Callable[..., CheckResult]) -> None:
    result = checked(cloneable(), parse_policy("version: 1\n"), stop_early=True)
    assert result.verdict is Outcome.FAIL
    assert "Stopped early" not in result.card


def test_progress_counts_the_references(tmp_path: Path) -> None:
    (tmp_path / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
    said: list[str] = []
    told = tools(FakeRegistry(tmp_path), cloneable(), SPLITS, progress=said.append)
    run_check("models:/credit/1", policy_of("clone"), told, Wishes(dry_run=True))
    counted = [line for line in said if line.startswith("reference models: ")]
    assert counted == [f"reference models: {k + 1} of {COUNT}" for k in range(COUNT)]


def test_where_there_is_no_way_to_references_each_is_named_with_its_reason(checked: Callable[..., CheckResult]) -> None:
    result = checked(FairModel(), policy_of("clone", "training_function", "logged_models"))
    reason = next(one.reason for one in result.evidence.not_run if one.id == CALIBRATED)
    assert "no training function was logged with the splits" in reason
    assert "no reference models were logged with the splits" in reason


def density(members: pd.DataFrame) -> SklearnModel:
    """A mixture that keeps something of each row; it is of the columns without the label."""
    return SklearnModel(GaussianMixture(20, random_state=0).fit(members.drop(columns=TARGET)))


def densities_logged_before() -> Logged:
    """Reference densities of which the first was trained on all tested rows, the others on rows of their own."""
    trained = [pd.concat((MEMBERS, NON_MEMBERS)), *(rows(ROWS, seed=seed) for seed in (11, 12, 13))]
    models: dict[str, LoadedModel] = {f"models:/earlier/{k + 1}": density(frame) for k, frame in enumerate(trained)}
    trained_on = np.repeat(np.arange(len(models))[:, None] == 0, 2 * ROWS, axis=1)
    return Logged(models, trained_on, [])


def test_densities_that_were_logged_before_calibrate_a_density_model() -> None:
    logged = densities_logged_before()
    found = replace(SPLITS, reference_models=logged.named)
    policy = parse_policy(
        "version: 1\nattacks: {references: 2, unsafe_reference_origins: [clone, logged_models], report: [likelihood_ratio_z]}\n"
    )
    measurement = measured(density(MEMBERS), policy, found, logged)
    facts = {one.id: one for one in measurement.attacks}
    ratio = facts["likelihood_ratio"]
    assert (ratio.references, ratio.references_origin) == (4, "logged_models")
    assert auc_of(measurement, "likelihood_ratio") > 0.6
    blind = replace(logged.named, trained_on=lambda: np.zeros_like(logged.masks))
    unmasked = measured(density(MEMBERS), policy, replace(SPLITS, reference_models=blind), logged)
    assert auc_of(unmasked, "likelihood_ratio") != auc_of(measurement, "likelihood_ratio")
    assert "likelihood_ratio_z" in facts
    assert "models that were logged before" in " ".join(measurement.limitations)


def test_a_density_model_without_admitted_references_is_told_why_its_ratio_was_not_measured() -> None:
    logged = densities_logged_before()
    admitted, unnamed = policy_of("clone", attacks=""), replace(SPLITS, reference_models=None)
    for policy, found in (
        (admitted, replace(SPLITS, reference_models=logged.named)),
        (policy_of("logged_models"), unnamed),
        (policy_of("logged_models"), replace(SPLITS, reference_models=logged.named, as_logged=False)),
    ):
        reasons = {one.id: one.reason for one in measured(density(MEMBERS), policy, found, logged).not_run}
        assert "needs density models that were logged before" in reasons["likelihood_ratio"]
    assert logged.opened == []


def test_a_reference_of_another_kind_is_an_error_that_names_it() -> None:
    logged = densities_logged_before()
    logged.models["models:/earlier/2"] = cloneable()
    with pytest.raises(ModelUnusable, match=r"models:/earlier/2 cannot be used: it is a classification model"):
        measured(density(MEMBERS), policy_of("logged_models"), replace(SPLITS, reference_models=logged.named), logged)


def test_a_density_among_its_own_references_is_refused() -> None:
    logged = densities_logged_before()
    logged.models["models:/earlier/3"] = density(MEMBERS)
    with pytest.raises(ModelUnusable, match=r"models:/earlier/3 gives the very answers of the model under test"):
        measured(density(MEMBERS), policy_of("logged_models"), replace(SPLITS, reference_models=logged.named), logged)
