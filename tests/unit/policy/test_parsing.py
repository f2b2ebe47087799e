from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml
from evidence_builder import fresh_signer
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keys import TrustedKey
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.policy.parsing import built_in_policy, parse_policy
from mlflow_privacy_gate.policy.rendering import effective_yaml
from mlflow_privacy_gate.vocabulary import KeyRole, ReasonCode


def problems(text: str | bytes) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "privacy-gate.yaml")
    assert caught.value.code is ReasonCode.PG901
    assert caught.value.exit_code == 2
    return caught.value.problems


def mistakes(text: str) -> tuple[str, ...]:
    """The mistakes in any text whatever; none where it is a policy, which then renders to itself."""
    try:
        policy = parse_policy(text)
    except PolicyError as error:
        return error.problems
    return (
        ()
        if parse_policy(effective_yaml(policy)).model_dump() == policy.model_dump()
        else ("renders to another policy",)
    )


def key_entry(name: str, role: str, pem: str) -> str:
    body = "".join(f"      {line}\n" for line in pem.strip().splitlines())
    return f"  - id: {name}\n    role: {role}\n    public_key: |\n{body}"


def test_the_shortest_policy_is_the_built_in_one() -> None:
    shortest, built_in = parse_policy("version: 1\n"), built_in_policy()
    assert shortest.model_dump() == built_in.model_dump()
    assert built_in.margin.default == 0.55
    assert built_in.margin.categories == {"health": 0.52, "genetic": 0.52, "biometric": 0.52, "children": 0.52}
    assert built_in.attacks.gating == ("confidence", "loss", "entropy", "modified_entropy")
    assert built_in.guard.aliases == ("production", "prod", "champion")
    assert built_in.guard.stages == ("Production",)
    assert built_in.evidence.max_age_days == 90
    assert built_in.keys == ()
    assert built_in.mode is Mode.ENFORCE


def test_the_sha256_is_of_the_very_bytes() -> None:
    data = "version: 1\r\n# ä comment\r\n".encode()
    policy = parse_policy(data, "house.yaml")
    assert policy.sha256 == hashlib.sha256(data).hexdigest()
    assert policy.source_name == "house.yaml"


def test_all_mistakes_are_reported_together_with_their_lines() -> None:
    text = """version: 1
modes: enforce
mode: wrn
margin:
  default: 55
  categories: {health: 0.53, Health: 0.5}
attacks: {gating: [confidense, loss]}
validity:
  min_rows_per_side: 12.5
  max_overlap: .nan
guard: {stages: production, aliases: [a, a]}
evidence: {verify_artifacts: no}
limits: 5
limits: 6
"""
    assert problems(text) == (
        "privacy-gate.yaml:2: modes: unknown key (did you mean mode?)",
        "privacy-gate.yaml:3: mode: expected one of enforce, warn, off, got 'wrn' (did you mean warn?)",
        "privacy-gate.yaml:5: margin.default: expected a fraction in (0.5, 1], got 55 (did you mean 0.55?)",
        "privacy-gate.yaml:6: margin.categories.Health: expected a data category in lower case, such as health, got 'Health'",
        "privacy-gate.yaml:6: margin.categories.Health: expected a fraction in (0.5, 1], got 0.5",
        "privacy-gate.yaml:6: margin.categories: health 0.53 is above the preset's 0.52; "
        "loosening it needs `margin.unsafe_categories` in its place",
        "privacy-gate.yaml:7: attacks.gating[0]: expected the name of an attack, got 'confidense' (did you mean confidence?)",
        "privacy-gate.yaml:9: validity.min_rows_per_side: expected a whole number of at least 1, got 12.5",
        "privacy-gate.yaml:10: validity.max_overlap: expected a fraction in [0, 1], got nan",
        "privacy-gate.yaml:11: guard.aliases: listed twice: a",
        "privacy-gate.yaml:11: guard.stages: expected a list, got 'production'",
        "privacy-gate.yaml:12: evidence.verify_artifacts: expected true: the stored bytes are always compared with the "
        "tested ones, got 'no'",
        "privacy-gate.yaml:13: limits: expected keys and values, got 5",
        "privacy-gate.yaml:14: limits: stands twice (first in line 13)",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 2\n", "1: version: expected 1, the only version of this file's format, got 2"),
        ("version: true\n", "1: version: expected 1, the only version of this file's format, got true"),
        ("mode: warn\n", "1: version: this key is missing; the file's format is `version: 1`"),
        ("version: 1\nsha256: abc\n", "2: sha256: unknown key"),
        ("version: 1\nmargin: {default: 0.5}\n", "2: margin.default: expected a fraction in (0.5, 1], got 0.5"),
        ("version: 1\nmargin: {default: '0.55'}\n", "2: margin.default: expected a fraction in (0.5, 1], got '0.55'"),
        ("version: 1\nmargin: {default: yes}\n", "2: margin.default: expected a fraction in (0.5, 1], got 'yes'"),
        ("version: 1\nmargin: {default: .inf}\n", "2: margin.default: expected a fraction in (0.5, 1], got inf"),
        (
            "version: 1\nmargin: {default: 0.6}\n",
            "2: margin.default: 0.6 is above the rule's 0.55; that needs `unsafe_above_default: true`",
        ),
        ("version: 1\nmargin:\n", "2: margin: expected keys and values, got null"),
        ("version: 1\nguard: []\n", "2: guard: expected keys and values, got a list"),
        ("version: 1\nattacks: {gating: []}\n", "2: attacks.gating: expected at least one, got an empty list"),
        (
            "version: 1\nattacks: {gating: [confidence, loss, entropy, modified_entropy, rmia]}\n",
            "2: attacks.gating: rmia cannot run: `attacks.references` must be at least 2 (16 is usual)",
        ),
        (
            "version: 1\nattacks: {report: [nonsense]}\n",
            "2: attacks.report[0]: expected the name of an attack, got 'nonsense' (known: ",
        ),
        (
            "version: 1\nguard: {stages: [Archived]}\n",
            "2: guard.stages[0]: expected Production or Staging, got 'Archived'",
        ),
        (
            "version: 1\nmargin: {tpr_at_fpr: {1: 0.03}}\n",
            "2: margin.tpr_at_fpr[1]: expected a fraction in (0, 1), got 1",
        ),
        ("version: 1\nlabel_only: maybe\n", "2: label_only: expected inconclusive or allow, got 'maybe'"),
        (
            "version: 1\npersonal_data: {undeclared_means: none}\n",
            "2: personal_data.undeclared_means: expected personal, got 'none'",
        ),
        ("version: 1\nkeys: [{role: tester}]\n", "2: keys[0].id: this key is missing"),
        ("version: 1\nlimits: {memory_gb: 0}\n", "2: limits.memory_gb: expected a number above 0, got 0"),
        (
            "version: 1\npreset: thorugh\n",
            "2: preset: expected one of standard, thorough, sensitive, got 'thorugh' (did you mean thorough?)",
        ),
        ("version: 1\nmode: '{curly}'\n", "2: mode: expected one of enforce, warn, off, got '{curly}'"),
        ("version: 1\nguard: {alias: [x]}\n", "2: guard.alias: unknown key (did you mean aliases?)"),
        ("version: 1\nsources: {zzz: 1}\n", "2: sources.zzz: unknown key; known here: http_hosts, max_rows"),
    ],
)
def test_a_mistake_says_where_what_was_expected_and_what_was_got(text: str, expected: str) -> None:
    assert any(problem.startswith(f"privacy-gate.yaml:{expected}") for problem in problems(text)), problems(text)


