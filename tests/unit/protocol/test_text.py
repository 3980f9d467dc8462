"""Others' words made printable, and names that can be taken for each other."""

import json
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from protocol.messages.http import DatasetName, PartyName
from protocol.plan.plan import Name
from protocol.text import alike, checked_name, printable, printable_json, printable_lines

HOSTILE = "\x1b]0;owned\x07\x1b[2K\rverified\x9b31m\u202egnp.exe\u200b\u2066\x7f\u2028\ud800\U000e0041\x00"


def test_whatever_a_terminal_would_obey_is_written_out() -> None:
    assert printable(HOSTILE) == (
        r"\u001b]0;owned\u0007\u001b[2K\u000dverified\u009b31m\u202egnp.exe\u200b\u2066\u007f\u2028\ud800\udb40\udc41"
        r"\u0000"
    )


def test_every_character_that_is_not_seen_is_written_out_and_every_other_stays() -> None:
    unseen = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    wrong = [one for one in map(chr, range(0x110000)) if (printable(one) != one) != (category(one) in unseen)]
    assert wrong == []


@pytest.mark.parametrize("text", ["", "Süd Klinik", "مستشفى القدس", "東京　病院", "ε ≤ 1 █░ ✓", "e\u0301", "🏥"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_printable_and_reads_back_as_the_same(value: object) -> None:
    text = printable_json(value, indent=1)
    assert json.loads(text) == value
    assert printable(text, keep="\n") == text


def test_further_lines_of_a_complaint_do_not_pass_for_lines_of_the_program() -> None:
    found = printable_lines("no such run\nverified: all is well\x1b[8m")
    assert found == "no such run\n  verified: all is well\\u001b[8m"


@pytest.mark.parametrize("kind", [Name, PartyName, DatasetName])
@pytest.mark.parametrize(
    "hidden", ["\x1b", "\n", "\x85", "\u200b", "\u200c", "\u200d", "\u202e", "\u2066", "\ufeff", "\xad"]
)
def test_names_hold_nothing_that_is_not_seen(kind: object, hidden: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(f"No{hidden}rd")
    with pytest.raises(ValueError, match="no control characters and no invisible ones"):
        checked_name(f"No{hidden}rd")
    assert TypeAdapter(kind).validate_python("Nord") == "Nord"


@pytest.mark.parametrize(
    "other",
    ["Nоrd", "NΟRD", "N0rd", "nord", "Nörd", "No\u0308rd", "N-o.r d", "Ｎｏｒｄ", "N\u200bord"],
)
def test_names_that_can_be_taken_for_another(other: str) -> None:
    assert alike("Nord", ["Süd", other, "Nord"]) == [other]
    assert alike(other, ["Nord", "West"]) == ["Nord"]


def test_more_letters_that_pass_for_others() -> None:
    assert alike("hospital-1", ["hospital-l", "hospitaI-1", "hospital-11", "hospital-2"]) == [
        "hospital-l",
        "hospitaI-1",
    ]
    assert alike("modern", ["modem"]) == ["modem"]
    assert alike("СОРТ", ["COPT"]) == ["COPT"]
    assert alike("ward-6", ["ward-8", "ward-9", "ward-3"]) == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("gut", "ɡut"),  # the letters of phonetics
        ("hospital-1", "ʜospital-1"),
        ("hospital-1", "hᴏspital-1"),
        ("Nord", "Nɵrd"),
        ("alfa", "ɑlfɑ"),
        ("hospital", "hospɩtal"),
        ("hospital", "ɦospiʈaɫ"),
        ("Odra", "Ødrα"),
        ("east", "ɛast"),
        ("hospital", "🅷ospital"),
        ("ward-5", "ward-S"),
        ("ward-2", "ward-z"),
        ("ward-8", "ward-B"),
        ("cloud", "doud"),
        ("Medical", "Medicaǀ"),
    ],
)
def test_letters_of_phonetics_digits_and_pairs_pass_for_others(name: str, other: str) -> None:
    assert alike(other, [name, "West"]) == [name]
    assert alike(name, [other, "West"]) == [other]
    assert alike("किला", ["कला"]) == []  # vowels of Indic scripts are marks, and tell names apart
