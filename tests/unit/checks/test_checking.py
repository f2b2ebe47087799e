from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evidence_builder import fresh_signer
from fakes import (
    NOW,
    TARGET,
    ConstantModel,
    FairModel,
    FakeModel,
    FakeRegistry,
    MemorisedLabelsModel,
    PerfectlyLeakyModel,
    RandomAnswerModel,
    Stopped,
    WaveringModel,
    by_probability,
    rows,
    splits,
    tools,
)

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.checks import CheckResult
from mlflow_privacy_gate.checks.checking import Wishes, run_check
from mlflow_privacy_gate.checks.found_card import GivenCard
from mlflow_privacy_gate.cli.check_formats import FORMATS
from mlflow_privacy_gate.errors import (
    CardError,
    CouldNotJudge,
    CouldNotLook,
    ModelUnusable,
    ObservationError,
    PrivacyGateError,
    SplitsUnavailable,
    UsageError,
)
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.facts import CardClaims
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.gate import PromotionTarget, Route, decide
from mlflow_privacy_gate.models._interface import ModelNotes
from mlflow_privacy_gate.policy import Policy, parse_policy, starter_policy
from mlflow_privacy_gate.splits._interface import Splits
from mlflow_privacy_gate.vocabulary import (
    ATTESTATION_ARTIFACT,
    ATTESTATION_TAG,
    NOT_RUN_EVER,
    VERDICT_TAG,
    Outcome,
    ReasonCode,
)

URI = "models:/credit/1"
ROWS = 250
MEMBERS, NON_MEMBERS = rows(ROWS, seed=1), rows(ROWS, seed=2)
SPLITS = splits(MEMBERS, NON_MEMBERS)
REMEMBERED = frozenset(MEMBERS["a"])
SIGNER = fresh_signer()
POLICY = parse_policy(starter_policy(SIGNER.public_pem, "tester"))
NOTHING_MORE = Wishes()


@pytest.fixture
def registry(tmp_path: Path) -> FakeRegistry:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
    (folder / "weights.bin").write_bytes(b"weights")
    return FakeRegistry(folder)


def checked(
    registry: FakeRegistry,
    model: FakeModel,
    *,
    found: Splits | None = SPLITS,
    policy: Policy = POLICY,
    wishes: Wishes = NOTHING_MORE,
    **changes: Any,
) -> CheckResult:
    return run_check(URI, policy, tools(registry, model, found, signer=SIGNER, **changes), wishes)


def codes(result: CheckResult) -> set[str]:
    return {str(finding.code) for finding in result.findings}


def promotable(registry: FakeRegistry) -> bool:
    """Whether the gate would let this version go to production now, by what the registry holds."""
    attestation = registry.tags.get(ATTESTATION_TAG)
    target = PromotionTarget("credit", "1", Route.ALIAS, "champion", model_digest(registry.folder))
    return decide(POLICY, (attestation,) if attestation else (), (), (), target=target, now=NOW).allowed


def test_a_model_that_knows_its_members_fails(registry: FakeRegistry) -> None:
    result = checked(registry, PerfectlyLeakyModel(members=REMEMBERED))
    assert result.verdict is Outcome.FAIL
    assert result.exit_code == 1
    assert result.attack_auc == result.confidence_auc == 1.0
    assert result.headroom == pytest.approx(-0.45)
    assert "PG201" in codes(result)
    assert not promotable(registry)


def test_a_model_that_answers_by_the_row_alone_passes_and_may_be_promoted(registry: FakeRegistry) -> None:
    result = checked(registry, FairModel())
    assert result.verdict is Outcome.PASS
    assert result.exit_code == 0
    assert result.attack_auc is not None
    assert result.attack_auc <= result.margin == 0.55
    assert registry.tags[VERDICT_TAG] == "pass"
    assert promotable(registry)


def test_a_constant_model_has_an_auc_of_one_half_exactly_and_the_coarse_scores_are_said(registry: FakeRegistry) -> None:
    result = checked(registry, ConstantModel())
    assert result.attack_auc == result.confidence_auc == 0.5
    assert result.verdict is Outcome.PASS
    assert "PG106" in codes(result)


