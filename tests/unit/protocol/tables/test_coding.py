import tracemalloc
from collections import Counter

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.errors import DataError, OperatorError
from protocol.tables import batches
from protocol.tables.batches import batched
from protocol.tables.coding import Coder, Problem, gather, labels
from protocol.tables.kinds.slopes import uniform_below
from protocol.tables.schema import Schema

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 17, "max": 90, "bins": 16},
            {"name": "bmi", "kind": "real", "min": 10, "max": 70, "bins": 3, "missing": ["NA", "?"]},
            {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
            {"name": "work", "kind": "categorical", "values": ["State", "Firm"], "missing": ["", "?"]},
        ]
    }
)
ROW = ["39", "21.5", "Male", "Firm"]
ADVICE = "; correct the table or the schema, or set out_of_range for this column."


def coded(*rows, **settings):
    return [column.tolist() for column in Coder(SCHEMA, source="hospital.csv", **settings).code(rows)]


def with_field(index, text):
    return [*ROW[:index], text, *ROW[index + 1 :]]


def refusal(*rows, **settings):
    with pytest.raises(DataError) as caught:
        coded(*rows, **settings)
    return str(caught.value)


def test_rows_become_columns_of_codes():
    assert coded(ROW, ["17", "NA", "Female", ""], ["90.0", "70", "Male", "?"]) == [
        [4, 0, 15],
        [0, 3, 2],
        [1, 0, 1],
        [1, 2, 2],
    ]


def test_a_table_without_rows_has_empty_columns():
    assert coded() == [[], [], [], []]


@pytest.mark.parametrize(
    ("text", "code"),
    [("10", 0), ("29.999999999999999999999999", 0), ("30", 1), ("3e1", 1), ("+30.0", 1), ("50", 2), ("70.", 2)],
)
def test_a_number_at_an_edge_is_put_into_its_bin_exactly(text, code):
    assert coded(with_field(1, text))[1] == [code]


@pytest.mark.parametrize("text", ["70.00000000000000000000000001", "1e300", "1e999"])
def test_a_number_just_or_far_above_is_above(text):
    assert refusal(with_field(1, text)) == 'hospital.csv, row 1, column "bmi": a number above the largest' + ADVICE


@pytest.mark.parametrize("text", ["9.99999999999999999999999999", "-1e300", "-1e999"])
def test_a_number_just_or_far_below_is_below(text):
    assert refusal(with_field(1, text)) == 'hospital.csv, row 1, column "bmi": a number below the smallest' + ADVICE


@pytest.mark.parametrize(
    ("index", "text", "what"),
    [
        (0, "91", "a number above the largest"),
        (0, "16", "a number below the smallest"),
        (0, "39.5", "a fraction where a whole number is expected"),
        (0, "forty", "text where a number is expected"),
        (0, "nan", "text where a number is expected"),
        (0, "4_0", "text where a number is expected"),
        (0, " 40", "text where a number is expected"),
        (0, "9" * 500, "text where a number is expected"),
        (0, "", "an empty field, which the schema does not list as missing"),
        (1, "", "an empty field, which the schema does not list as missing"),
        (2, "", "an empty field, which the schema does not list as missing"),
        (2, "male", "a category that the schema does not list"),
        (3, "Firm ", "a category that the schema does not list"),
    ],
)
def test_a_bad_value_is_named_by_place_and_class(index, text, what):
    column = SCHEMA.names[index]
    assert refusal(ROW, with_field(index, text)) == f'hospital.csv, row 2, column "{column}": {what}{ADVICE}'


def test_a_refusal_shows_no_value_of_the_table():
    secret = [["81", "66.25", "Female", "State"], ["82", "67.25", "Divers", "Firm"], ["83", "68.25", "Male", "State"]]
    sentence = refusal(*secret)
    assert not [text for row in secret for text in row if text in sentence]


def test_the_first_bad_row_is_named_then_the_first_column():
    rows = [ROW, with_field(3, "x"), with_field(0, "x"), ROW[:3]]
    assert refusal(*rows).startswith('hospital.csv, row 2, column "work"')
    assert refusal([*ROW[:2], "x", "x"]).startswith('hospital.csv, row 1, column "sex"')


@pytest.mark.parametrize("row", [ROW[:3], [*ROW, "more"], []])
def test_a_row_of_another_width_is_refused(row):
    assert refusal(ROW, row, with_field(0, "x")) == (
        f"hospital.csv, row 2: the wrong number of fields, {len(row)} instead of 4; correct the row."
    )


def test_rows_are_counted_across_batches(monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 3)
    assert coded(*[ROW] * 8)[2] == [1] * 8
    assert "row 8," in refusal(*[ROW] * 7, with_field(2, "x"))
    coder = Coder(SCHEMA)
    with pytest.raises(DataError, match=r"^the table, row 1007, column"):
        coder.code([*[ROW] * 7, with_field(2, "x")], first_row=1000)


def test_clamp_moves_numbers_and_nothing_else():
    assert coded(with_field(0, "200"), with_field(0, "-3"), with_field(1, "1e9"), out_of_range="clamp")[:2] == [
        [15, 0, 4],
        [0, 0, 2],
    ]
    assert "text where a number" in refusal(with_field(0, "old"), out_of_range="clamp")
    assert "a category" in refusal(with_field(2, "x"), out_of_range="clamp")


def test_missing_takes_whatever_does_not_fit():
    rows = [with_field(1, text) for text in ("1e9", "-1", "tall", "")] + [with_field(3, "x")] * 2
    assert coded(*rows, out_of_range="missing")[1] == [3, 3, 3, 3, 0, 0]
    assert coded(*rows, out_of_range="missing")[3] == [1, 1, 1, 1, 2, 2]
    assert "a category" in refusal(with_field(2, "x"), out_of_range="missing")


