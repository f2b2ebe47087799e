from __future__ import annotations

import pytest

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.policy.model import DecideOn, Policy
from mlflow_privacy_gate.policy.parsing import parse_policy
from mlflow_privacy_gate.policy.presets import STRICTNESS
from mlflow_privacy_gate.stats import rows_needed

SIMPLE = ("confidence", "loss", "entropy", "modified_entropy")


def preset(name: str, rest: str = "") -> Policy:
    return parse_policy(f"version: 1\npreset: {name}\n{rest}")


def test_thorough_adds_sixteen_references_and_their_attacks_to_the_gating_ones() -> None:
    policy = preset("thorough")
    assert policy.attacks.references == 16
    assert policy.attacks.gating == (*SIMPLE, "calibrated", "lira_offline", "rmia")
    assert policy.margin.default == 0.55
    assert policy.decide_on is DecideOn.POINT


def test_sensitive_is_thorough_at_a_smaller_margin_on_the_upper_bound() -> None:
    policy = preset("sensitive")
    assert policy.attacks == preset("thorough").attacks
    assert policy.margin.default == 0.52
    assert policy.decide_on is DecideOn.UPPER
    assert policy.margin.tpr_at_fpr == {0.01: 0.03}
    assert rows_needed(0.52) <= policy.validity.min_rows_per_side <= 1.02 * rows_needed(0.52)


TIGHTER = [
    "margin: {default: 0.51}",
    "margin: {categories: {health: 0.51, finance: 0.515}}",
    "margin: {tpr_at_fpr: {0.01: 0.02, 0.001: 0.01}}",
    "decide_on: upper",
    f"attacks: {{gating: [{', '.join(SIMPLE)}, calibrated, lira_offline, rmia, margin_gap]}}",
    "attacks: {references: 64}",
    "validity: {min_rows_per_side: 5000}",
    "validity: {max_overlap: 0}",
    "validity: {max_blind_auc: 0.52}",
    "validity: {split_origins: [manifest]}",
    "evidence: {max_age_days: 30}",
    "waivers: {max_days: 7}",
    "deny: [controlled_access, genetic]",
]
LOOSER = [
    ("margin", "{default: 0.55}", "0.55 is above the preset's 0.52"),
    ("margin", "{categories: {health: 0.54}}", "health 0.54 is above the preset's 0.52"),
    ("margin", "{tpr_at_fpr: {0.01: 0.05}}", "0.01 0.05 is above the preset's 0.03"),
    ("decide_on", "point", "the preset decides on the upper bound"),
    ("attacks", "{gating: [confidence, loss]}", "leaves out entropy, modified_entropy, calibrated, lira_offline, rmia"),
    ("attacks", "{references: 8}", "8 is below the preset's 16"),
    ("attacks", "{reference_origins: [clone, training_function]}", "admits training_function beyond the preset"),
    ("validity", "{min_rows_per_side: 100}", "100 is below the preset's 3600"),
    ("validity", "{max_overlap: 0.01}", "0.01 is above the preset's 0.001"),
    ("validity", "{max_blind_auc: 0.6}", "0.6 is above the preset's 0.55"),
    ("evidence", "{max_age_days: 365}", "365 is above the preset's 90"),
    ("waivers", "{max_days: 60}", "60 is above the preset's 30"),
    ("deny", "[]", "leaves out controlled_access of the preset"),
]


@pytest.mark.parametrize("line", TIGHTER)
def test_single_keys_may_tighten_a_preset(line: str) -> None:
    assert preset("sensitive", line).loosened == ()


@pytest.mark.parametrize(("section", "value", "said"), LOOSER)
def test_loosening_a_preset_without_saying_unsafe_is_refused(section: str, value: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        preset("sensitive", f"{section}: {value}")
    [problem] = caught.value.problems
    assert problem.startswith("privacy-gate.yaml:3: ")
    assert said in problem
    assert "unsafe_" in problem


@pytest.mark.parametrize(("section", "value", "said"), [case for case in LOOSER if "default" not in case[1]])
def test_the_unsafe_form_loosens_a_preset_and_is_remembered(section: str, value: str, said: str) -> None:
    line = f"{section}: {value.replace('{', '{unsafe_', 1)}" if value.startswith("{") else f"unsafe_{section}: {value}"
    [loosened] = preset("sensitive", line).loosened
    assert loosened.split(".")[0] == section


def test_a_margin_above_the_presets_needs_its_own_word() -> None:
    loose = preset("sensitive", "margin: {default: 0.55, unsafe_above_default: true}")
    assert loose.margin.default == 0.55
    assert preset("standard", "margin: {default: 0.7, unsafe_above_default: true}").margin.default == 0.7


def test_a_key_beside_its_unsafe_form_is_refused() -> None:
    with pytest.raises(
        PolicyError, match=r"privacy-gate.yaml:3: validity.unsafe_max_overlap: stands beside `validity.max_overlap`"
    ):
        preset("standard", "validity: {max_overlap: 0, unsafe_max_overlap: 0.1}")


def test_a_mapping_in_a_file_never_loses_a_key_of_the_preset() -> None:
    policy = preset("standard", "margin: {categories: {finance: 0.53}}")
    assert policy.margin.categories == {
        "health": 0.52,
        "genetic": 0.52,
        "biometric": 0.52,
        "children": 0.52,
        "finance": 0.53,
    }


def test_every_rule_of_strictness_is_about_a_key_that_exists() -> None:
    values = Policy().model_dump()
    for path in STRICTNESS:
        found = values
        for part in path:
            found = found[part]


def test_every_rule_of_strictness_is_tried_here() -> None:
    tried = {
        (section, value[1:].split(":")[0]) if value.startswith("{") else (section,) for section, value, _ in LOOSER
    }
    # Admitting a further split origin cannot be tried: the presets admit all that exist.
    assert set(STRICTNESS) - tried == {("validity", "split_origins")}
