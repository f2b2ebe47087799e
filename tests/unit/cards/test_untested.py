"""A model without a test that counts is called untested; what is unknown says why, and no figure is made up."""

from __future__ import annotations

import re

import pytest
import yaml
from card_cases import passing_view
from card_shapes import CLAIMS_IN_FLOW, COMMENTS_AND_FLOW_LISTS, NO_FRONT_MATTER, PLAIN
from huggingface_hub import ModelCard, ModelCardData

from mlflow_privacy_gate.cards import description, write_card
from mlflow_privacy_gate.cards.card import write_untested
from mlflow_privacy_gate.cards.front_matter import take_apart
from mlflow_privacy_gate.cards.markers import BEGIN, find_block, without_block
from mlflow_privacy_gate.cards.rows import FieldRow
from mlflow_privacy_gate.cards.untested import UntestedView, untested_view
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.vocabulary import REASONS, Finding, ReasonCode

BARE = ResolvedModel("models:/credit/7", "file:///m", "credit", "7", lineage_note="no run is recorded for this model")
NO_SIGNATURE = FieldRow("Inputs (signature)", None, "none with named columns was logged")
SHAPES = {"plain": PLAIN, "comments": COMMENTS_AND_FLOW_LISTS, "flow": CLAIMS_IN_FLOW, "none": NO_FRONT_MATTER}


def view(code: ReasonCode = ReasonCode.PG001, message: str = "No test is recorded.") -> UntestedView:
    return untested_view(BARE, Finding(code, message), datasets=(), signature=NO_SIGNATURE)


def front_of(card: str) -> dict[str, object]:
    front = yaml.safe_load(take_apart(card).yaml_text)
    assert isinstance(front, dict)
    return front


def test_a_version_without_run_signature_or_data_says_why_each_is_unknown() -> None:
    card = write_untested(None, view())
    assert "**UNTESTED**" in card
    assert "PG001 no evidence found" in card
    assert "- **Training run**: unknown (no run is recorded for this model)" in card
    assert "- **Data sets of the run**: unknown (no run is recorded for this model)" in card
    assert "- **Inputs (signature)**: unknown (none with named columns was logged)" in card
    for row in ("Attack AUC", "Tested", "Valid until"):
        assert f"- **{row}**: unknown (no test of it counts)" in card


def test_no_zero_and_no_date_is_invented() -> None:
    card = write_untested(None, view())
    assert not re.search(r"\b0(\.0+)?\b|\b20\d\d-", card.replace("MLO-41", "").replace("CC BY 4.0", ""))
    assert front_of(card) == {"privacy_gate": {"verdict": "untested"}}


def test_data_sets_of_the_run_are_named_with_their_context() -> None:
    model = ResolvedModel("models:/credit/7", "file:///m", "credit", "7", run_id="r1")
    datasets = (DatasetInput("loans", "d", "training", "s3", "x"), DatasetInput("rest", "d", None, "s3", "y"))
    named = untested_view(model, Finding(ReasonCode.PG001, "x"), datasets=datasets, signature=NO_SIGNATURE)
    assert "- **Data sets of the run**: loans (training), rest (no context)" in write_untested(None, named)


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_every_byte_of_the_authors_body_stays_and_writing_twice_is_the_same(card: str) -> None:
    once = write_untested(card, view())
    assert write_untested(once, view()) == once
    body = take_apart(once).body
    assert find_block(body) is not None
    assert take_apart(card).body in without_block(body)


@pytest.mark.parametrize("card", SHAPES.values(), ids=SHAPES.keys())
def test_figures_of_an_earlier_test_are_taken_back_everywhere(card: str) -> None:
    tested = write_card(card, passing_view())
    written = write_untested(tested, view(ReasonCode.PG004, "The recorded test is not believed: other bytes."))
    front = front_of(written)
    section = front["privacy_gate"]
    assert isinstance(section, dict)
    gate = {key: section[key] for key in ("verdict", "attack_auc", "margin", "checked_at", "attestation_sha256")}
    assert gate == {
        "verdict": "untested",
        "attack_auc": None,
        "margin": None,
        "checked_at": None,
        "attestation_sha256": None,
    }
    assert "PASS" not in written
    assert "0.5312" not in written
    assert written.count(BEGIN) == 1
    assert write_card(written, passing_view()) == write_card(tested, passing_view())


def test_a_card_taken_back_still_loads_for_hugging_face() -> None:
    written = write_untested(write_card(PLAIN, passing_view()), view())
    data = ModelCard(written).data
    assert isinstance(data, ModelCardData)
    assert data.eval_results is not None
    assert [(r.metric_type, r.metric_value) for r in data.eval_results if r.task_type == "membership-inference"] == [
        ("mia_auc", None)
    ]


def test_a_description_says_untested_and_keeps_the_authors_text() -> None:
    written = description(write_untested(None, view()), view(), existing="Words of the author.")
    assert written.startswith("Words of the author.\n\n" + BEGIN)
    assert "**UNTESTED**" in written


def test_what_to_do_is_said() -> None:
    card = write_untested(None, view())
    assert "To test it: mlflow-privacy-gate check models:/credit/7" in card
    assert REASONS[ReasonCode.PG001].remedy.split("`")[0] in card