def test_a_rule_for_one_column_leaves_the_others():
    rules = {"bmi": "missing", "age": "clamp"}
    assert coded(["200", "x", "Male", "Firm"], out_of_range=rules)[:2] == [[15], [3]]
    assert 'column "work"' in refusal(with_field(3, "x"), out_of_range=rules)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"sex": "clamp"}, 'The rule clamp for "sex" needs numbers or dates; choose another rule.'),
        ({"age": "missing"}, 'The rule missing for "age" needs a missing token in the schema; choose another rule.'),
        ({"agee": "clamp"}, 'The schema has no attribute "agee", for which a rule is given; correct the name.'),
    ],
)
def test_a_rule_that_cannot_work_is_refused(rules, sentence):
    with pytest.raises(OperatorError) as caught:
        Coder(SCHEMA, rules)
    assert str(caught.value) == sentence


def test_the_header_gives_the_order_and_other_columns_are_ignored():
    coder = Coder(SCHEMA)
    coder.columns(["work", "note", "sex", "bmi", "age", "note"])
    assert [c.tolist() for c in coder.code([["Firm", "a", "Male", "21.5", "39", "b"]])] == [[4], [0], [1], [1]]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (["age", "work"], 'hospital.csv: the header lacks "bmi", "sex"; add the column or correct its name.'),
        (["age", "bmi", "sex", "work", "sex"], 'hospital.csv: the header names "sex" twice; keep one of the columns.'),
    ],
)
def test_a_header_that_does_not_fit_is_refused(header, sentence):
    with pytest.raises(DataError) as caught:
        Coder(SCHEMA, source="hospital.csv").columns(header)
    assert str(caught.value) == sentence


def test_problems_are_counted_by_column_and_class_before_any_rule(monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 2)
    rows = [with_field(0, "200"), with_field(0, "x"), ROW, with_field(0, "300"), with_field(2, ""), ROW[:2], []]
    assert Coder(SCHEMA, "clamp").problems(batched(rows, 4)) == [
        Problem(None, "the wrong number of fields", 2),
        Problem("age", "text where a number is expected", 1),
        Problem("age", "a number above the largest", 2),
        Problem("sex", "an empty field, which the schema does not list as missing", 1),
    ]
    assert Coder(SCHEMA).problems(batched([ROW], 4)) == []


def test_more_texts_than_are_remembered_are_still_coded():
    schema = Schema.parse({"attributes": [{"name": "x", "kind": "integer", "min": 0, "max": 99_999, "bins": 10}]})
    numbers = np.arange(99_999, -1, -1)
    [codes] = Coder(schema).code([(str(number),) for number in numbers])
    assert (codes == numbers // 10_000).all()


def test_a_long_table_takes_one_byte_per_value():
    schema = Schema.parse({"attributes": [{"name": n, "kind": "ordinal", "values": ["0", "1"]} for n in "abcd"]})
    count = 1_000_000
    batches = ([np.ones(100_000, np.uint8)] * 4 for _ in range(count // 100_000))
    tracemalloc.start()
    columns = gather(schema, ([part.copy() for part in batch] for batch in batches))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(column.nbytes == count and column.all() for column in columns)
    assert peak < 5.5 * count  # four columns, one copy of one of them


def test_labels_of_categories_and_missing():
    codes = [np.array([0, 15]), np.array([3, 0]), np.array([0, 1]), np.array([2, 1])]
    age, bmi, sex, work = map(list, labels(SCHEMA, codes, Stream.keyed(b"test")))
    assert 17 <= int(age[0]) <= 21
    assert 87 <= int(age[1]) <= 90
    assert bmi[0] == "NA"
    assert 10 <= float(bmi[1]) < 30
    assert (sex, work) == (["Female", "Male"], ["", "Firm"])


def test_a_real_label_has_six_digits_inside_the_bin():
    _, [bmi], _, _ = labels(SCHEMA, [np.array([0])] * 4, Stream.keyed(b"test"))
    assert len(bmi.partition(".")[2]) == 5  # the bin is 20 wide


def test_numbers_are_drawn_uniformly_inside_the_bin():
    schema = Schema.parse({"attributes": [{"name": "x", "kind": "integer", "min": -3, "max": 2, "bins": 2}]})
    [texts] = labels(schema, [np.repeat(np.array([0, 1], np.uint8), 30_000)], Stream.keyed(b"uniform"))
    counts = Counter(texts)
    assert sorted(counts, key=int) == ["-3", "-2", "-1", "0", "1", "2"]
    assert all(abs(count - 10_000) < 500 for count in counts.values())  # six standard deviations


def test_bounds_that_do_not_divide_the_word_have_no_bias():
    # 2^64 words on 3 * 2^62 numbers: taken modulo the bound, half of the draws would fall into the lowest third.
    bounds = np.full(20_000, 3 << 62, np.uint64)
    drawn = uniform_below(bounds, Stream.keyed(b"wide"))
    assert (drawn < bounds).all()
    assert abs((drawn < 1 << 62).mean() - 1 / 3) < 0.02  # six standard deviations


def test_the_widest_range_can_be_drawn():
    schema = Schema.parse(
        {"attributes": [{"name": "x", "kind": "integer", "min": -(10**18), "max": 10**18, "bins": 1}]}
    )
    [texts] = labels(schema, [np.zeros(100, np.uint8)], Stream.keyed(b"wide"))
    assert Coder(schema).code(zip(texts, strict=True))[0].tolist() == [0] * 100
    assert {text[0] == "-" for text in texts} == {True, False}
