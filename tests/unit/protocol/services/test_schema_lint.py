"""A lint tells all problems, or all doubts, and stays silent over sound schemas."""

import json
from typing import Any

import pytest

from curator.experiments.sample_data import SCHEMA
from protocol.services.schema_lint import lint
from tests.support.small_runs import CITIES, MIXED


def doubts(rows: int | None = None, **fields: Any) -> list[str]:
    found = lint(json.dumps({"attributes": [fields]}), rows)
    assert found.problems == ()
    return list(found.doubts)


def listed(name: str, values: list[str], **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "categorical", "values": values, **more}


def test_all_problems_are_told_at_once_and_no_doubt_beside_them() -> None:
    found = lint(json.dumps({"attributes": [listed("name", []), {"name": "b", "kind": "real"}]}))
    assert len(found.problems) == 4
    assert (found.doubts, found.schema) == ((), None)


@pytest.mark.parametrize("schema", [json.dumps(SCHEMA), MIXED.to_json(), CITIES.to_json()])
def test_a_sound_schema_raises_no_doubt(schema: str) -> None:
    found = lint(schema, 5000)
    assert (found.problems, found.doubts) == ((), ())
    assert found.schema is not None


IDENTIFIER = "its name is that of an identifier; leave it out"
PEOPLE = "its values look like names of people; a schema is public"
NAMED = "its name is that of a column with names of people"
TEXT = "it looks like free text, which cannot be counted"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (listed("patient_nbr", [f"p{number}" for number in range(300)]), IDENTIFIER),
        ({"name": "PatientID", "kind": "integer", "min": 1, "max": 99_999, "bins": 10}, IDENTIFIER),
        (listed("e-mail", [f"p{number}" for number in range(300)]), IDENTIFIER),
        (listed("x", ["Müller, Anna", "Smith, J.", "O'Neill, Pat"]), PEOPLE),
        (listed("x", ["Dr. House", "Dr. Who", "unknown"]), PEOPLE),
        (listed("attending_physician", ["A", "B", "C"]), NAMED),
        (listed("x", ["a@b.org", "c@d.com", "none"]), "its values look like addresses or telephone numbers"),
        (listed("notes", list("abcdef")), TEXT),
        (listed("x", [f"{letter} was seen and sent home without any further treatment" for letter in "abcdef"]), TEXT),
        (
            listed("code", [f"c{number}" for number in range(1001)]),
            "it has 1,001 categories, most of which noise will hide; list the common values and let `other` take",
        ),
        (
            {"name": "day", "kind": "date", "min": "2000", "max": "2020", "resolution": "day"},
            "it has 7,671 categories, most of which noise will hide; choose a coarser resolution",
        ),
        (listed("sex", ["Male", "male "]), 'its values "Male" and "male " differ in case or blanks only'),
        (listed("grade", list("12345")), "all its values are numbers"),
        (listed("age", ["[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)"]), "its values look like intervals"),
        (
            {"name": "date_of_birth", "kind": "date", "min": "1990", "max": "1991", "resolution": "day"},
            "days of birth single people out; choose a resolution of years, or an age",
        ),
        (
            {"name": "total_cost", "kind": "real", "min": 0, "max": 500_000, "bins": 50},
            "amounts of money crowd at the lower end",
        ),
    ],
)
def test_what_a_second_look_should_confirm(fields: dict[str, Any], what: str) -> None:
    found = doubts(**fields)
    assert len(found) == 1, found
    assert found[0].startswith(f"Schema, attribute {json.dumps(fields['name'])}: {what}")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "number_emergency", "kind": "integer", "min": 0, "max": 80, "bins": 9},
        {"name": "total_cost", "kind": "real", "min": 0, "max": 500_000, "bins": 50, "find": 12},
        {"name": "house number", "kind": "integer", "min": 0, "max": 80, "bins": 9},
        {"name": "total_cost", "kind": "real", "min": 1, "max": 500_000, "bins": 50, "scale": "log"},
        {"name": "born", "kind": "date", "min": "1920", "max": "2020", "resolution": "year"},
        listed("drug_name", ["yes", "no"]),
        listed("zip", ["10115", "20095", "80331", "50667", "60311"], taxonomy={"prefix": [1]}),
    ],
)
def test_what_is_usual_raises_no_doubt(fields: dict[str, Any]) -> None:
    assert doubts(**fields) == []


def test_the_number_of_rows_tells_which_categories_stay_empty() -> None:
    values = [f"c{number}" for number in range(300)]
    assert doubts(10_000, **listed("code", values)) == []
    (found,) = doubts(500, **listed("code", values))
    assert "it has 300 categories for 500 rows, so that most of them hold one row or none" in found


def test_pairs_with_more_cells_than_rows_are_named_the_largest_first() -> None:
    attributes = [
        listed(name, [f"{name}{n}" for n in range(size)]) for name, size in zip("abc", (40, 30, 20), strict=True)
    ]
    found = lint(json.dumps({"attributes": attributes}), 700)
    assert found.doubts == (
        "Schema: tables of some pairs have more cells than there are rows (700), so that noise will hide most of what "
        'they hold: "a" with "b" 1,200; "a" with "c" 800. Fewer or wider categories help.',
    )
