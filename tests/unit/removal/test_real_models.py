"""An erasure request on real data: a forest and a logistic regression, trained again without a hundred rows, or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from removal_cases import ErasureCase, audited, erasure_case
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mlflow_privacy_gate.removal import AuditResult
from mlflow_privacy_gate.vocabulary import RemovalAnswer

DATA = ("breast_cancer", "digits")


def forest() -> Any:
    return RandomForestClassifier(random_state=0)


def regression() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.001))


def retrained(folder: Path, estimator: Any, case: ErasureCase) -> AuditResult:
    return audited(folder, estimator, case, trained_on=case.kept, logged=case.kept)


def still_trained(folder: Path, estimator: Any, case: ErasureCase) -> AuditResult:
    """The rows stayed in the training, while the run claims that they were removed."""
    return audited(folder, estimator, case, trained_on=case.before, logged=case.kept)


@pytest.mark.parametrize("data", DATA)
def test_a_forest_trained_again_without_the_rows_does_not_remember_them(tmp_path: Path, data: str) -> None:
    result = retrained(tmp_path, forest(), erasure_case(data))
    evidence = result.evidence
    assert evidence.ema.control is not None
    assert evidence.ema.control.zeros == 0
    assert evidence.ema.answer is RemovalAnswer.NOT_MEMORISED
    assert evidence.calibrated.answer is RemovalAnswer.NOT_MEMORISED
    assert (result.answer, result.exit_code) == (RemovalAnswer.NOT_MEMORISED, 0)
    against_control = evidence.calibrated.test("calibrated", "control")
    assert against_control is not None
    assert against_control.p_value < 1e-6
    assert evidence.query_among_members == 0


@pytest.mark.parametrize("data", DATA)
def test_a_forest_that_kept_the_rows_is_noticed_whatever_its_run_claims(tmp_path: Path, data: str) -> None:
    result = still_trained(tmp_path, forest(), erasure_case(data))
    evidence = result.evidence
    assert evidence.ema.zeros == 0
    assert evidence.ema.answer is RemovalAnswer.NOT_RULED_OUT
    assert evidence.calibrated.answer is RemovalAnswer.NOT_RULED_OUT
    assert (result.answer, result.exit_code) == (RemovalAnswer.NOT_RULED_OUT, 1)
    for attack in ("calibrated", "lira_offline"):
        over_held_out = evidence.calibrated.test(attack, "query")
        assert over_held_out is not None
        assert over_held_out.p_value < 1e-6


@pytest.mark.parametrize("data", DATA)
def test_ema_on_a_regularised_regression_is_inconclusive_because_its_control_rejects(tmp_path: Path, data: str) -> None:
    for audit in (retrained, still_trained):
        ema = audit(tmp_path, regression(), erasure_case(data)).evidence.ema
        assert ema.answer is RemovalAnswer.INCONCLUSIVE
        assert "The control rejects" in ema.reason
        assert ema.control is not None
        assert ema.control.cleared is not None
        assert ema.control.cleared > ema.alpha


@pytest.mark.parametrize("data", DATA)
def test_a_regression_that_shows_too_little_to_tell_is_never_called_clean(tmp_path: Path, data: str) -> None:
    case = erasure_case(data)
    assert retrained(tmp_path, regression(), case).answer is RemovalAnswer.INCONCLUSIVE
    assert still_trained(tmp_path, regression(), case).exit_code in (1, 3)


def test_without_the_control_ema_alone_would_call_the_regressions_own_training_rows_forgotten(tmp_path: Path) -> None:
    case = erasure_case("breast_cancer")
    ema = still_trained(tmp_path, regression(), case).evidence.ema
    assert ema.rho is not None
    assert ema.rho <= ema.alpha  # wrong: the model was trained on these rows


def test_rows_that_the_run_itself_records_as_training_rows_are_not_ruled_out(tmp_path: Path) -> None:
    case = erasure_case("breast_cancer")
    result = audited(tmp_path, forest(), case, trained_on=case.kept, logged=case.before[50:])
    assert result.evidence.query_among_members == 50
    assert result.answer is RemovalAnswer.NOT_RULED_OUT
    assert "50 query rows" in result.evidence.reasons[0]