def test_off_is_the_word_and_not_a_boolean() -> None:
    assert parse_policy("version: 1\nmode: off\n").mode is Mode.OFF


def test_scientific_notation_is_a_number() -> None:
    assert parse_policy("version: 1\nvalidity: {max_overlap: 1e-4}\n").validity.max_overlap == 0.0001


def test_a_key_is_trusted_in_its_role_until_its_end() -> None:
    pem = fresh_signer().public_pem
    policy = parse_policy(f"version: 1\nkeys:\n{key_entry('a', 'tester', pem)}    not_after: 2027-01-31\n")
    assert policy.trusted_keys == (TrustedKey("a", KeyRole.TESTER, pem, datetime(2027, 1, 31, tzinfo=timezone.utc)),)
    assert policy.trusts(KeyRole.TESTER)
    assert not policy.trusts(KeyRole.PRIVACY_OFFICER)


def test_one_key_in_two_roles_is_refused_whatever_its_pem_looks_like() -> None:
    pem = fresh_signer().public_pem
    other = pem.replace("-----BEGIN", "\n-----BEGIN")
    text = f"version: 1\nkeys:\n{key_entry('a', 'tester', pem)}{key_entry('b', 'privacy-officer', other)}"
    [problem] = problems(text)
    assert problem == "privacy-gate.yaml:2: keys: 'a' and 'b' are one key; a key has one role and stands once"


def test_two_keys_of_one_id_are_refused() -> None:
    first, second = (fresh_signer().public_pem for _ in range(2))
    text = f"version: 1\nkeys:\n{key_entry('a', 'tester', first)}{key_entry('a', 'tester', second)}"
    assert problems(text) == ("privacy-gate.yaml:2: keys: two keys have the id 'a'",)


def test_a_private_key_in_the_policy_is_refused_without_showing_it() -> None:
    secret = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v\n-----END PRIVATE KEY-----\n"
    [problem] = problems(f"version: 1\nkeys:\n{key_entry('a', 'tester', secret)}")
    assert problem.startswith("privacy-gate.yaml:5: keys[0].public_key: this is a private key")
    assert "MC4CAQAw" not in problem


def test_a_key_that_is_none_is_refused_with_its_line() -> None:
    [problem] = problems("version: 1\nkeys:\n  - id: a\n    role: tester\n    public_key: abc\n")
    assert problem.startswith("privacy-gate.yaml:5: keys[0].public_key: expected a public key")


IDENTITY, ISSUER = "https://github.com/c/m/.github/workflows/check.yml@refs/heads/main", "https://issuer.example"