def test_a_model_that_shows_labels_only_cannot_be_judged_unless_the_policy_allows_it(registry: FakeRegistry) -> None:
    result = checked(registry, MemorisedLabelsModel(members=REMEMBERED))
    assert (result.verdict, result.exit_code) == (Outcome.INCONCLUSIVE, 3)
    assert result.confidence_auc is None
    allowing = parse_policy(
        starter_policy(SIGNER.public_pem, "tester").replace("label_only: inconclusive", "label_only: allow")
    )
    allowed = checked(registry, MemorisedLabelsModel(members=REMEMBERED), policy=allowing)
    assert (allowed.verdict, allowed.attack, allowed.attack_auc) == (Outcome.FAIL, "correctness", 1.0)


def test_a_model_that_answers_at_random_is_asked_again_and_not_judged(registry: FakeRegistry) -> None:
    result = checked(registry, RandomAnswerModel())
    validity = result.evidence.validity
    assert (validity.unstable_rows, validity.asked_again_rows) == (200, 200)
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "Asked again about 200 of the rows, the model answered 200 of them otherwise" in result.card
    assert "PG110" in result.card
    assert "Asked again" not in checked(registry, FairModel()).card


@pytest.mark.parametrize(
    ("model", "verdict", "found"),
    [
        (WaveringModel(scale=1e-7), Outcome.PASS, False),
        (WaveringModel(below=-2.6), Outcome.PASS, True),
        (WaveringModel(below=-1.5), Outcome.INCONCLUSIVE, True),
        (WaveringModel(steady_from=2), Outcome.INCONCLUSIVE, True),
    ],
    ids=["float noise", "few rows", "many rows", "steady once it was tested"],
)
def test_answers_that_change_are_warned_of_where_few_and_not_judged_where_many(
    registry: FakeRegistry, model: FakeModel, verdict: Outcome, found: bool
) -> None:
    result = checked(registry, model)
    assert result.verdict is verdict
    assert ("PG110" in codes(result)) is found
    assert ("PG110" in result.card) is found
    assert ("PG110" in FORMATS["text"](result)) is found


