from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.gate import guarded_alias, guarded_name, guarded_stage
from mlflow_privacy_gate.gate.lookalikes import _CAPITALS, _SMALLS, _WIDE_ROWS, folded, plain_letters
from mlflow_privacy_gate.policy import built_in_policy, parse_policy
from mlflow_privacy_gate.policy.model import Guard

BUILT_IN = built_in_policy()
NAMES = parse_policy("version: 1\nguard: {registered_models: ['prod-*', live, '[!x]z', 'crédit', '*.v[0-9]']}\n")
LOOKALIKES = [(letter, lookalike) for rows in (_CAPITALS, _SMALLS) for letter, row in rows.items() for lookalike in row]


@pytest.mark.parametrize("stage", ["Production", "production", "PRODUCTION", "pRoDuCtIoN"])
def test_production_is_guarded_in_any_letter_case(stage: str) -> None:
    assert guarded_stage(BUILT_IN, stage)


@pytest.mark.parametrize("stage", ["Staging", "Archived", "None", "", "Produc"])
def test_staging_and_archiving_are_no_promotions(stage: str) -> None:
    assert not guarded_stage(BUILT_IN, stage)


def test_a_policy_may_guard_staging_too() -> None:
    policy = parse_policy("version: 1\nguard: {stages: [staging]}\n")
    assert guarded_stage(policy, "Staging")
    assert not guarded_stage(policy, "Production")


@pytest.mark.parametrize(
    "alias",
    [
        "champion",
        "Champion",
        "PROD",
        "production",
        "\uff43\uff48\uff41\uff4d\uff50\uff49\uff4f\uff4e",  # full-width
        "\u0441hampion",  # Cyrillic c
        "C\u0397\u0391\u039c\u03a1\u0399\u039f\u039d",  # Greek capitals
        "\u0440r\u043ed",  # Cyrillic p and o
        "champio\u0578",  # Armenian n
        "ch\u00e1mpion",  # accented
        "cha\u0301mpion",
        "champ\u200bion",  # zero-width space
        "champ\u00adion",  # soft hyphen
        "\U0001d41c\U0001d421\U0001d41a\U0001d426\U0001d429\U0001d422\U0001d428\U0001d427",  # mathematical bold
        "\u1d04\u029c\u1d00\u1d0d\u1d18\u026a\u1d0f\u0274",  # small capitals
        "champ\u0131on",  # dotless i
        "pr\u03bfd",  # Greek omicron
        "\u13e2\u13a1\u041e\u13a0",  # Cherokee and Cyrillic
        "pr\u00f8d",
        "\u24d2hampion",  # circled c
        "champion\n",  # MLflow's own pattern lets one line end through
        "ch\u1d2bmpion",  # a letter that no table knows
        "champ\u044en",  # Cyrillic yu: a stroke and a circle
        "pr\u3007d",
    ],
)
def test_an_alias_is_guarded_in_whatever_letters_it_is_written(alias: str) -> None:
    assert guarded_alias(BUILT_IN, alias)


@pytest.mark.parametrize(
    "alias", ["challenger", "champions", "pre-prod", "pr0d", "staging", "", "pr\u00f6be", "продукт"]
)
def test_other_aliases_are_free(alias: str) -> None:
    assert not guarded_alias(BUILT_IN, alias)


@pytest.mark.parametrize(
    ("name", "guarded"),
    [
        ("prod-credit", True),
        ("Prod-credit", True),
        ("\u0440rod-credit", True),
        ("prod", False),
        ("prod-a\nb", True),
        ("\u04cfive", True),  # Cyrillic palochka, which may be an i or an l
        ("az", True),
        ("xz", False),
        ("\u0445z", True),  # merely looks like an x: the glob for "not x" still guards it
        ("credit", True),  # looks like the guarded name with its accent
        ("model.v3", True),
        ("model.vl", False),
    ],
)
def test_names_are_matched_by_glob(name: str, guarded: bool) -> None:
    assert guarded_name(NAMES, name) is guarded


@pytest.mark.parametrize(("letter", "lookalike"), LOOKALIKES)
def test_every_look_alike_is_a_foreign_letter_and_reads_as_the_latin_one(letter: str, lookalike: str) -> None:
    assert not lookalike.isascii()
    assert unicodedata.category(lookalike)[0] in "LNS"
    assert plain_letters(lookalike) == plain_letters(letter.lower())


def test_no_look_alike_stands_for_two_letters() -> None:
    assert len({lookalike for _, lookalike in LOOKALIKES}) == len(LOOKALIKES)


@given(st.text(max_size=20))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert plain_letters(plain_letters(text)) == plain_letters(text)


@given(st.sampled_from(["champion", "production", "prod"]), st.data())
def test_no_swap_of_look_alikes_unguards_an_alias(word: str, data: st.DataObject) -> None:
    rows = {letter: letter + letter.upper() + _CAPITALS[letter.upper()] + _SMALLS[letter] for letter in word}
    written = "".join(data.draw(st.sampled_from(rows[letter])) for letter in word)
    assert guarded_alias(BUILT_IN, written)


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_ascii_stands_only_for_itself_in_any_case_and_between_blanks(alias: str) -> None:
    shown = "".join(one for one in alias.lower() if one.isprintable() and one != " ")
    assert guarded_alias(BUILT_IN, alias) == (shown in BUILT_IN.guard.aliases)
    assert folded(alias) == alias.lower()


