import pytest

from protocol.tables.schema import Schema
from protocol.tables.spreadsheets import as_text, formulas_in, is_formula


@pytest.mark.parametrize(
    "text", ["=1+1", '=HYPERLINK("http://x")', "+a", "-a", "@SUM(A1)", "\t=1", "\r", "-", "=", "--5"]
)
def test_a_formula_becomes_a_text(text):
    assert is_formula(text)
    assert as_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "-5", "+1.5e3", "-0.25", "5-6", "a=1", "'=1", "(+)"])
def test_a_text_and_a_number_stay_as_they_are(text):
    assert not is_formula(text)
    assert as_text(text) == text


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