def identity_entry(name: str, role: str, identity: str = IDENTITY, issuer: str = ISSUER, more: str = "") -> str:
    return f"  - {{id: {name}, role: {role}, identity: '{identity}', issuer: '{issuer}'{more}}}\n"


def test_an_identity_stands_in_the_place_of_a_key(tmp_path: Path) -> None:
    more = ", trust_root: root.json, not_after: 2027-01-31"
    text = f"version: 1\nkeys:\n{identity_entry('a', 'tester', more=more)}{identity_entry('b', 'tester', 'x@y.z')}"
    policy = parse_policy(text, folder=tmp_path)
    end = datetime(2027, 1, 31, tzinfo=timezone.utc)
    assert policy.trusted_keys == (
        TrustedIdentity("a", KeyRole.TESTER, IDENTITY, ISSUER, tmp_path / "root.json", end),
        TrustedIdentity("b", KeyRole.TESTER, "x@y.z", ISSUER),
    )
    assert policy.trusts(KeyRole.TESTER)
    assert mistakes(text) == ()


def test_one_identity_in_two_roles_is_refused() -> None:
    text = f"version: 1\nkeys:\n{identity_entry('a', 'tester')}{identity_entry('b', 'privacy-officer')}"
    assert problems(text) == (
        "privacy-gate.yaml:2: keys: 'a' and 'b' are one identity; an identity has one role and stands once",
    )
    other = identity_entry("b", "privacy-officer", issuer="https://other.example")
    assert mistakes(f"version: 1\nkeys:\n{identity_entry('a', 'tester')}{other}") == ()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{id: a, role: tester}", "keys[0]: expected either `public_key`, or `identity` and `issuer`"),
        ("{id: a, role: tester, identity: x@y.z}", "keys[0]: expected either"),
        ("{id: a, role: tester, issuer: 'https://i.example'}", "keys[0]: expected either"),
        ("{id: a, role: tester, trust_root: r.json}", "keys[0]: expected either"),
        ("{id: a, role: tester, identity: '*@y.z', issuer: 'https://i.example'}", "keys[0].identity: expected one"),
        ("{id: a, role: tester, identity: ' x@y.z', issuer: 'https://i.example'}", "keys[0].identity: expected an e-"),
        ("{id: a, role: tester, identity: 7, issuer: 'https://i.example'}", "keys[0].identity: expected an e-mail"),
        ("{id: a, role: tester, identity: x@y.z, issuer: i.example}", "keys[0].issuer: expected the issuer's https"),
        ("{id: a, role: tester, identity: x@y.z, issuer: 'http://i.example'}", "keys[0].issuer: expected the issuer"),
        ("{id: a, role: tester, identity: x@y.z, issuer: 'https://*'}", "keys[0].issuer: expected the issuer's https"),
        ("{id: a, role: tester, identity: x@y.z, isuer: 'https://i.example'}", "keys[0].isuer: unknown key (did you"),
        ("{id: a, role: tester, identity: x@y.z, issuer: 'https://i.example', trust_root: 1}", "keys[0].trust_root: "),
    ],
)
def test_an_identity_that_cannot_be_meant_is_refused_with_its_line(entry: str, expected: str) -> None:
    [problem] = problems(f"version: 1\nkeys:\n  - {entry}\n")
    assert problem.startswith(f"privacy-gate.yaml:3: {expected}")


def test_a_key_and_an_identity_in_one_entry_are_refused() -> None:
    pem = fresh_signer().public_pem
    for more in ("    identity: x@y.z\n    issuer: https://i.example\n", "    trust_root: root.json\n"):
        [problem] = problems(f"version: 1\nkeys:\n{key_entry('a', 'tester', pem)}{more}")
        assert problem.startswith("privacy-gate.yaml:3: keys[0]: expected either `public_key`, or `identity`")


def test_a_policy_cannot_be_changed_once_parsed() -> None:
    policy = built_in_policy()
    with pytest.raises(ValueError, match="frozen"):
        policy.mode = Mode.OFF
    with pytest.raises(TypeError):
        policy.margin.categories["health"] = 0.9  # type: ignore[index]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert all(problem.startswith("privacy-gate.yaml:") for problem in mistakes(text))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats() | st.sampled_from(["confidence", "off", "a b", "é"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["default", "gating", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Policy.model_fields, "unsafe_decide_on", "unsafe_deny"]), _VALUES, max_size=4))
def test_no_value_in_any_place_breaks_the_parser(values: dict[str, object]) -> None:
    text = yaml.safe_dump(values)
    assert len(set(mistakes(text))) == len(mistakes(text))


def test_a_sign_off_is_asked_for_by_one_plain_word_and_by_default_not() -> None:
    assert not built_in_policy().sign_off.required
    assert parse_policy("version: 1\nsign_off: {required: true}").sign_off.required
    assert problems("version: 1\nsign_off: {required: always}") == (
        "privacy-gate.yaml:2: sign_off.required: expected true or false, got 'always'",
    )
    assert "unknown key" in problems("version: 1\nsign_off: {by: dpo}")[0]
