"""Two schemas beside each other: every difference shows, and every kind reads as words."""

import json

import pytest

from protocol.services.schema_words import editable, in_words, lines
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED


def changed(**changes: object) -> Schema:
    raw = json.loads(MIXED.to_json())["attributes"]
    raw[1] |= changes
    return Schema.parse({"attributes": [*raw[:4], {"name": "new", "kind": "categorical", "values": ["x"]}]})


def test_one_schema_is_the_same_everywhere() -> None:
    assert {line.how for line in lines(MIXED, MIXED)} == {"same"}


def test_what_differs_lacks_or_is_not_asked_is_said() -> None:
    found = {line.name: line for line in lines(changed(values=["low", "high"]), MIXED)}
    assert {name: line.how for name, line in found.items()} == {
        "work": "same",
        "grade": "different",
        "age": "same",
        "bmi": "same",
        "new": "not held",
        "ill": "not asked",
    }
    assert (found["grade"].asked, found["grade"].held) == ("in order: low, high", "in order: low, mid, high")
    assert (found["new"].held, found["ill"].asked) == ("", "")


def test_a_difference_that_words_do_not_tell_is_named() -> None:
    described = {line.name: line for line in lines(changed(description="d"), MIXED)}["grade"]
    assert described.asked == f"{described.held} (differs in description)"


def test_without_a_data_set_nothing_is_held() -> None:
    assert {line.how for line in lines(MIXED, None)} == {"not held"}


def test_attributes_in_words() -> None:
    words = [in_words(attribute) for attribute in MIXED.attributes]
    assert words == [
        "clerk, smith, baker, or missing",
        "in order: low, mid, high",
        "whole numbers from 0 to 39 in 4 bins",
        "numbers from 10 to 40 in 3 bins",
        "no, yes",
    ]


def test_long_lists_are_cut() -> None:
    many = Schema.parse({"attributes": [{"name": "a", "kind": "categorical", "values": [str(i) for i in range(1008)]}]})
    assert in_words(many.attributes[0]) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,000 more"


def test_a_text_to_edit_is_the_same_schema() -> None:
    text = editable(MIXED)
    assert Schema.parse(text) == MIXED
    assert len(text.splitlines()) == 1 + 1 + len(MIXED.names) + 1
    assert Schema.parse(editable(changed(values=["0"]))).title == ""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "boolean", "true": ["yes"], "false": ["no"], "missing": [""]}, "no, yes, or missing"),
        ({"kind": "categorical", "values": ["a", "b"], "other": "rest"}, "a, b, rest for all others"),
        ({"kind": "ordinal", "values": ["1", "2"], "labels": {"1": "mild"}}, "in order: 1 (mild), 2"),
        ({"kind": "integer", "min": 0, "max": 9}, "whole numbers from 0 to 9"),
        (
            {"kind": "integer", "min": 0, "max": 99, "bins": 50, "find": 8},
            "whole numbers from 0 to 99 in 50 bins, joined into 8 bins where a plan finds edges",
        ),
        (
            {"kind": "real", "min": 0, "max": 1000, "bins": 7, "scale": "sqrt", "unit": "euro"},
            "numbers from 0 to 1000 euro in 7 bins on a square-root scale",
        ),
        ({"kind": "real", "edges": [0, 1.5, 10]}, "numbers from 0 to 10, divided at 1.5"),
        ({"kind": "real", "edges": [0, 1]}, "numbers from 0 to 1"),
        (
            {"kind": "date", "min": "2019", "max": "2020-02", "resolution": "month", "format": "%d.%m.%Y"},
            "dates from 2019-01-01 to 2020-02-29 by months, written as %d.%m.%Y",
        ),
        (
            {"kind": "datetime", "edges": ["2019", "2020", "2020"]},
            "times from 2019-01-01T00:00:00 to 2020-12-31T23:59:59 by 2 parts, written as %Y-%m-%d %H:%M:%S",
        ),
    ],
)
def test_every_kind_in_words(fields: dict[str, object], words: str) -> None:
    [attribute] = Schema.parse({"attributes": [{"name": "x", **fields}]}).attributes
    assert in_words(attribute) == words
