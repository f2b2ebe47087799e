from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from command_line import run

from mlflow_privacy_gate.policy import built_in_policy, parse_policy

WRONG = """\
version: 1
preset: standard
mode: strict
margin:
  default: 55
attacks:
  seed: soon
seed: 1
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVACY_GATE_POLICY", raising=False)


def test_lint_reports_every_mistake_at_once_with_its_line_and_ends_with_2() -> None:
    Path("privacy-gate.yaml").write_text(WRONG)
    ran = run("policy", "lint")
    assert ran.exit_code == 2
    assert ran.stdout == ""
    lines = [int(found) for found in re.findall(r"privacy-gate\.yaml:(\d+):", ran.stderr)]
    assert lines == [3, 5, 7, 8]
    assert "0.55" in ran.stderr  # did you mean


def test_lint_of_a_good_policy_says_so_with_its_digest() -> None:
    assert run("init").exit_code == 0
    ran = run("policy", "lint")
    assert ran.exit_code == 0
    assert parse_policy(Path("privacy-gate.yaml").read_text()).sha256 in ran.stdout


def test_lint_notes_a_policy_without_keys_and_one_that_refuses_nothing() -> None:
    Path("mine.yaml").write_text("version: 1\nmode: warn\n")
    ran = run("policy", "lint", "mine.yaml")
    assert ran.exit_code == 0
    assert "mine.yaml:1: keys: no key of a tester" in ran.stdout
    assert "mine.yaml:2: mode: mode is warn" in ran.stdout


def test_lint_names_a_guard_that_is_empty_with_its_line() -> None:
    Path("mine.yaml").write_text("version: 1\nguard:\n  stages: []\n  aliases: []\n")
    ran = run("policy", "lint", "mine.yaml")
    assert ran.exit_code == 0
    assert "mine.yaml:3: guard.stages: is empty" in ran.stdout
    assert "mine.yaml:4: guard.aliases: is empty" in ran.stdout


@pytest.mark.parametrize(
    "guard",
    [
        *("aliases: [' champion']", "aliases: ['champion ']", 'aliases: ["champ\\u200bion"]', "aliases: ['[champion']"),
        *(
            "aliases: ['prod.*']",
            "aliases: ['a b']",
            "aliases: ['[!]']",
            "registered_models: ['live-[ab']",
            "aliases: ['']",
        ),
        *("registered_models: ['live ']", "stages: [Live]", "stages: [Archived]", "stages: ['Production ']"),
    ],
)
def test_lint_refuses_a_guard_that_can_match_nothing_with_its_line(guard: str) -> None:
    Path("mine.yaml").write_text(f"version: 1\nguard:\n  {guard}\n")
    ran = run("policy", "lint", "mine.yaml")
    assert ran.exit_code == 2
    assert f"mine.yaml:3: guard.{guard.partition(':')[0]}" in ran.stderr


@pytest.mark.parametrize("glob", ["champion", "prod-*", "v?", "[ab]x", "[!x]*", "[]]", "[[]x", "\u5192\u9673", "*"])
def test_lint_takes_every_glob_that_can_match_an_alias(glob: str) -> None:
    if glob in {"[]]", "[[]x"}:  # for names, which may hold a bracket
        Path("mine.yaml").write_text(f"version: 1\nguard:\n  registered_models: ['{glob}']\n")
    else:
        Path("mine.yaml").write_text(f"version: 1\nguard:\n  aliases: ['{glob}']\n", encoding="utf-8")
    assert run("policy", "lint", "mine.yaml").exit_code == 0


TAKEN = {
    "before": ("--policy", "other.yaml", "{}"),
    "after": ("{}", "--policy", "other.yaml"),
    "both": ("--policy", "other.yaml", "{}", "--policy", "other.yaml"),
}


@pytest.mark.parametrize("command", ["lint", "show"])
@pytest.mark.parametrize("where", [*TAKEN, "environment"])
def test_the_policy_is_taken_from_the_same_places(command: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("privacy-gate.yaml").write_text("version: 1\n")
    Path("other.yaml").write_text("version: 1\nmargin: {default: 0.52}\n")
    sha256 = parse_policy(Path("other.yaml").read_bytes()).sha256
    if where == "environment":
        monkeypatch.setenv("PRIVACY_GATE_POLICY", "other.yaml")
        ran = run("policy", command)
    else:
        ran = run("policy", *(word.format(command) for word in TAKEN[where]))
    assert ran.exit_code == 0
    assert sha256 in ran.stdout


def test_two_policies_are_one_too_many() -> None:
    ran = run("policy", "--policy", "a.yaml", "show", "--policy", "b.yaml")
    assert ran.exit_code == 2
    assert "name one policy" in ran.stderr


@pytest.mark.parametrize("arguments", [("lint",), ("lint", "nowhere.yaml"), ("show", "--policy", "nowhere.yaml")])
def test_a_policy_that_is_missing_is_named(arguments: tuple[str, ...]) -> None:
    ran = run("policy", *arguments)
    assert ran.exit_code == 2
    assert "PG901" in ran.stderr
    assert arguments[-1] if arguments[-1].endswith(".yaml") else "privacy-gate.yaml" in ran.stderr


def test_show_gives_the_policy_in_force_whole_and_it_can_be_read_again() -> None:
    ran = run("policy", "show")
    assert ran.exit_code == 0
    assert "built-in" in ran.stdout
    again = parse_policy(ran.stdout)
    assert again.sha256 != ""
    assert again.margin == built_in_policy().margin
    assert yaml.safe_load(ran.stdout)["margin"]["default"] == 0.55


def test_show_as_json_is_strict() -> None:
    Path("privacy-gate.yaml").write_text("version: 1\nmargin: {default: 0.53}\n")
    told = json.loads(run("policy", "show", "--output", "json").stdout, parse_constant=pytest.fail)
    assert told["policy"]["margin"]["default"] == 0.53


def test_the_policy_named_in_the_environment_comes_before_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("privacy-gate.yaml").write_text("version: 1\nmargin: {default: 0.53}\n")
    Path("other.yaml").write_text("version: 1\nmargin: {default: 0.52}\n")
    monkeypatch.setenv("PRIVACY_GATE_POLICY", "other.yaml")
    assert "other.yaml" in run("policy", "show").stdout
    assert "privacy-gate.yaml" in run("policy", "show", "--policy", "privacy-gate.yaml").stdout
