from __future__ import annotations

import pytest
from evidence_builder import fresh_signer

from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.parsing import built_in_policy, parse_policy
from mlflow_privacy_gate.policy.rendering import effective_yaml, policy_key_yaml, starter_policy
from mlflow_privacy_gate.vocabulary import KeyRole


@pytest.mark.parametrize(
    "text",
    [
        "version: 1",
        "version: 1\npreset: thorough\nmode: off",
        "version: 1\npreset: sensitive\nunsafe_decide_on: point\nvalidity: {unsafe_min_rows_per_side: 500}",
        "version: 1\nmargin: {default: 0.6, unsafe_above_default: true, tpr_at_fpr: {0.00001: 0.01}}",
        "version: 1\nevidence: {unsafe_allow_unsigned: true}\nguard: {registered_models: ['credit-*', 'é: #x']}",
        "version: 1\nsign_off: {required: true}",
        "version: 1\nledger: ./ledger.jsonl\ntemplates: ./ours",
    ],
)
def test_the_effective_policy_parses_to_itself(text: str) -> None:
    policy = parse_policy(text)
    again = parse_policy(effective_yaml(policy))
    assert again.model_dump() == policy.model_dump()
    assert again.loosened == policy.loosened


def test_keys_and_their_ends_survive_the_rendering() -> None:
    text = starter_policy(fresh_signer().public_pem, "a").replace(
        "    role: tester\n", "    role: tester\n    not_after: 2027-01-31T12:00:00+02:00\n"
    )
    policy = parse_policy(text)
    assert policy.keys[0].not_after is not None
    assert parse_policy(effective_yaml(policy)).keys == policy.keys


def test_the_effective_policy_names_every_key() -> None:
    shown = effective_yaml(built_in_policy())
    for name, field in Policy.model_fields.items():
        assert bool(field.exclude) != (f"\n{name}:" in f"\n{shown}")


def test_the_starter_policy_is_the_built_in_one_with_one_tester_key() -> None:
    pem = fresh_signer().public_pem
    policy = parse_policy(starter_policy(pem, 'tester: 1 # "x"'))
    [key] = policy.keys
    assert (key.id, key.role, key.public_key) == ('tester: 1 # "x"', "tester", pem)
    without_key = {**policy.model_dump(), "keys": ()}
    assert without_key == built_in_policy().model_dump()


def test_the_starter_policy_shows_every_key_and_credits_the_rule() -> None:
    text = starter_policy(fresh_signer().public_pem, "a")
    for name, field in Policy.model_fields.items():
        assert field.exclude or f"\n{name}:" in text
    assert "https://agentwranglers.se/playbook/" in text


def test_the_lines_of_a_key_list_it_in_the_role_that_was_named() -> None:
    tester, officer = fresh_signer().public_pem, fresh_signer().public_pem
    lines = policy_key_yaml(tester, "t", KeyRole.TESTER) + policy_key_yaml(officer, "o: #", KeyRole.PRIVACY_OFFICER)
    policy = parse_policy(f"version: 1\nkeys:\n{lines}")
    assert [(key.id, key.role, key.public_key) for key in policy.keys] == [
        ("t", KeyRole.TESTER, tester),
        ("o: #", KeyRole.PRIVACY_OFFICER, officer),
    ]