NARROW = st.characters(exclude_categories=["Cs"]).filter(
    lambda one: not one.isascii() and unicodedata.east_asian_width(one) not in "WF"
)
SHOWS_NOTHING = st.sampled_from(
    [
        *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u061c", "\u115f", "\u1160", "\u17b4"),
        *("\u180e", "\u2064", "\u2065", "\u2800", "\u3164", "\uffa0", "\ufe0f", "\U000e0061", "\U000e0101", "\u202e"),
        *("\u0301", "\u0338", "\u20dd", " ", "\t", "\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x00"),
    ]
)


@given(st.sampled_from(["champion", "production", "prod"]), NARROW, st.data())
def test_a_foreign_character_in_place_of_any_letter_unguards_no_alias_that_still_looks_the_same(
    word: str, foreign: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    read = plain_letters(foreign)
    if len(read) == 1 and (not read.isascii() or read == plain_letters(word[at])):
        assert guarded_alias(BUILT_IN, word[:at] + foreign + word[at + 1 :])


@given(st.sampled_from(["champion", "production", "prod"]), st.lists(SHOWS_NOTHING, min_size=1, max_size=4), st.data())
def test_what_shows_nothing_unguards_no_alias_wherever_it_stands(
    word: str, unseen: list[str], data: st.DataObject
) -> None:
    for one in unseen:
        at = data.draw(st.integers(0, len(word)))
        word = word[:at] + one + word[at:]
    assert guarded_alias(BUILT_IN, word)


DIGITS = [chr(point) for point in range(0x80, 0x110000) if unicodedata.category(chr(point)) == "Nd"]
DASHES = [chr(point) for point in range(0x80, 0x110000) if unicodedata.category(chr(point)) == "Pd"]


@pytest.mark.parametrize("dash", [*DASHES, "\u2212", "\u02d7", "\u2043", "\uff70", "\u30fc", "\u4e00"])
def test_a_dash_of_any_kind_unguards_no_name(dash: str) -> None:
    assert guarded_name(NAMES, f"prod{dash}credit")


HALF_WIDTH = [chr(point) for point in range(0x80, 0x110000) if unicodedata.east_asian_width(chr(point)) == "H"]


@pytest.mark.parametrize("narrow", HALF_WIDTH)
def test_a_half_width_character_unguards_no_name_though_its_wide_form_would(narrow: str) -> None:
    shown = plain_letters(narrow) != ""
    assert guarded_alias(BUILT_IN, f"pr{narrow}d" if shown else f"pro{narrow}d")


@pytest.mark.parametrize(("plain", "wide"), [(plain, wide) for plain, row in _WIDE_ROWS.items() for wide in row])
def test_a_wide_circle_stroke_or_dash_unguards_no_name(plain: str, wide: str) -> None:
    written = {"o": f"pr{wide}d-x", "l": f"{wide}ive", "-": f"prod{wide}x"}[plain]
    assert guarded_name(NAMES, written)


@pytest.mark.parametrize(
    "alias",
    [
        *("staging-candidate", "champion-v2", "champion2", "production-eu", "prodigy", "candidate"),
        *(
            "\u672c\u756a",
            "\u5019\u88dc",
            "\u30c1\u30e3\u30f3\u30d4\u30aa\u30f3",
            "\u30e2\u30c7\u30eb\u30fc",
        ),  # Japanese
        *("\u0442\u0435\u0441\u0442", "gr\u00f6\u00dfe", "\u00e9t\u00e9-2", "\U0001f3c6", "v2\u2013test"),
    ],
)
def test_an_innocent_alias_is_free(alias: str) -> None:
    assert not guarded_alias(BUILT_IN, alias)


def test_a_digit_of_any_script_unguards_no_name_and_no_alias() -> None:
    free = [digit for digit in DIGITS if not guarded_name(NAMES, f"model.v{digit}")]
    assert free == []
    zeros = [digit for digit in DIGITS if unicodedata.digit(digit) == 0]
    assert [zero for zero in zeros if not guarded_alias(BUILT_IN, f"pr{zero}d")] == []


@pytest.mark.parametrize("name", ["m\u03bfdel.v3", "m\u03bfdel.v1", "m\u03bfdel.v0"])
def test_a_look_alike_unguards_no_name_whose_glob_holds_a_range(name: str) -> None:
    assert guarded_name(NAMES, name)


SAID = st.text(max_size=12)


@given(SAID, SAID)
def test_every_name_is_guarded_by_a_glob_that_is_its_own_text(name: str, glob: str) -> None:
    escaped = "".join(f"[{one}]" if one in "*?[" else one for one in name)
    policy = BUILT_IN.model_copy(update={"guard": Guard.model_construct(registered_models=(escaped, glob))})
    assert guarded_name(policy, name)
