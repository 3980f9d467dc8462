"""What the rows of a table tell about its columns, and what a draft must not repeat of them."""

import json
from typing import Any

import pytest

from protocol.errors import SchemaError
from protocol.services.schema_draft import draft
from protocol.services.schema_profile import FEWEST_ROWS, Profile
from protocol.tables.batches import batched
from protocol.tables.schema import Schema

MARK = "to be justified from public knowledge"


def drafted(decimal: Any = ".", /, rows: int = 0, **columns: list[str]) -> dict[str, Any]:
    """The draft's attributes; every value is repeated until it may be shown."""
    texts = [values * (1 if rows else FEWEST_ROWS) for values in columns.values()]
    profile = Profile(list(columns), decimal).read(batched(zip(*texts, strict=True), len(columns)))
    return {one["name"]: one for one in json.loads(draft("t", profile.columns()))["attributes"]}


def only(*values: str, decimal: str = ".") -> dict[str, Any]:
    found = drafted(decimal, x=list(values))
    return {field: value for field, value in found["x"].items() if field != "name"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["3", "97", ""], {"kind": "integer", "min": {MARK: 0}, "max": {MARK: 100}, "bins": 20, "missing": [""]}),
        (["2", "9"], {"kind": "integer", "min": {MARK: 2}, "max": {MARK: 9}}),
        (
            ["1.25", "48.5", "NA", "refused"],
            {
                "kind": "real", "min": {MARK: 0}, "max": {MARK: 50}, "bins": 20, "decimals": 2,
                "missing": ["NA", "refused"],
            },
        ),
        (["-0.5", "0.25"], {"kind": "real", "min": {MARK: -0.5}, "max": {MARK: 0.3}, "bins": 20, "decimals": 2}),
        (["Yes", "No"], {"kind": "boolean", "true": ["Yes"], "false": ["No"]}),
        (["1", "0", "?"], {"kind": "boolean", "true": ["1"], "false": ["0"], "missing": ["?"]}),
        (["01", "02", "13"], {"kind": "categorical", "values": {MARK: ["01", "02", "13"]}}),
        (["b", "a"], {"kind": "categorical", "values": {MARK: ["a", "b"]}}),
        (
            ["[0-10)", "[10-20)", "[90-100)", "[5-9)", "[100-110)"],
            {"kind": "ordinal", "values": {MARK: ["[0-10)", "[5-9)", "[10-20)", "[90-100)", "[100-110)"]}},
        ),
        (
            ["31.12.2019", "05.02.2021", "unknown"],
            {
                "kind": "date", "min": {MARK: "2019"}, "max": {MARK: "2021"}, "resolution": "month",
                "format": "%d.%m.%Y", "missing": ["unknown"],
            },
        ),
        (["2019-12-31"], {"kind": "date", "min": {MARK: "2019"}, "max": {MARK: "2019"}, "resolution": "month"}),
        (
            ["20191231", "20200101"],
            {
                "kind": "date", "min": {MARK: "2019"}, "max": {MARK: "2020"}, "resolution": "month",
                "format": "%Y%m%d",
            },
        ),
        (["20191231", "20200199"], {"kind": "integer", "min": {MARK: 20191000}, "max": {MARK: 20201000}, "bins": 20}),
        (
            ["2019-12-31 23:59", "2020-01-01 00:00"],
            {
                "kind": "datetime", "min": {MARK: "2019"}, "max": {MARK: "2020"}, "resolution": "month",
                "format": "%Y-%m-%d %H:%M",
            },
        ),
    ],
)  # fmt: skip
def test_kinds_formats_and_missing_tokens_follow_from_the_values(values, expected):
    assert only(*values) == expected


def test_a_date_that_can_be_read_in_two_ways_is_asked_about():
    assert only("01/02/2020", "11/12/2020")["format"] == {MARK: "%d/%m/%Y"}
    assert only("01/02/2020", "13/12/2020")["format"] == "%d/%m/%Y"
    assert only("01/02/2020", "11/13/2020")["format"] == "%m/%d/%Y"


def test_a_decimal_comma_is_understood():
    found = only("1,5", "22,75", decimal=",")
    assert (found["kind"], found["decimals"], found["max"]) == ("real", 2, {MARK: 30})


def test_values_of_few_rows_are_not_shown_and_have_a_catch_all():
    column = ["common"] * FEWEST_ROWS + ["Hieronymus"] * (FEWEST_ROWS - 1)
    found = drafted(rows=1, diagnosis=column)["diagnosis"]
    assert found == {"name": "diagnosis", "kind": "categorical", "values": {MARK: ["common"]}, "other": "other"}


def test_columns_that_no_schema_should_hold_are_left_out():
    count = 600
    columns = {
        "patient_id": [str(number) for number in range(count)],
        "key": [f"k{number}x" for number in range(count)],
        "story": [
            "She came in the morning and was seen by three doctors",
            "He left again, and would not say why he had come at all",
        ]
        * 300,
        "nothing": [""] * count,
        "fine": ["a", "b"] * 300,
    }
    profile = Profile(list(columns), ".").read(batched(zip(*columns.values(), strict=True), len(columns)))
    found = {column.name: getattr(column, "why", "") for column in profile.columns()}
    assert found == {
        "patient_id": "its name and its many values are those of an identifier; it may be the person_key",
        "key": "its name and its many values are those of an identifier; it may be the person_key",
        "story": "it looks like free text, which cannot be counted",
        "nothing": "it holds nothing",
        "fine": "",
    }
    again = Profile(["label"], ".").read(batched(([f"v{number}"] for number in range(count)), 1))
    assert again.columns()[0].why == "it has nearly as many values as rows: an identifier, or free text"


def test_a_column_of_more_values_than_are_kept_is_left_out():
    rows = ([f"v{number % 30_000}"] for number in range(120_000))
    (column,) = Profile(["label"], ".").read(batched(rows, 1)).columns()
    assert column.why == "it has nearly as many values as rows: an identifier, or free text"


def test_nothing_of_a_draft_is_accepted_before_somebody_has_justified_it():
    columns = {"a": ["1", "5"], "b": ["x", "y"], "c": ["2019-01-01", "2020-01-01"], "d": ["yes", "no"]}
    attributes = drafted(**columns)
    with pytest.raises(SchemaError) as caught:
        Schema.parse({"attributes": list(attributes.values())})
    assert [problem.split(", ")[1:3] for problem in caught.value.problems] == [
        ['attribute "a"', f'field "min": is {MARK}; replace the mark by what is known without a look at any row.'],
        ['attribute "a"', f'field "max": is {MARK}; replace the mark by what is known without a look at any row.'],
        ['attribute "b"', f'field "values": is {MARK}; replace the mark by what is known without a look at any row.'],
        ['attribute "c"', f'field "min": is {MARK}; replace the mark by what is known without a look at any row.'],
        ['attribute "c"', f'field "max": is {MARK}; replace the mark by what is known without a look at any row.'],
    ]
