"""What the author's card claims is read strictly: a misspelt claim never passes as absent."""

from __future__ import annotations

import pytest
from card_shapes import CLAIMS_IN_FLOW, COMMENTS_AND_FLOW_LISTS, NO_FRONT_MATTER

from mlflow_privacy_gate.cards import read_claims
from mlflow_privacy_gate.cards.front_matter import read_declared
from mlflow_privacy_gate.cards.particulars import AuthorsWords
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.evidence.facts import CardClaims, DifferentialPrivacyClaim


def card(section: str) -> str:
    return f"---\nlicense: mit\nprivacy_gate:\n{section}\n---\nBody.\n"


def test_claims_are_read_with_their_types() -> None:
    assert read_claims(COMMENTS_AND_FLOW_LISTS) == CardClaims(True, ("health", "children"), 0.52, None)


def test_a_delta_as_people_write_it_is_a_number() -> None:
    assert read_claims(CLAIMS_IN_FLOW).differential_privacy == DifferentialPrivacyClaim(3.0, 1e-5, "person", "rdp")


def test_a_card_without_front_matter_or_section_claims_nothing() -> None:
    assert read_claims(NO_FRONT_MATTER) == CardClaims()
    assert read_claims("---\nlicense: mit\n---\n") == CardClaims()
    assert read_claims("") == CardClaims()


def test_an_authors_words_on_data_and_use_are_read_and_claim_nothing() -> None:
    said = card(
        "  training_data: Consumer loans 2019-2024\n  cohort: adults\n  use_agreement: DPA-2024-17\n  release_context: internal"
    )
    assert read_declared(said).words == AuthorsWords("Consumer loans 2019-2024", "adults", "DPA-2024-17", "internal")
    assert read_claims(said) == CardClaims()
    assert read_declared(NO_FRONT_MATTER).words == AuthorsWords()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "  release_context: public",
            "line 4: privacy_gate.release_context: expected one of public-api, internal, open-weights, got 'public'",
        ),
        ("  use_agreement: 2024", "line 4: privacy_gate.use_agreement: expected text (a number or a date in quotes)"),
        ("  training_data: ' '", "line 4: privacy_gate.training_data: expected text"),
        ("  cohorts: adults", "line 4: privacy_gate: unknown key 'cohorts' (did you mean cohort?)"),
        (
            "  data_category: [health]",
            "line 4: privacy_gate: unknown key 'data_category' (did you mean data_categories?)",
        ),
        ("  personal_data: maybe", "line 4: privacy_gate.personal_data: expected true or false, got 'maybe'"),
        ("  data_categories: health", "line 4: privacy_gate.data_categories: expected a list of words"),
        ("  data_categories: [1]", "line 4: privacy_gate.data_categories: expected a list of words"),
        ("  max_attack_auc: 55", "line 4: privacy_gate.max_attack_auc: expected a fraction in [0.5, 1], got 55"),
        ("  max_attack_auc: .nan", "line 4: privacy_gate.max_attack_auc: expected a fraction"),
        ("  max_attack_auc: true", "line 4: privacy_gate.max_attack_auc: expected a fraction"),
        (
            "  personal_data: true\n  differential_privacy: 3",
            "line 5: privacy_gate.differential_privacy: expected epsilon",
        ),
        (
            "  differential_privacy: {epsilon: 3}",
            "line 4: privacy_gate.differential_privacy.delta: expected a fraction",
        ),
        (
            "  differential_privacy: {epsilon: -1, delta: 0}",
            "differential_privacy.epsilon: expected a number of at least 0",
        ),
        ("  differential_privacy: {epsilon: 1, delta: 0, steps: 1.5}", "steps: expected a whole number from 1 to"),
        ("  differential_privacy: {epsilon: 1, delta: 0, steps: 1e13}", "steps: expected a whole number from 1 to"),
        (
            "  differential_privacy: {epsilon: 1, delta: 0, noise_multiplier: 1e-300}",
            "noise_multiplier: expected a number from 1e-6 to 1e6",
        ),
        (
            "  differential_privacy: {epsilon: 1, delta: 0, noise_multiplyer: 2}",
            "unknown key 'noise_multiplyer' (did you mean noise_multiplier?)",
        ),
    ],
)
def test_a_claim_that_cannot_be_meant_is_an_error_with_its_line(section: str, message: str) -> None:
    with pytest.raises(CardError) as caught:
        read_claims(card(section))
    assert message in caught.value.message


def test_all_mistakes_are_reported_together() -> None:
    with pytest.raises(CardError) as caught:
        read_claims(card("  personal_data: 1\n  max_attack_auc: x"))
    assert len(caught.value.message.splitlines()) == 2


def test_what_the_gate_wrote_is_no_claim() -> None:
    assert read_claims(card("  verdict: pass\n  attack_auc: 0.1\n  margin: 0.9")) == CardClaims()


@pytest.mark.parametrize(
    ("front_matter", "message"),
    [
        ("base: &b {privacy_gate: {max_attack_auc: 0.52}}\n<<: *b", "line 2: `privacy_gate` is merged in"),
        ("privacy-gate: {max_attack_auc: 0.52}", "line 2: unknown key 'privacy-gate' (did you mean `privacy_gate`?)"),
        ("Privacy Gate: {max_attack_auc: 0.52}", "line 2: unknown key 'Privacy Gate' (did you mean `privacy_gate`?)"),
        (
            "privacy_gate:\n  differential_privacy:\n    epsilon: 1\n    epsilon: 100\n    delta: 0",
            "line 5: privacy_gate.differential_privacy.epsilon stands twice",
        ),
    ],
)
def test_claims_that_a_reader_sees_are_never_overlooked(front_matter: str, message: str) -> None:
    with pytest.raises(CardError) as caught:
        read_claims(f"---\n{front_matter}\n---\nBody.\n")
    assert caught.value.message.startswith(message)


def test_front_matter_whose_lines_end_in_carriage_returns_alone_is_not_taken_for_text() -> None:
    with pytest.raises(CardError, match=r"line 1: front matter is opened .* LF or CRLF"):
        read_claims("---\rprivacy_gate: {max_attack_auc: 0.52}\r---\rBody.\r")


def test_aliases_that_multiply_are_an_error_at_once_and_one_that_holds_itself_is_none() -> None:
    doubled = "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    with pytest.raises(CardError, match="by aliases"):
        read_claims(f"---\na0: &a0 [x]\n{doubled}---\nBody.\n")
    assert read_claims("---\nloop: &l [*l, *l]\n---\nBody.\n") == CardClaims()
