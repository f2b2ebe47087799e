"""Look, decide, write: whatever goes wrong on the way refuses, and what is no promotion is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import attestation, fresh_signer, passing_evidence, write_policy
from mlflow.entities.model_registry import ModelVersion, ModelVersionTag, RegisteredModel
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST, TEMPORARILY_UNAVAILABLE

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.policy.location import PolicyFile
from mlflow_privacy_gate.store.opening import gated, open_gated_store
from mlflow_privacy_gate.store.promotion_guard import PromotionGuard
from mlflow_privacy_gate.store.recording import Asker
from mlflow_privacy_gate.store.turns import turns_at
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

SIGNER = fresh_signer()
GUARD = "guard: {registered_models: ['live-*']}"


def tagged(key: str, value: str) -> ModelVersionTag:
    return ModelVersionTag(key, value)  # type: ignore[no-untyped-call]


class FakeStore:
    """A registry store in memory, with the methods and signatures of MLflow's."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.stored: dict[tuple[str, int], ModelVersion] = {}
        self.written: list[tuple[Any, ...]] = []
        self.fails: dict[str, Exception] = {}
        self.while_creating: Callable[[], None] = lambda: None

    def add(self, name: str, *, source: str = "s3://bucket/model", tags: dict[str, str] | None = None) -> ModelVersion:
        number = max((version for model, version in self.stored if model == name), default=0) + 1
        listed = [tagged(key, value) for key, value in (tags or {}).items()]
        self.stored[name, number] = ModelVersion(name, str(number), 0, source=source, tags=listed)
        return self.stored[name, number]

    def _answer(self, method: str) -> None:
        if method in self.fails:
            raise self.fails[method]

    def get_registered_model(self, name: str) -> RegisteredModel:
        if name not in {model for model, _ in self.stored}:
            raise MlflowException(f"no {name}", RESOURCE_DOES_NOT_EXIST)
        return RegisteredModel(name)

    def get_model_version(self, name: str, version: str) -> ModelVersion:
        self._answer("get_model_version")
        if (name, int(version)) not in self.stored:
            raise MlflowException(f"no {name} {version}", RESOURCE_DOES_NOT_EXIST)
        return self.stored[name, int(version)]

    def get_model_version_download_uri(self, name: str, version: str) -> str:
        source = self.get_model_version(name, version).source
        return source if source in {"dummy-source", "prompt-template"} else self.location

    def get_latest_versions(self, name: str, stages: Sequence[str] | None = None) -> list[ModelVersion]:
        return [found for (model, _), found in self.stored.items() if model == name]

    def transition_model_version_stage(
        self, name: str, version: str, stage: str, archive_existing_versions: bool
    ) -> ModelVersion:
        self._answer("transition_model_version_stage")
        self.written.append(("stage", name, version, stage))
        return self.get_model_version(name, version)

    def set_registered_model_alias(self, name: str, alias: str, version: str) -> None:
        self._answer("set_registered_model_alias")
        self.written.append(("alias", name, version, alias))

    def create_model_version(
        self, name: str, source: str, run_id: str | None = None, tags: Sequence[ModelVersionTag] | None = None
    ) -> ModelVersion:
        self._answer("create_model_version")
        self.while_creating()
        return self.add(name, source=source, tags={tag.key: tag.value for tag in tags or ()})

    def copy_model_version(self, src_mv: ModelVersion, dst_name: str) -> ModelVersion:
        return self.create_model_version(dst_name, self.location)

    def rename_registered_model(self, name: str, new_name: str) -> RegisteredModel:
        self.written.append(("rename", name, new_name))
        return RegisteredModel(new_name)

    def delete_model_version(self, name: str, version: str) -> None:
        del self.stored[name, int(version)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "MLmodel").write_text("flavors: {}\n")
    return model


@pytest.fixture
def policy_path(tmp_path: Path) -> Path:
    return write_policy(tmp_path / "policy.yaml", SIGNER, GUARD)


