import csv
import io

import pytest

from curator.results.codebook import codebook_csv
from protocol.tables.schema import Schema
from protocol.tables.spreadsheets import as_text, formulas_in, is_formula


@pytest.mark.parametrize(
    "text", ["=1+1", '=HYPERLINK("http://x")', "+a", "-a", "@SUM(A1)", "-", "=", "--5", " =1", '"=1']
)
def test_a_formula_becomes_a_text(text):
    assert is_formula(text)
    assert as_text(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", "a", "-5", "+1.5e3", "-0.25", "5-6", "a=1", "'=1", "(+)", "a;b", "a;-5", "a\t(=1)", "a; '=1"]
)
def test_a_text_and_a_number_stay_as_they_are(text):
    assert not is_formula(text)
    assert as_text(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("b;=1+1", "b;'=1+1"),
        ("b\t@x;-y", "b\t'@x;'-y"),
        ('b; "=1+1"', 'b;\' "=1+1"'),
        ("two\n=lines", "two\n'=lines"),
        ("two\r\n+lines", "two\r\n'+lines"),
        ("\t=1", "\t'=1"),
        ("\r=1", "\r'=1"),
    ],
)
def test_a_cell_is_a_text_wherever_a_spreadsheet_splits_it(text, safe):
    assert is_formula(text)
    assert as_text(text) == safe
    assert not is_formula(safe)


def test_a_schema_tells_which_of_its_texts_are_like_formulas():
    schema = Schema.parse(
        {
            "attributes": [
                {"name": "=cmd", "kind": "categorical", "values": ["-", "+", "-1", "yes"], "missing": ["@", "-x"]},
                {"name": "age", "kind": "integer", "min": -5, "max": 9, "missing": ["-"]},
            ]
        }
    )
    assert formulas_in(schema) == ["=cmd", "@", "-", "+"]


def test_descriptions_units_and_labels_are_told_too():
    """They are cells of the codebook."""
    schema = Schema.parse(
        {
            "attributes": [
                {
                    "name": "sex",
                    "kind": "categorical",
                    "values": ["f", "m"],
                    "labels": {"f": "@female"},
                    "description": "=HYPERLINK(1)",
                },
                {"name": "age", "kind": "integer", "min": 0, "max": 9, "unit": "+years", "description": "a;=1+1"},
            ]
        }
    )
    told = formulas_in(schema)
    assert told == ["=HYPERLINK(1)", "@female", "a;=1+1", "+years"]
    cells = [cell for row in csv.reader(io.StringIO(codebook_csv(schema))) for cell in row]
    assert {cell for cell in cells if is_formula(cell)} == set(told)
