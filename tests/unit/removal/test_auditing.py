"""One audit from question to record: what it needs, what it refuses, what it writes and in which form."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evidence_builder import fresh_signer
from fakes import FakeRegistry
from removal_cases import NOW, POLICY, ErasureCase, audited, erasure_case, in_memory
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, SplitsUnavailable, UsageError
from mlflow_privacy_gate.evidence.keys import TrustedKey
from mlflow_privacy_gate.evidence.removal import KsState
from mlflow_privacy_gate.evidence.removal_statement import read_removal_statement
from mlflow_privacy_gate.evidence.subject import ResolvedModel
from mlflow_privacy_gate.evidence.verification import verify_signatures
from mlflow_privacy_gate.models.sklearn_model import SklearnModel
from mlflow_privacy_gate.removal import AuditResult
from mlflow_privacy_gate.removal.auditing import Question, Tools, run_audit
from mlflow_privacy_gate.vocabulary import REMOVAL_TAG, Isolation, KeyRole, RemovalAnswer

CASE = erasure_case("breast_cancer")
SIGNER = fresh_signer()


def audit(folder: Path, case: ErasureCase = CASE, **changes: Any) -> AuditResult:
    arguments: dict[str, Any] = {"trained_on": CASE.kept, "logged": CASE.kept, "references": 4, **changes}
    return audited(folder, arguments.pop("estimator", RandomForestClassifier(20, random_state=0)), case, **arguments)


def test_report_and_signed_statement_lie_in_the_querys_own_folder_and_the_tag_names_the_query(tmp_path: Path) -> None:
    registry = FakeRegistry(tmp_path)
    result = audit(tmp_path, registry=registry, signer=SIGNER)
    query = result.evidence.side("query")
    assert query is not None
    name = query.digest.rpartition(":")[2][:12]
    assert sorted(registry.artifacts) == [
        f"privacy_gate/removal/{name}/{file}"
        for file in ("removal.dsse.json", "report.html", "report.json", "report.md")
    ]
    assert registry.tags == {REMOVAL_TAG: f"{result.answer}: 100 rows, {name}, 2026-06-01"}
    assert registry.writes[-1] == REMOVAL_TAG  # the tag never points at a report that is not there yet


def test_the_statement_is_signed_and_reads_back_as_what_was_measured(tmp_path: Path) -> None:
    result = audit(tmp_path, signer=SIGNER)
    key = TrustedKey("tester", KeyRole.TESTER, SIGNER.public_pem)
    opened, signer = verify_signatures(
        result.files["removal.dsse.json"],
        keys=[key],
        allow_unsigned=False,
        role=KeyRole.TESTER,
        now=NOW + timedelta(days=1),
    )
    assert signer == key
    assert read_removal_statement(opened.payload) == result.evidence
    assert result.signed


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    registry = FakeRegistry(tmp_path)
    result = audit(tmp_path, registry=registry, dry_run=True)
    assert (registry.writes, result.recorded) == ([], False)
    assert result.files["report.md"]


def test_an_audit_can_be_repeated_to_the_digit(tmp_path: Path) -> None:
    first, again = audit(tmp_path).evidence, audit(tmp_path).evidence
    assert (first.ema, first.ks, first.calibrated) == (again.ema, again.ks, again.calibrated)


def test_no_row_and_no_threshold_stands_in_statement_or_report(tmp_path: Path) -> None:
    result = audit(tmp_path)
    everything = b"".join(result.files.values()).decode()
    for value in np.unique(CASE.query.drop(columns="target").to_numpy()[:, :4]):
        if value != round(value, 1):
            assert repr(float(value)) not in everything
    assert "memory" not in [side.source for side in result.evidence.data if side.role == "query"]


def test_without_known_training_rows_nothing_is_called_not_memorised(tmp_path: Path) -> None:
    result = audit(tmp_path, logged=None)
    assert result.evidence.ema.answer is RemovalAnswer.INCONCLUSIVE
    assert result.evidence.calibrated.answer is RemovalAnswer.INCONCLUSIVE
    assert (result.answer, result.exit_code) == (RemovalAnswer.INCONCLUSIVE, 3)
    assert result.evidence.query_among_members is None
    assert "could not be had" in result.evidence.record


def test_a_control_that_is_handed_in_serves_where_nothing_was_logged(tmp_path: Path) -> None:
    result = audit(tmp_path, logged=None, control=CASE.kept)
    assert result.evidence.ema.control is not None
    assert result.evidence.ema.control.rows == len(CASE.kept)


def test_a_control_that_the_run_does_not_know_as_training_rows_is_no_control(tmp_path: Path) -> None:
    ema = audit(tmp_path, control=CASE.calibration_train).evidence.ema
    assert ema.answer is RemovalAnswer.INCONCLUSIVE
    assert "do not stand among the logged training rows" in ema.reason


def test_a_control_smaller_than_the_query_is_not_enough(tmp_path: Path) -> None:
    ema = audit(tmp_path, control=CASE.kept[:99]).evidence.ema
    assert ema.answer is RemovalAnswer.INCONCLUSIVE
    assert "at least as many" in ema.reason


def test_rows_that_stand_in_two_sets_are_left_out_and_said(tmp_path: Path) -> None:
    case = ErasureCase(
        CASE.query,
        CASE.kept,
        pd.concat([CASE.calibration_train, CASE.query[:3]]),
        pd.concat([CASE.calibration_test, CASE.calibration_train[:5], CASE.kept[:2]]),
    )
    evidence = audit(tmp_path, case).evidence
    used = {side.role: side.rows_used for side in evidence.data}
    assert used["calibration_train"] == len(CASE.calibration_train)
    assert used["calibration_test"] == len(CASE.calibration_test)
    said = " ".join(evidence.limitations)
    assert "3 calibration training rows also stand among the query rows" in said
    assert "5 calibration test rows also stand among the calibration training rows" in said
    assert "2 calibration test rows also stand among the control rows" in said


def test_held_out_rows_that_are_all_training_rows_are_refused(tmp_path: Path) -> None:
    case = ErasureCase(CASE.query, CASE.kept, CASE.calibration_train, CASE.kept[:50])
    with pytest.raises(SplitsUnavailable, match="calibration_test: all 50 rows"):
        audit(tmp_path, case)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    case = ErasureCase(CASE.query, CASE.kept, CASE.calibration_train.drop(columns="mean area"), CASE.calibration_test)
    with pytest.raises(SplitsUnavailable, match="calibration_train: lacks the columns 'mean area'"):
        audit(tmp_path, case)


@pytest.mark.parametrize("role", ["query", "calibration_train", "calibration_test", "control"])
@pytest.mark.parametrize("target", ["target", None])
def test_a_set_without_its_label_is_named(tmp_path: Path, role: str, target: str | None) -> None:
    sets = {
        "query": CASE.query,
        "calibration_train": CASE.calibration_train,
        "calibration_test": CASE.calibration_test,
        "control": CASE.kept,
    }
    with pytest.raises(SplitsUnavailable, match=f"^{role}: lacks the (label's column|columns) 'target'"):
        audit(tmp_path, **{**sets, "target": target, role: sets[role].drop(columns="target")})


@pytest.mark.parametrize("role", ["query", "calibration_train", "calibration_test"])
def test_rows_whose_label_is_missing_are_refused_with_the_set_they_stand_in(tmp_path: Path, role: str) -> None:
    rows = getattr(CASE, role).astype({"target": float})
    rows.iloc[:5, rows.columns.get_loc("target")] = np.nan
    with pytest.raises(CouldNotJudge, match=f"^{role}: .*5 of {len(rows)} are missing"):
        audit(tmp_path, **{role: rows})


def test_what_rests_on_the_auditors_word_alone_is_a_limit_of_the_audit(tmp_path: Path) -> None:
    def trusted(result: AuditResult) -> str:
        return " ".join(said for said in result.evidence.limitations if said.startswith("Taken on the word"))

    assert trusted(audit(tmp_path, control=CASE.kept)) == ""
    bare, controlled = trusted(audit(tmp_path, logged=None)), trusted(audit(tmp_path, logged=None, control=CASE.kept))
    assert "not trained on the calibration test rows" in bare
    assert "control" not in bare
    assert "that it was trained on the control rows" in controlled
    boxed = trusted(black_box(tmp_path, calibration_model="models:/calibration/1"))
    assert "calibration model was trained by the same recipe" in boxed


def test_query_rows_of_a_label_the_model_does_not_know_are_counted(tmp_path: Path) -> None:
    strange = CASE.query.copy()
    strange.iloc[:4, strange.columns.get_loc("target")] = 7
    evidence = audit(tmp_path, ErasureCase(strange, CASE.kept, CASE.calibration_train, CASE.calibration_test)).evidence
    query = evidence.side("query")
    assert query is not None
    assert (query.rows, query.rows_used, query.unknown_labels) == (100, 96, 4)
    assert evidence.ema.rows == 96


def test_a_single_query_row_is_too_few_for_ema_and_never_cleared(tmp_path: Path) -> None:
    case = ErasureCase(CASE.query[:1], CASE.kept, CASE.calibration_train, CASE.calibration_test)
    result = audit(tmp_path, case)
    assert result.evidence.ema.answer is RemovalAnswer.INCONCLUSIVE
    assert "at least 2 query rows" in result.evidence.ema.reason
    assert result.answer is not RemovalAnswer.NOT_MEMORISED
    assert json.loads(result.files["report.json"])["ema"]["rho"] is None


def test_a_query_of_one_class_costs_only_what_decides_nothing(tmp_path: Path) -> None:
    one_class = CASE.query[CASE.query["target"] == 1]
    case = ErasureCase(one_class, CASE.kept, CASE.calibration_train, CASE.calibration_test)
    evidence = audit(tmp_path, case).evidence
    assert evidence.ks.state is KsState.NOT_RUN
    assert evidence.ks.reason is not None
    assert "one class" in evidence.ks.reason
    assert evidence.calibrated.references == 4


def test_a_recipe_that_fails_on_few_rows_costs_only_what_decides_nothing(tmp_path: Path) -> None:
    case = ErasureCase(CASE.query[:6], CASE.kept, CASE.calibration_train, CASE.calibration_test)
    ks = audit(tmp_path, case, estimator=KNeighborsClassifier(20)).evidence.ks
    assert ks.state is KsState.NOT_RUN
    assert ks.reason is not None
    assert "failed" in ks.reason


@pytest.mark.parametrize("estimator", [LinearRegression()], ids=["regression"])
def test_a_model_without_class_probabilities_is_refused(tmp_path: Path, estimator: Any) -> None:
    with pytest.raises(ModelUnusable, match="needs class probabilities"):
        audit(tmp_path, estimator=estimator)


def test_a_model_that_gives_margins_is_audited_by_them(tmp_path: Path) -> None:
    assert audit(tmp_path, estimator=RidgeClassifier()).evidence.calibrated.references == 4


class NeverTrainedAgain(SklearnModel):
    """A black box: it answers, and keeps its recipe to itself."""

    def recipe(self, *_: Any) -> object | None:
        return None


@dataclass
class TwoModels(FakeRegistry):
    """The audited model in ``folder``, and a calibration model in ``other``."""

    other: Path = Path()

    def open_model(self, model: ResolvedModel) -> Any:
        return nullcontext(self.other if model.uri == "models:/calibration/1" else self.folder)


def black_box(
    tmp_path: Path,
    *,
    calibration_model: str | None,
    same_bytes: bool = False,
    calibration_as: type[SklearnModel] = SklearnModel,
) -> AuditResult:
    features = CASE.kept.drop(columns="target")
    box = RandomForestClassifier(20, random_state=0).fit(features, CASE.kept["target"])
    train = CASE.calibration_train
    calibration = RandomForestClassifier(20, random_state=1).fit(train[features.columns], train["target"])
    folders = {name: tmp_path / name for name in ("box", "calibration")}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "model.bin").write_bytes(b"same" if same_bytes else name.encode())
    models = {folders["box"]: NeverTrainedAgain(box), folders["calibration"]: calibration_as(calibration)}
    tools = Tools(
        registry=TwoModels(folders["box"], other=folders["calibration"]),
        open_model=lambda folder: nullcontext(models[folder]),
        isolation=Isolation.IN_PROCESS,
        load_rows=lambda given, role: in_memory(given),
        record_sources=lambda _: (),
        signer=None,
        clock=lambda: NOW,
    )
    question = Question(
        CASE.query, train, CASE.calibration_test, control=CASE.kept, calibration_model=calibration_model
    )
    return run_audit("models:/credit/1", question, POLICY, tools)


def test_a_model_that_cannot_be_trained_again_needs_a_calibration_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="--calibration-model"):
        black_box(tmp_path, calibration_model=None)


def test_with_a_given_calibration_model_ema_answers_and_the_whole_stays_inconclusive(tmp_path: Path) -> None:
    result = black_box(tmp_path, calibration_model="models:/calibration/1")
    evidence = result.evidence
    assert evidence.calibration_model == "models:/calibration/1"
    assert evidence.calibration_model_digest not in (None, evidence.model_digest)
    assert evidence.ema.answer is RemovalAnswer.NOT_MEMORISED
    assert evidence.calibrated.answer is RemovalAnswer.INCONCLUSIVE
    assert evidence.ks.state is KsState.NOT_RUN
    assert (result.answer, result.exit_code) == (RemovalAnswer.INCONCLUSIVE, 3)


def test_a_calibration_model_that_cannot_be_asked_is_named(tmp_path: Path) -> None:
    class Stranger(SklearnModel):
        def observe(self, features: Any, labels: Any) -> Any:
            raise ModelUnusable("it takes other columns")

    with pytest.raises(ModelUnusable, match=r"^models:/calibration/1: the calibration model: it takes other columns"):
        black_box(tmp_path, calibration_model="models:/calibration/1", calibration_as=Stranger)


def test_the_audited_model_is_not_its_own_calibration_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the audited model itself"):
        black_box(tmp_path, calibration_model="models:/calibration/1", same_bytes=True)


def test_a_model_whose_files_change_meanwhile_is_not_audited(tmp_path: Path) -> None:
    registry = FakeRegistry(tmp_path)

    class Changing(RandomForestClassifier):  # type: ignore[misc] # scikit-learn has no types
        def predict_proba(self, X: Any) -> Any:
            (tmp_path / "model.bin").write_bytes(b"other weights")
            return super().predict_proba(X)

    with pytest.raises(CouldNotJudge, match="changed while they were audited"):
        audit(tmp_path, estimator=Changing(20, random_state=0), registry=registry)
    assert registry.writes == []