class Bench:
    """A fake inner store under a real guard; ``change`` runs once the bytes have been hashed."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self.inner = FakeStore("mlflow-artifacts:/0/model")
        self.looks, self.most_bytes = 0, 0.0
        self.folder = folder
        self.change: Callable[[], None] | None = None
        self.fault: Exception | None = None
        self.turns = turns_at(self.inner)  # type: ignore[arg-type]
        guard = PromotionGuard(PolicyFile(policy_path), self._folder_at, self.turns, lambda: Asker("tester", "default"))
        self.store: Any = gated(self.inner, guard)  # type: ignore[arg-type]

    @contextmanager
    def _folder_at(
        self, location: str, version_location: Callable[[str, str], str], most_bytes: float
    ) -> Iterator[Path]:
        self.looks, self.most_bytes = self.looks + 1, most_bytes
        if self.fault is not None:
            raise self.fault
        yield self.folder
        if self.change is not None:
            self.change()

    def checked(self, name: str = "credit") -> ModelVersion:
        tag = attestation(passing_evidence(model_digest(self.folder)), SIGNER)
        return self.inner.add(name, tags={ATTESTATION_TAG: tag})

    def swap(self) -> None:
        (self.folder / "MLmodel").write_text("flavors: {evil: {}}\n")

    def refusal(self, action: Callable[[], object]) -> str:
        before = list(self.inner.written), dict(self.inner.stored)
        with pytest.raises(MlflowException) as caught:
            action()
        assert caught.value.error_code == "PERMISSION_DENIED"
        assert caught.value.get_http_status_code() == 403  # type: ignore[no-untyped-call]
        assert (self.inner.written, self.inner.stored) == before
        assert (
            str(self.folder.parent) not in caught.value.message
        )  # where a server keeps things is not its clients' business
        return str(caught.value.message)


@pytest.fixture
def bench(folder: Path, policy_path: Path) -> Bench:
    return Bench(folder, policy_path)


def test_the_gated_store_is_the_inner_store_with_its_state(bench: Bench) -> None:
    assert isinstance(bench.store, FakeStore)
    assert bench.store.__dict__ is bench.inner.__dict__
    bench.inner.location = "elsewhere"
    assert bench.store.location == "elsewhere"


def test_a_checked_version_is_written_by_the_inner_store(bench: Bench) -> None:
    bench.checked()
    bench.store.set_registered_model_alias("credit", "champion", "1")
    bench.store.transition_model_version_stage("credit", "1", "production", False)
    assert bench.inner.written == [("alias", "credit", "1", "champion"), ("stage", "credit", "1", "production")]


def test_an_unchecked_version_is_refused(bench: Bench) -> None:
    bench.inner.add("credit")
    assert "PG001" in bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "champion", "1"))


@pytest.mark.parametrize("reason", ["no evidence", "no trusted key", "no readable policy"])
def test_what_is_refused_whatever_the_bytes_are_is_refused_before_they_are_read(
    bench: Bench, policy_path: Path, reason: str
) -> None:
    code = {"no evidence": "PG001", "no trusted key": "PG003", "no readable policy": "PG901"}[reason]
    if reason == "no evidence":
        bench.inner.add("credit")
    else:
        bench.checked()
        policy_path.write_text("version: 1\n") if reason == "no trusted key" else policy_path.unlink()
    for action in (
        lambda: bench.store.set_registered_model_alias("credit", "champion", "1"),
        lambda: bench.store.transition_model_version_stage("credit", "1", "Production", False),
    ):
        text = bench.refusal(action)
        assert code in text
        assert "PG007" not in text
    assert bench.looks == 0


def test_a_new_version_without_tags_is_looked_at_since_the_ledger_may_hold_its_evidence(bench: Bench) -> None:
    bench.refusal(lambda: bench.store.create_model_version("live-credit", "s3://bucket/model"))
    assert bench.looks == 1


def test_as_much_may_be_fetched_as_the_policy_lets_a_model_use(bench: Bench, policy_path: Path) -> None:
    write_policy(policy_path, SIGNER, "limits: {memory_gb: 3}")
    bench.checked()
    bench.store.set_registered_model_alias("credit", "champion", "1")
    assert bench.most_bytes == 3e9


@pytest.mark.parametrize("fails", ["get_model_version", "set_registered_model_alias"])
def test_a_refusal_without_a_decision_names_the_version(bench: Bench, fails: str) -> None:
    bench.checked()
    bench.inner.fails[fails] = MlflowException("database is locked", TEMPORARILY_UNAVAILABLE)
    assert "credit version 1:" in bench.refusal(
        lambda: bench.store.set_registered_model_alias("credit", "champion", "1")
    )


def test_a_rename_that_fails_early_speaks_of_any_version(bench: Bench) -> None:
    bench.checked()
    bench.inner.fails["get_model_version"] = MlflowException("database is locked", TEMPORARILY_UNAVAILABLE)
    assert "credit version any:" in bench.refusal(lambda: bench.store.rename_registered_model("credit", "live-credit"))


@pytest.mark.parametrize("version", ["99999999999999999999", 2**31, "-1"])
def test_a_number_that_no_registry_holds_is_mlflows_own_answer(bench: Bench, version: str | int) -> None:
    bench.checked()
    promote = bench.store.set_registered_model_alias
    move = bench.store.transition_model_version_stage
    for action in (
        partial(promote, "credit", "champion", version),
        partial(move, "credit", version, "Production", False),
    ):
        with pytest.raises(MlflowException) as caught:
            action()
        assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_a_rename_of_very_many_versions_is_refused_after_the_first_twenty(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = bench.checked()
    for _ in range(100):
        bench.inner.add("credit")
    while_others_wait: set[str] = set()
    look_up = FakeStore.get_model_version

    def noting(store: FakeStore, name: str, version: str) -> ModelVersion:
        if bench.turns.inside():
            while_others_wait.add(version)
        return look_up(store, name, version)

    monkeypatch.setattr(FakeStore, "get_model_version", noting)
    text = bench.refusal(lambda: bench.store.rename_registered_model("credit", "live-credit"))
    assert [f"credit version {number}:" in text for number in (2, 21, 22, 101)] == [True, True, False, False]
    assert while_others_wait == {str(number) for number in range(1, 22)}
    for number in range(2, 102):
        bench.store.delete_model_version("credit", str(number))
    bench.inner.stored.update({("credit", number): passing for number in range(2, 42)})
    bench.store.rename_registered_model("credit", "live-credit")
    assert bench.inner.written == [("rename", "credit", "live-credit")]


@pytest.mark.parametrize("mode", ["enforce", "warn", "unreadable"])
def test_a_name_longer_than_any_registry_takes_is_answered_before_anything_is_compared(
    bench: Bench, policy_path: Path, mode: str
) -> None:
    write_policy(policy_path, SIGNER, f"{GUARD}\nmode: {mode}")
    original = bench.checked()
    # Putting so many marks in their order takes Unicode minutes, and a worker that does not answer meanwhile is killed.
    endless = "a" + "\u0300\u0316" * 200_000
    before, started = list(bench.inner.written), time.monotonic()
    for action in (
        partial(bench.store.set_registered_model_alias, "credit", endless, "1"),
        partial(bench.store.create_model_version, endless, "s3://bucket/model"),
        partial(bench.store.copy_model_version, original, endless),
        partial(bench.store.rename_registered_model, "credit", endless),
    ):
        with pytest.raises(MlflowException, match=r"at most 1,000 characters, got 400,001") as caught:
            action()
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert time.monotonic() - started < 2
    assert (bench.inner.written, list(bench.inner.stored)) == (before, [("credit", 1)])


def test_the_longest_name_that_is_compared_is_compared_at_once(bench: Bench) -> None:
    bench.inner.add("credit")
    started = time.monotonic()
    for letters in ("\u0300\u0316" * 500, "\ufdfa" * 1000):
        bench.store.set_registered_model_alias("credit", letters, "1")
    assert time.monotonic() - started < 2


def test_bytes_that_change_while_they_are_looked_at_are_refused(bench: Bench) -> None:
    bench.checked()
    bench.change = bench.swap
    assert "PG004" in bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "champion", "1"))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (CouldNotLook("the bucket does not answer"), "PG007"),
        (MlflowException("artifact store down", INTERNAL_ERROR), "PG007"),
        (RuntimeError("a fault of ours"), "PG909"),
        (MemoryError(), "PG909"),
    ],
)
def test_a_fault_while_looking_at_the_bytes_refuses(bench: Bench, fault: Exception, code: str) -> None:
    bench.checked()
    bench.fault = fault
    text = bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "champion", "1"))
    assert code in text
    assert "a fault of ours" not in text


def test_a_fault_of_the_gate_itself_refuses_with_pg909(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.checked()
    monkeypatch.setattr("mlflow_privacy_gate.gate.decide", lambda *_, **__: 1 / 0)
    assert "PG909" in bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "champion", "1"))


@pytest.mark.parametrize("method", ["get_model_version", "set_registered_model_alias"])
def test_a_database_that_fails_refuses_with_pg902(bench: Bench, method: str) -> None:
    bench.checked()
    bench.inner.fails[method] = MlflowException("database is locked", TEMPORARILY_UNAVAILABLE)
    assert "PG902" in bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "champion", "1"))


def test_a_missing_version_stays_mlflows_own_answer(bench: Bench) -> None:
    with pytest.raises(MlflowException) as caught:
        bench.store.set_registered_model_alias("credit", "champion", "1")
    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


@pytest.mark.parametrize("source", ["prompt-template", "dummy-source"])
def test_a_prompt_is_known_by_its_own_source(bench: Bench, source: str) -> None:
    bench.inner.add("greeting", source=source)
    bench.store.set_registered_model_alias("greeting", "production", "1")
    assert bench.inner.written == [("alias", "greeting", "1", "production")]


def test_a_prompts_tag_makes_no_prompt(bench: Bench) -> None:
    bench.inner.add("credit", tags={"mlflow.prompt.is_prompt": "true"})
    bench.refusal(lambda: bench.store.set_registered_model_alias("credit", "production", "1"))


def test_a_version_created_into_a_guarded_name_is_judged_by_the_evidence_in_its_tags(bench: Bench) -> None:
    create = partial(bench.store.create_model_version, "live-credit", "s3://bucket/model", None)
    assert "PG001" in bench.refusal(lambda: create([]))
    tag = tagged(ATTESTATION_TAG, attestation(passing_evidence(model_digest(bench.folder)), SIGNER))
    create([tag])
    assert ("live-credit", 1) in bench.inner.stored


def test_a_version_created_without_tags_is_judged_by_the_newest_test_of_its_bytes_that_the_ledger_holds(
    bench: Bench,
) -> None:
    create = partial(bench.store.create_model_version, "live-credit", "s3://bucket/model", None)
    tag = tagged(ATTESTATION_TAG, attestation(passing_evidence(model_digest(bench.folder)), SIGNER))
    create([tag])
    create([])
    assert ("live-credit", 2) in bench.inner.stored


def test_a_version_that_holds_other_bytes_once_created_is_taken_back(bench: Bench) -> None:
    tag = tagged(ATTESTATION_TAG, attestation(passing_evidence(model_digest(bench.folder)), SIGNER))
    bench.inner.while_creating = bench.swap
    action = partial(bench.store.create_model_version, "live-credit", "s3://bucket/model", None, [tag])
    assert "PG004" in bench.refusal(action)


def test_renaming_looks_at_every_version_and_tells_each_refusal(bench: Bench) -> None:
    bench.inner.add("credit")
    bench.checked()
    bench.inner.add("credit", tags={"mlflow.prompt.is_prompt": "true"})
    text = bench.refusal(lambda: bench.store.rename_registered_model("credit", "live-credit"))
    assert text.count("PG001:") == 2
    bench.store.rename_registered_model("credit", "other")
    assert bench.inner.written == [("rename", "credit", "other")]


def test_a_broken_policy_guards_every_alias_and_stage_and_what_names_it_guarded_before(
    bench: Bench, policy_path: Path
) -> None:
    bench.checked()
    bench.store.set_registered_model_alias("credit", "champion", "1")
    policy_path.write_text("version: one\n")
    store = bench.store
    for action in (
        lambda: store.set_registered_model_alias("credit", "whatever", "1"),
        lambda: store.transition_model_version_stage("credit", "1", "Staging", False),
        lambda: store.create_model_version("live-credit", "s3://bucket/model"),
    ):
        assert "PG901" in bench.refusal(action)
    store.transition_model_version_stage("credit", "1", "Archived", False)
    store.create_model_version("credit", "s3://bucket/model")
    bench.inner.add("greeting", source="prompt-template")
    store.set_registered_model_alias("greeting", "production", "1")


def test_a_call_that_is_no_promotion_reads_nothing_and_costs_nothing_measurable(bench: Bench) -> None:
    bench.fault = AssertionError("the bytes must not be looked at")
    bench.inner.fails["get_model_version"] = AssertionError("the version must not be looked at")
    started = time.perf_counter()
    for _ in range(1000):
        bench.store.set_registered_model_alias("credit", "candidate", "1")
    assert (time.perf_counter() - started) / 1000 < 0.001  # a plain alias on SQLite takes 2 ms, through REST 56 ms


@pytest.mark.parametrize("uri", ["privacy-gate:", "sqlite:///m.db", ""])
def test_a_uri_without_an_inner_registry_is_refused(uri: str) -> None:
    with pytest.raises(MlflowException, match="expected privacy-gate:") as caught:
        open_gated_store(uri)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
