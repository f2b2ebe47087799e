"""Cards: ours is written, the author's is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from card_cases import evidence, failing_view, particulars, passing_view, verdict
from card_shapes import BROKEN, FULL_MODEL_INDEX, SHAPES
from huggingface_hub import ModelCard

from mlflow_privacy_gate.cards import CardView, card_view, read_claims, write_card
from mlflow_privacy_gate.cards.front_matter import take_apart
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.vocabulary import RULE_URL, Outcome

BEGIN, END = "[//]: # (privacy-gate:begin v1)", "[//]: # (privacy-gate:end)"


def is_kept_in(author: str, written: str) -> bool:
    """Whether every character of ``author`` stands in ``written``, in order: insertions only."""
    characters = iter(written)
    return all(character in characters for character in author)


def lines_are_kept_in(author: str, written: str) -> bool:
    lines = iter(written.split("\n"))
    return all(line in lines for line in author.rstrip("\n").split("\n"))


def front_of(card: str) -> dict[str, Any]:
    return dict(yaml.safe_load(take_apart(card).yaml_text))


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_every_character_of_the_author_is_kept_in_order(card: str) -> None:
    assert is_kept_in(card, write_card(card, passing_view()))


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in SHAPES
        if not n.startswith(("flow everything", "claims in flow", "empty keys", "empty flow", "no body"))
    ],
)
def test_every_line_of_the_author_is_kept_whole(name: str) -> None:
    card = SHAPES[name].rstrip("\r\n")
    written = write_card(SHAPES[name], passing_view()).replace("model-index: \n", "model-index:\n")
    assert lines_are_kept_in(card.replace("\r\n", "\n"), written.replace("\r\n", "\n"))


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_writing_twice_gives_the_same_bytes(card: str) -> None:
    once = write_card(card, failing_view())
    assert write_card(once, failing_view()) == once


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_a_later_result_replaces_the_earlier_one_alone(card: str) -> None:
    after_fail = write_card(write_card(card, failing_view()), passing_view())
    assert after_fail == write_card(card, passing_view())


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_what_the_author_declared_is_untouched(card: str) -> None:
    before = yaml.safe_load(take_apart(card).yaml_text) or {}
    after = front_of(write_card(card, passing_view()))
    for key, value in before.items():
        if key == "privacy_gate" and value:
            assert {name: after[key][name] for name in value} == value
        elif key == "model-index" and value:
            assert [r for r in after[key][0]["results"] if r["task"].get("name") != "mlflow-privacy-gate"] == value[0][
                "results"
            ]
        elif value is not None:
            assert repr(after[key]) == repr(value)
    assert read_claims(write_card(card, passing_view())) == read_claims(card)


@pytest.mark.parametrize("card", [SHAPES[name] for name in SHAPES if name.endswith("CRLF")])
def test_crlf_survives_everywhere(card: str) -> None:
    written = write_card(card, failing_view())
    assert written.count("\n") == written.count("\r\n")


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_a_blank_line_stands_before_the_closing_line_and_around_the_block(card: str) -> None:
    lines = write_card(card, passing_view()).replace("\r\n", "\n").split("\n")
    closing = lines.index("---", next(n for n, line in enumerate(lines) if line.endswith("---")) + 1)
    assert lines[closing - 1] == ""
    begin, end = lines.index(BEGIN), lines.index(END)
    assert (lines[begin - 1], lines[begin + 1], lines[end - 1], lines[end + 1]) == ("", "", "", "")
    assert (lines.count(BEGIN), lines.count(END)) == (1, 1)


@pytest.mark.parametrize(("card", "where"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_card_is_an_error_with_its_line(card: str, where: str) -> None:
    with pytest.raises(CardError, match=rf"^{where}:"):
        write_card(card, passing_view())


# Hugging Face's own reader fails on the key `on:`, which PyYAML gives it as True, whoever wrote the card.
@pytest.mark.parametrize("card", [text for name, text in SHAPES.items() if not name.startswith("words of YAML 1.1")])
def test_hugging_face_loads_the_card_with_our_metrics_and_args(card: str, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(write_card(card, passing_view()).encode("utf-8"))
    loaded = ModelCard.load(path)
    found = {r.metric_type: r for r in loaded.data.eval_results if r.task_name == "mlflow-privacy-gate"}
    assert sorted(found) == ["mia_auc", "mia_tpr_at_fpr_0.01"]
    assert found["mia_auc"].metric_value == 0.5312
    assert found["mia_auc"].metric_args["margin"] == 0.55
    assert found["mia_auc"].metric_args["ci_low"] == 0.5112
    assert found["mia_tpr_at_fpr_0.01"].metric_args == {
        "attack": "confidence",
        "fpr": 0.01,
        "ci_low": 0.0075,
        "ci_high": 0.0233,
    }
    assert loaded.data.to_dict()["privacy_gate"]["verdict"] == "pass"


def test_hugging_face_keeps_the_authors_own_metrics_with_args(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(write_card(FULL_MODEL_INDEX, passing_view()), encoding="utf-8")
    results = {(r.dataset_name, r.metric_type): r for r in ModelCard.load(path).data.eval_results}
    assert results["Loans", "accuracy"].metric_args == {"folds": 5}
    assert results["Loans", "roc_auc"].metric_value == 0.91
    assert results["Loans 2025", "f1"].metric_value == 0.61


@pytest.mark.parametrize("view", [passing_view(), failing_view()], ids=["pass", "fail"])
def test_the_front_matter_says_what_the_verdict_says(view: CardView) -> None:
    section = front_of(write_card(None, view))["privacy_gate"]
    assert section == {
        "verdict": view.verdict.outcome.value,
        "attack_auc": view.verdict.attack_auc,
        "margin": 0.55,
        "checked_at": "2026-03-01T14:05:00Z",
        "expires_at": "2026-05-30T14:05:00Z",
        "model_digest": "sha256:" + "3f" * 32,
        "attestation_sha256": "e7" * 32,
        "policy": "privacy-gate.yaml",
    }


def test_what_was_not_measured_is_null_and_never_zero() -> None:
    nothing = verdict(Outcome.INCONCLUSIVE, attack=None, attack_auc=None, confidence_auc=None, headroom=None)
    card = write_card(None, card_view(evidence(), nothing))
    assert front_of(card)["privacy_gate"]["attack_auc"] is None
    assert front_of(card)["privacy_gate"]["attestation_sha256"] is None
    assert "attack AUC **not measured**" in card


def test_the_digits_that_decide_are_printed() -> None:
    over = verdict(Outcome.FAIL, attack="loss", attack_auc=0.55004, headroom=0.55 - 0.55004)
    card = write_card(None, card_view(evidence({"confidence": 0.53, "loss": 0.55004}), over, particulars()))
    assert front_of(card)["privacy_gate"]["attack_auc"] == 0.55004
    assert "| 0.55004&ensp;|" in card
    assert "headroom -0.00004" in card


def test_the_block_credits_the_rule_with_its_link() -> None:
    card = write_card(None, passing_view())
    assert f"[Agent Wranglers machine learning playbook](<{RULE_URL}>)" in card
    assert "<a" not in card  # MLflow's preview shows HTML as text


def test_the_block_says_formula_and_citation_of_every_attack() -> None:
    card = write_card(None, passing_view())
    assert "- confidence: confidence in the true label, formula confidence/v1 (Agent Wranglers MLO-41)" in card
    assert "- loss: logit-scaled loss, formula loss/v1 (Yeom et al. 2018; Carlini et al. 2022)" in card


def test_the_block_says_what_could_not_have_been_seen_and_what_was_not_run() -> None:
    card = write_card(None, passing_view())
    assert "With 1,200 rows a side, a leak below AUC 0.5293 would be missed" in card
    assert "- extraction: not built into this tool" in card
    assert "evidence of resistance to the attacks run" in card


def test_false_positive_rates_stand_in_the_name_in_one_unit() -> None:
    card = write_card(None, passing_view())
    assert "| Attack&ensp;| TPR at 1% FPR | TPR at 0.1% FPR |" in card
    assert "not resolvable (smallest FPR 0.0017)" in card


def test_a_failing_model_is_told_its_duties_and_what_was_measured_to_help_best_first() -> None:
    card = write_card(None, failing_view())
    assert "a legal basis for using it, answers to access requests, erasure" in card
    assert card.index("at least 20 rows a leaf: attack AUC 0.5411") < card.index(
        "answer with the label alone: attack AUC 0.6123"
    )
    assert "legal basis" not in write_card(None, passing_view())


def test_a_card_without_run_signature_or_sources_says_unknown_and_why() -> None:
    bare = evidence(run_id=None, data=(), registered_model=None, version=None)
    card = write_card(None, card_view(bare, verdict()))
    assert "unsigned: a gate that requires signatures stays closed" in card
    assert "- **Attestation (sha256)**: unknown (no attestation was written)" in card
    assert "- **Members (training rows)**: unknown (this side is missing from the evidence)" in card
    assert "- **Tests of these bytes so far**: unknown (the ledger cannot be read from here)" in card


def test_a_card_of_the_users_template_stands_before_ours(tmp_path: Path) -> None:
    (tmp_path / "card.md.j2").write_text("# {{ view.model_name }}, our house's card\n", encoding="utf-8")
    assert "# credit, our house's card" in write_card(None, passing_view(), templates=tmp_path)


def test_a_nan_is_never_printed_as_a_result() -> None:
    with pytest.raises(CardError, match="got nan"):
        card_view(evidence({"confidence": float("nan")}), verdict())