@pytest.mark.parametrize(
    "noise",
    [
        lambda a: np.random.default_rng(0).uniform(-0.2, 0.2, len(a)),
        lambda a: np.where(np.arange(len(a)) < 100, 0.0, np.random.default_rng(len(a)).uniform(-0.2, 0.2, len(a))),
        lambda a: 0.2 * np.sin(1e6 * a) if len(a) > 1 else np.zeros(1),
        lambda a: 0.2 * np.sin(1e6 * (a + a.sum())),
    ],
    ids=["by its place", "past the first hundred", "among others only", "by the other rows"],
)
def test_a_model_whose_answer_to_a_row_depends_on_how_it_is_asked_is_not_judged(
    registry: FakeRegistry, noise: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> None:
    class Asked(FakeModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            return by_probability(0.5 + 0.1 * np.tanh(features["b"]) + noise(features["a"].to_numpy()), labels)

    result = checked(registry, Asked())
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "PG110" in codes(result)


def test_a_model_that_shows_labels_only_and_names_no_classes_is_asked_again_like_others(registry: FakeRegistry) -> None:
    class Labels(FakeModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            return Observations.from_predicted_labels((features["a"] > 0).astype(int), labels)

    validity = checked(registry, Labels()).evidence.validity
    assert (validity.unstable_rows, validity.asked_again_rows) == (0, 200)


def test_a_leak_is_a_fail_even_of_a_model_that_answers_otherwise_each_time(registry: FakeRegistry) -> None:
    class Leaky(RandomAnswerModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            known = features["a"].isin(REMEMBERED).to_numpy()
            return by_probability(self.rng.uniform(0.2, 0.8, len(features)) + np.where(known, 0.15, 0.0), labels)

    result = checked(registry, Leaky())
    assert result.verdict is Outcome.FAIL
    assert {"PG110", "PG201"} <= codes(result)


def test_every_attack_that_this_tool_never_tries_is_named_as_not_run(registry: FakeRegistry) -> None:
    result = checked(registry, FairModel())
    assert set(NOT_RUN_EVER) <= {skipped.id for skipped in result.evidence.not_run}
    for name in NOT_RUN_EVER:
        assert name.replace("_", " ") in result.card.replace("_", " ").replace("\\", "")


def test_the_evidence_states_bytes_splits_tool_and_policy(registry: FakeRegistry) -> None:
    evidence = checked(registry, FairModel()).evidence
    assert evidence.model_digest == model_digest(registry.folder)
    assert {side.role: (side.rows, side.digest) for side in evidence.data} == {
        "members": (ROWS, SPLITS.members.digest),
        "non_members": (ROWS, SPLITS.non_members.digest),
    }
    assert evidence.policy.sha256 == POLICY.sha256
    assert evidence.tested_at == NOW
    assert (evidence.expires_at - NOW).days == POLICY.evidence.max_age_days


def test_what_opens_a_source_is_not_published_with_its_name(registry: FakeRegistry) -> None:
    source = "https://reader:hunter2@host/train.csv?sig=0123abc"
    result = checked(registry, FairModel(), found=replace(SPLITS, members=replace(SPLITS.members, source=source)))
    assert result.evidence.data[0].source == "https://host/train.csv"
    for text in (result.card, result.report, result.envelope.decode(), str(result.evidence)):
        assert "hunter2" not in text
        assert "0123abc" not in text


def test_the_signed_statement_says_what_the_result_says(registry: FakeRegistry) -> None:
    result = checked(registry, PerfectlyLeakyModel(members=REMEMBERED))
    assert read_statement(open_envelope(result.envelope).payload) == result.evidence
    assert registry.artifacts[ATTESTATION_ARTIFACT] == result.envelope


def test_each_test_has_a_nonce_of_its_own(registry: FakeRegistry) -> None:
    assert checked(registry, FairModel()).evidence.nonce != checked(registry, FairModel()).evidence.nonce


def test_the_same_check_measures_the_same_numbers(registry: FakeRegistry) -> None:
    first, second = (checked(registry, FairModel()).evidence for _ in range(2))
    assert replace(first, nonce="") == replace(second, nonce="")


def test_without_a_key_the_evidence_is_unsigned_and_opens_no_gate(registry: FakeRegistry) -> None:
    result = run_check(URI, POLICY, tools(registry, FairModel(), SPLITS))
    assert result.verdict is Outcome.PASS
    assert not result.signed
    assert not promotable(registry)


# --- what is written, and when


def test_a_dry_run_measures_and_judges_and_writes_nothing(registry: FakeRegistry) -> None:
    result = checked(registry, PerfectlyLeakyModel(members=REMEMBERED), wishes=Wishes(dry_run=True))
    assert result.verdict is Outcome.FAIL
    assert not result.recorded
    assert registry.writes == []


def test_the_verdict_is_the_last_write_and_the_attestation_the_last_before_it(registry: FakeRegistry) -> None:
    checked(registry, FairModel())
    assert registry.writes[-2:] == [ATTESTATION_TAG, VERDICT_TAG]


def test_an_earlier_verdict_is_taken_back_before_anything_new_is_written(registry: FakeRegistry) -> None:
    checked(registry, FairModel())
    registry.writes.clear()
    checked(registry, PerfectlyLeakyModel(members=REMEMBERED))
    assert registry.writes[:2] == [f"delete {VERDICT_TAG}", f"delete {ATTESTATION_TAG}"]
    assert registry.tags[VERDICT_TAG] == "fail"


def fails(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


class BrokenSigner:
    key_id = "0" * 64

    def sign(self, message: bytes) -> bytes:
        raise UsageError("the signing key cannot be reached")


@pytest.mark.parametrize(
    "changes",
    [
        {"open_model": fails(ModelUnusable("cannot be opened"))},
        {"split_sources": fails(SplitsUnavailable("gone"))},
        {"clock": fails(RuntimeError("no clock"))},
        {"signer": BrokenSigner()},
    ],
    ids=["model", "splits", "clock", "signer"],
)
def test_whatever_fails_before_the_first_write_leaves_an_earlier_result_whole(
    registry: FakeRegistry, changes: dict[str, Any]
) -> None:
    checked(registry, FairModel())
    before = dict(registry.tags), dict(registry.artifacts), registry.description
    registry.writes.clear()
    built = replace(tools(registry, PerfectlyLeakyModel(members=REMEMBERED), SPLITS, signer=SIGNER), **changes)
    with pytest.raises((PrivacyGateError, RuntimeError)):
        run_check(URI, POLICY, built)
    assert registry.writes == []
    assert (registry.tags, registry.artifacts, registry.description) == before


def test_a_card_that_cannot_be_drawn_is_found_before_the_first_write(registry: FakeRegistry) -> None:
    broken = "[//]: # (privacy-gate:end)\n\n[//]: # (privacy-gate:begin v1)\n"
    with pytest.raises(CardError, match=r"^broken\.md: line"):
        checked(registry, FairModel(), wishes=Wishes(card=GivenCard(broken, "broken.md")))
    assert registry.writes == []


def writes_of_one_check(folder: Path) -> int:
    counted = FakeRegistry(folder)
    checked(counted, FairModel())
    return len(counted.writes)


def test_a_first_check_killed_before_any_write_leaves_no_pass(registry: FakeRegistry) -> None:
    last = writes_of_one_check(registry.folder)
    assert last > 10
    for number in range(1, last + 1):
        fresh = FakeRegistry(registry.folder, stop_before=number)
        with pytest.raises(Stopped):
            checked(fresh, FairModel())
        assert VERDICT_TAG not in fresh.tags, number
        # The envelope is whole, signed and of these bytes; only its display is missing once it stands.
        assert promotable(fresh) is (number == last), number


def test_a_second_check_killed_at_any_write_leaves_no_pass_of_the_first(registry: FakeRegistry) -> None:
    checked(registry, FairModel())
    passed = dict(registry.tags), dict(registry.artifacts)
    registry.writes.clear()
    checked(registry, FairModel())
    for number in range(2, len(registry.writes) + 1):
        second = FakeRegistry(registry.folder, tags=dict(passed[0]), artifacts=dict(passed[1]), stop_before=number)
        with pytest.raises(Stopped):
            checked(second, PerfectlyLeakyModel(members=REMEMBERED))
        assert VERDICT_TAG not in second.tags, number
        # After the first write the first test's own evidence still stands, whole; from the second on nothing does.
        assert promotable(second) is (number == 2), number


def test_a_registry_that_fails_at_any_write_is_could_not_look_and_leaves_no_pass(
    registry: FakeRegistry,
) -> None:
    for number in range(1, writes_of_one_check(registry.folder) + 1):
        fresh = FakeRegistry(registry.folder, fail_at=number)
        with pytest.raises(CouldNotLook) as caught:
            checked(fresh, FairModel())
        assert caught.value.exit_code == 4
        assert VERDICT_TAG not in fresh.tags, number


def test_a_model_without_a_version_keeps_its_result_in_its_run(registry: FakeRegistry) -> None:
    registry.name = registry.version = None
    result = checked(registry, FairModel())
    assert result.recorded
    assert registry.tags == {}
    assert ATTESTATION_ARTIFACT in registry.artifacts


def test_a_version_without_a_run_keeps_its_result_in_its_tags(registry: FakeRegistry) -> None:
    registry.run_id = None
    checked(registry, FairModel())
    assert registry.artifacts == {}
    assert registry.tags["privacy_gate.report_uri"] == "unknown"
    assert promotable(registry)


# --- what cannot be judged


def test_no_splits_is_could_not_judge_and_says_how_to_give_them(registry: FakeRegistry) -> None:
    with pytest.raises(SplitsUnavailable, match=r"log_splits.*--members") as caught:
        checked(registry, FairModel(), found=None)
    assert caught.value.exit_code == 3
    assert registry.writes == []


def test_a_version_without_lineage_says_so(registry: FakeRegistry) -> None:
    registry.run_id, registry.lineage_note = None, "its run abc was deleted"
    with pytest.raises(SplitsUnavailable, match=r"no lineage.*its run abc was deleted.*--members"):
        checked(registry, FairModel(), found=None)


def test_a_model_folder_that_changes_during_the_test_is_not_judged(registry: FakeRegistry) -> None:
    class Meddling(FairModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            (registry.folder / "weights.bin").write_bytes(b"other weights")
            return super().answer(features, labels)

    with pytest.raises(CouldNotJudge, match="changed while they were tested"):
        checked(registry, Meddling())
    assert registry.writes == []


@pytest.mark.parametrize("share", [0.004, 0.3, 1.0])
def test_a_model_that_gives_nan_for_some_members_is_not_judged(registry: FakeRegistry, share: float) -> None:
    class Failing(FakeModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            own = np.full(len(features), 0.5)
            own[: int(len(own) * share)] = np.nan
            return by_probability(own, labels)

    with pytest.raises(ObservationError, match="NaN") as caught:
        checked(registry, Failing())
    assert caught.value.exit_code == 3
    assert registry.writes == []


def test_too_few_rows_is_inconclusive_with_the_number_that_is_needed(registry: FakeRegistry) -> None:
    few = splits(rows(180, seed=3), rows(400, seed=4))
    result = checked(registry, FairModel(), found=few)
    assert result.verdict is Outcome.INCONCLUSIVE
    (finding,) = [one for one in result.findings if one.code is ReasonCode.PG105]
    assert "181" in finding.message
    assert "180" in finding.message


def test_a_leak_is_a_fail_even_where_rows_are_few(registry: FakeRegistry) -> None:
    few = splits(MEMBERS.head(50), NON_MEMBERS.head(50))
    result = checked(registry, PerfectlyLeakyModel(members=REMEMBERED), found=few)
    assert result.verdict is Outcome.FAIL
    assert {"PG105", "PG201"} <= codes(result)


@pytest.mark.parametrize("leaky", [True, False], ids=["leaky", "fair"])
def test_splits_that_differ_from_those_logged_are_never_judged(registry: FakeRegistry, leaky: bool) -> None:
    other = replace(SPLITS, as_logged=False, as_logged_note="members: 3 rows more than were logged")
    result = checked(registry, PerfectlyLeakyModel(members=REMEMBERED) if leaky else FairModel(), found=other)
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "PG104" in codes(result)


def test_members_among_the_non_members_are_not_judged_above_the_limit_and_dropped_below_it(
    registry: FakeRegistry,
) -> None:
    many = splits(MEMBERS, pd.concat([NON_MEMBERS, MEMBERS.head(40)], ignore_index=True))
    result = checked(registry, FairModel(), found=many)
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "PG103" in codes(result)
    assert result.evidence.splits.shared_rows == 40

    two = splits(MEMBERS, pd.concat([NON_MEMBERS, MEMBERS.head(2)], ignore_index=True))
    result = checked(registry, FairModel(), found=two)
    assert result.verdict is Outcome.PASS
    assert [side.rows_used for side in result.evidence.data] == [ROWS - 2, ROWS]


def test_the_same_rows_on_both_sides_leave_nothing_to_test(registry: FakeRegistry) -> None:
    with pytest.raises(SplitsUnavailable, match="stand on the other side too"):
        checked(registry, FairModel(), found=splits(MEMBERS, MEMBERS.copy()))


def test_splits_that_differ_by_themselves_are_not_judged_and_the_column_is_named(registry: FakeRegistry) -> None:
    shifted = NON_MEMBERS.assign(b=NON_MEMBERS["b"] + 3)
    result = checked(registry, FairModel(), found=splits(MEMBERS, shifted))
    assert result.verdict is Outcome.INCONCLUSIVE
    (finding,) = [one for one in result.findings if "blind classifier" in one.message]
    assert finding.code is ReasonCode.PG101
    assert finding.value is not None
    assert finding.value > 0.9
    assert result.evidence.validity.blind_columns[0] == "b"
    assert "most by b" in finding.message


def test_non_members_that_tuning_saw_are_warned_of_and_tested(registry: FakeRegistry) -> None:
    result = checked(registry, FairModel(), found=replace(SPLITS, used_for_tuning=True))
    assert result.verdict is Outcome.PASS
    assert "PG107" in codes(result)
    assert "PG107" in result.card


def test_a_model_file_that_holds_training_rows_is_warned_of(registry: FakeRegistry) -> None:
    result = checked(
        registry, FairModel(notes=ModelNotes("fake", holds_training_rows="KNeighborsClassifier keeps its rows"))
    )
    assert result.verdict is Outcome.PASS
    (finding,) = [one for one in result.findings if one.code is ReasonCode.PG403]
    assert "KNeighborsClassifier" in finding.message


def test_a_group_on_both_sides_is_inconclusive(registry: FakeRegistry) -> None:
    sides = [frame.assign(site=np.arange(ROWS) // 50 + shift) for frame, shift in ((MEMBERS, 0), (NON_MEMBERS, 4))]
    result = checked(registry, FairModel(), found=splits(*sides, group="site"))
    assert result.evidence.splits.group_overlap == 1
    assert result.verdict is Outcome.INCONCLUSIVE
    assert "PG102" in codes(result)


def test_a_subgroup_of_three_rows_a_side_refuses_no_good_model(registry: FakeRegistry) -> None:
    sides = [frame.assign(site=["rare"] * 3 + ["common"] * (ROWS - 3)) for frame in (MEMBERS, NON_MEMBERS)]

    class LeakyOnTheRare(FairModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            rare = (features["site"] == "rare").to_numpy()
            fair = 1 / (1 + np.exp(-features["a"].to_numpy()))
            known = features["a"].isin(REMEMBERED).to_numpy()
            return by_probability(np.where(rare, np.where(known, 0.999, 0.001), fair), labels)

    result = checked(registry, LeakyOnTheRare(), found=splits(*sides), wishes=Wishes(subgroup_columns=("site",)))
    assert result.verdict is Outcome.PASS
    small = [group for group in result.evidence.subgroups if group.column == "site" and group.auc is None]
    assert [(group.rows_members, group.note) for group in small] == [(0, "too small; counts under 10 are not given")]


def test_one_class_that_is_memorised_shows_in_its_own_number(registry: FakeRegistry) -> None:
    sides = [
        frame.assign(**{TARGET: (np.arange(1200) % 10 == 0).astype(int)})
        for frame in (rows(1200, seed=5), rows(1200, seed=6))
    ]
    known = frozenset(sides[0]["a"])

    class MemorisesClassOne(FairModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            fair = 1 / (1 + np.exp(-features["a"].to_numpy()))
            remembered = features["a"].isin(known).to_numpy() & (labels == 1).to_numpy()
            return by_probability(np.where(remembered, 0.999, fair), labels)

    result = checked(registry, MemorisesClassOne(), found=splits(*sides))
    by_class = {group.group: group for group in result.evidence.subgroups if group.column == TARGET}
    assert by_class["1"].auc is not None
    assert by_class["1"].auc > 0.95
    assert by_class["1"].ci_low is not None
    assert by_class["1"].ci_low > 0.9
    assert by_class["0"].auc is not None
    assert 0.45 < by_class["0"].auc < 0.55


def test_the_attack_with_the_larger_auc_decides_and_is_named(registry: FakeRegistry) -> None:
    class QuietOnConfidence(FakeModel):
        """Members' own label gets what others get; the rest is spread over the other classes in another way."""

        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            known = features["a"].isin(REMEMBERED).to_numpy()
            own = 0.3 + 0.1 / (1 + np.exp(-features["b"].to_numpy()))
            rest = 1 - own
            first = np.where(known, 0.95, 0.5) * rest
            three = np.column_stack([own, own, own])
            column = labels.to_numpy()
            for row, at in enumerate(column):
                others = [index for index in range(3) if index != at]
                three[row, others[0]], three[row, others[1]] = first[row], rest[row] - first[row]
            return Observations.from_probabilities(three, labels, [0, 1, 2])

    result = checked(registry, QuietOnConfidence())
    assert result.verdict is Outcome.FAIL
    assert result.confidence_auc is not None
    assert result.confidence_auc < 0.55
    assert result.attack in {"entropy", "modified_entropy"}
    worst = result.evidence.attack(str(result.attack))
    assert worst is not None
    aucs = {
        attack.id: attack.metric("auc") for attack in result.evidence.attacks if attack.id in result.evidence.gating
    }
    assert result.attack_auc == max(metric.value for metric in aucs.values() if metric and metric.value is not None)


def test_an_attack_worse_than_chance_is_never_turned_round(registry: FakeRegistry) -> None:
    class Inverted(PerfectlyLeakyModel):
        def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
            known = features["a"].isin(self.members).to_numpy()
            return by_probability(np.where(known, 0.6, 0.99), labels)

    result = checked(registry, Inverted(members=REMEMBERED))
    assert result.confidence_auc == 0.0
    assert result.attack_auc is not None
    assert result.attack_auc < 0.5


# --- what the caller may ask beside


def test_claims_on_the_card_lower_the_margin(registry: FakeRegistry) -> None:
    card = "---\nprivacy_gate:\n  max_attack_auc: 0.505\n---\n\n# Mine\n"
    result = checked(registry, FairModel(), wishes=Wishes(card=GivenCard(card)))
    assert result.margin == 0.505
    assert "# Mine" in result.card


STRICT = b"""---
privacy_gate:
  personal_data: true
  data_categories: [health]
  max_attack_auc: 0.51
---

# The run's
"""


def test_a_card_that_is_handed_in_takes_nothing_back_of_the_recorded_one(registry: FakeRegistry) -> None:
    registry.artifacts["README.md"] = STRICT
    loose = GivenCard("---\nprivacy_gate:\n  data_categories: [children]\n---\n\n# Mine\n", "mine.md")
    for _ in range(2):  # the first must not leave the looser card for the second to find
        result = checked(registry, FairModel(), wishes=Wishes(card=loose))
        assert result.margin == 0.51
        assert result.evidence.card == CardClaims(True, ("children", "health"), 0.51)
        assert [words.partition(", which")[0] for words in result.notes] == [
            "mine.md lacks data categories health",
            "mine.md lacks max_attack_auc 0.51",
            "mine.md lacks personal_data: true",
        ]
        assert set(result.notes) <= set(result.evidence.limitations)
        assert "# Mine" in result.card
        assert "# The run's" in registry.artifacts["README.md"].decode("utf-8")


def test_a_card_that_is_handed_in_and_declares_as_much_becomes_the_runs(registry: FakeRegistry) -> None:
    registry.artifacts["README.md"] = STRICT
    stricter = STRICT.decode("utf-8").replace("0.51", "0.505").replace("The run's", "Mine")
    result = checked(registry, FairModel(), wishes=Wishes(card=GivenCard(stricter)))
    assert (result.margin, result.notes) == (0.505, ())
    assert "# Mine" in registry.artifacts["README.md"].decode("utf-8")


def test_a_recorded_card_that_cannot_be_read_stands_in_the_way_of_one_that_is_handed_in(registry: FakeRegistry) -> None:
    registry.artifacts["README.md"] = b"---\nprivacy_gate:\n  max_attack_auc: low\n---\n"
    with pytest.raises(CardError, match=r"^the artifact README\.md: line 3: privacy_gate\.max_attack_auc"):
        checked(registry, FairModel(), wishes=Wishes(card=GivenCard("# Mine\n")))
    assert registry.writes == []


def test_the_card_says_where_its_limit_comes_from(registry: FakeRegistry) -> None:
    card = checked(registry, FairModel()).card
    assert "0.55, from default of privacy-gate.yaml" in card
    assert POLICY.sha256 in card
    assert "training-data-extraction-test" in card


def test_a_card_in_the_run_is_read_and_written_back_where_it_was(registry: FakeRegistry) -> None:
    registry.artifacts["model_card.md"] = b"# The author's words\n"
    checked(registry, FairModel())
    written = registry.artifacts["model_card.md"].decode("utf-8")
    assert "\n# The author's words\n" in written
    assert "privacy-gate:begin" in written
    assert "README.md" not in registry.artifacts


def test_a_subgroup_column_that_is_not_there_is_a_usage_error(registry: FakeRegistry) -> None:
    with pytest.raises(UsageError, match="'region'"):
        checked(registry, FairModel(), wishes=Wishes(subgroup_columns=("region",)))


def test_records_are_a_local_file_with_the_callers_index_and_never_published(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    members, non_members = MEMBERS.set_axis(range(1000, 1000 + ROWS)), NON_MEMBERS.set_axis(range(5000, 5000 + ROWS))
    path = tmp_path / "records.parquet"
    checked(
        registry,
        PerfectlyLeakyModel(members=REMEMBERED),
        found=splits(members, non_members),
        wishes=Wishes(records=path),
    )
    records = pd.read_parquet(path)
    assert list(records.index) == [*members.index, *non_members.index]
    assert records["member"].sum() == ROWS
    assert (records.loc[members.index, "confidence_exposure"] == 1.0).all()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any("records" in name for name in registry.writes)


@pytest.mark.parametrize("name", ["records.csv", "no/such/folder/records.parquet"])
def test_a_records_file_that_cannot_be_written_is_said_before_anything_is_measured(
    registry: FakeRegistry, tmp_path: Path, name: str
) -> None:
    model = FairModel()
    with pytest.raises(UsageError, match=Path(name).name.split(".")[-1]):
        checked(registry, model, wishes=Wishes(records=tmp_path / name))
    assert model.asked == 0


def test_the_callers_tables_and_random_state_are_left_as_they_were(registry: FakeRegistry) -> None:
    members, non_members = MEMBERS.copy(), NON_MEMBERS.copy()
    state = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002 - the caller's own
    checked(registry, FairModel(), found=splits(members, non_members))
    pd.testing.assert_frame_equal(members, MEMBERS)
    pd.testing.assert_frame_equal(non_members, NON_MEMBERS)
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index]  # noqa: NPY002 - the caller's own


def test_progress_is_told_step_by_step(registry: FakeRegistry) -> None:
    said: list[str] = []
    checked(registry, FairModel(), progress=said.append)
    assert said[-1] == "recording the result"
    assert len(said) >= 4
