import json
from fractions import Fraction
from pathlib import Path
from time import process_time

import pytest

from protocol.errors import SchemaError
from protocol.tables.attributes import Categorical, Integer, Real
from protocol.tables.schema import Schema

VECTORS = Path(__file__).parents[3] / "vectors" / "schema"
GOOD = json.loads((VECTORS / "good.json").read_text("utf-8"))
BROKEN = json.loads((VECTORS / "broken.json").read_text("utf-8"))


def about(vector):
    return vector["about"]


@pytest.mark.parametrize("vector", GOOD, ids=about)
def test_a_good_schema_has_the_expected_sizes_spelling_and_hash(vector):
    schema = Schema.parse(vector["text"])
    assert list(schema.sizes) == vector["sizes"]
    assert schema.to_json() == vector["canonical"]
    assert schema.hash == vector["hash"]


@pytest.mark.parametrize("vector", GOOD, ids=about)
def test_the_canonical_spelling_is_the_same_schema(vector):
    schema = Schema.parse(vector["text"])
    assert Schema.parse(schema.to_json().encode()) == schema


@pytest.mark.parametrize("vector", BROKEN, ids=about)
def test_a_broken_schema_is_refused_with_its_sentence(vector):
    with pytest.raises(SchemaError) as caught:
        Schema.parse(vector["schema"] if "schema" in vector else vector["text"])
    assert str(caught.value) == vector["sentence"]


def test_every_problem_is_one_line():
    assert all(line.endswith(".") for vector in BROKEN for line in vector["sentence"].split("\n"))


def refusal(source):
    with pytest.raises(SchemaError) as caught:
        Schema.parse(source)
    return str(caught.value)


def test_bytes_that_are_no_text_are_refused():
    assert refusal(b'{"title": "\xff"}') == "Schema: this is not JSON that can be read: byte 11 is not UTF-8."


def test_a_byte_order_mark_is_accepted():
    assert Schema.parse(b"\xef\xbb\xbf" + GOOD[1]["text"].encode()).names == ("country",)


def test_nesting_that_is_too_deep_is_refused():
    assert refusal("[" * 100_000) == "Schema: this is not JSON that can be read: it is nested too deeply."


def test_half_a_surrogate_pair_is_refused_and_not_printed():
    text = '{"attributes": [{"name": "\\ud800", "kind": "ordinal", "values": ["1"]}]}'
    sentence = refusal(text)
    assert sentence == (
        'Schema, attribute number 1, field "name": must not contain control characters or half a character.'
    )
    text = '{"attributes": [{"name": "a", "kind": "categorical", "values": ["1"], "taxonomy": {"g": ["\\ud800"]}}]}'
    assert refusal(text).isascii()


def test_a_python_float_means_its_literal():
    attribute = {"name": "x", "kind": "real", "min": 0.1, "max": 0.3, "bins": 2}
    [parsed] = Schema.parse({"attributes": [attribute]}).attributes
    assert isinstance(parsed, Real)
    assert (parsed.lowest, parsed.cuts[1], parsed.highest) == (Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))


def test_an_infinite_python_float_is_refused():
    attribute = {"name": "x", "kind": "real", "min": 0.1, "max": float("inf"), "bins": 2}
    assert refusal({"attributes": [attribute]}) == 'Schema, attribute "x", field "max": must be a finite number.'


def test_integer_bins_split_the_integers_evenly():
    age = Integer(name="age", kind="integer", min=17, max=90, bins=16)
    first, counts = age.grid
    # 74 integers in 16 bins of width 4.625, worked out by hand.
    assert first == [17, 22, 27, 31, 36, 41, 45, 50, 54, 59, 64, 68, 73, 78, 82, 87]
    assert counts == [5, 5, 4, 5, 5, 4, 5, 4, 5, 5, 4, 5, 5, 4, 5, 4]


def test_an_integer_without_bins_has_one_category_per_value():
    children = Integer(name="children", kind="integer", min=-1, max=2)
    assert children.size == 4
    assert children.grid == ([-1, 0, 1, 2], [1, 1, 1, 1])


def test_the_last_real_bin_holds_max():
    x = Real(name="x", kind="real", min=0, max=1, bins=3)
    assert [x.bin(value) for value in (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1))] == [0, 1, 2, 2]
    first, counts = x.grid
    # Width 1/3: a million values take seven decimals.
    assert x.places == 7
    assert first == [0, 3_333_334, 6_666_667]
    assert counts == [3_333_334, 3_333_333, 3_333_334]


def test_taxonomy_paths_run_from_the_root():
    [work] = Schema.parse(GOOD[2]["text"]).attributes
    assert isinstance(work, Categorical)
    assert work.paths == {"a": ("y", "x"), "b": ("y", "w"), "c": ("z",)}


def test_the_hash_depends_on_the_order_of_values():
    def hashed(values):
        return Schema.parse({"attributes": [{"name": "x", "kind": "categorical", "values": values}]}).hash

    assert hashed(["a", "b"]) != hashed(["b", "a"])


def test_a_schema_cannot_be_changed():
    schema = Schema.parse(GOOD[1]["text"])
    with pytest.raises(ValueError, match="frozen"):
        schema.title = "other"


def test_codes_take_one_byte_up_to_256_categories():
    def code_type(largest):
        return Integer(name="x", kind="integer", min=1, max=largest).code_type(0).nbytes

    assert (code_type(256), code_type(257), code_type(65_536)) == (1, 2, 2)


# Bounds


SCALED = {"kind": "real", "min": 1, "max": 1000, "bins": 256, "scale": "log"}
LONG_WRITTEN = {"kind": "date", "edges": [str(year) for year in range(1000, 2500)]}


def attribute(name="x", **changes):
    return {"name": name, "kind": "categorical", "values": ["a", "b"]} | changes


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (
            {"title": "t" * 201, "attributes": [attribute()]},
            'Schema, field "title": has 201 characters, and at most 200',
        ),
        ({"attributes": [attribute("n" * 201)]}, 'field "name": has 201 characters, and at most 200 are possible'),
        (
            {"attributes": [attribute(values=["v" * 1001])]},
            'field "values", entry 1: has 1,001 characters, and at most',
        ),
        ({"attributes": [attribute(missing=["v" * 1001])]}, 'field "missing", entry 1: has 1,001 characters'),
        ({"attributes": [attribute(f"a{n}") for n in range(2001)]}, 'field "attributes": has more than 2,000 entries'),
        (
            {"attributes": [{"name": f"a{n}", "kind": "integer", "min": 1, "max": 65_536} for n in range(17)]},
            "the attributes have 1,114,112 categories together and at most 1,048,576 are possible; use fewer `bins`",
        ),
        (json.dumps({"attributes": [attribute()]}) + " " * (1 << 20), "characters, and at most 1,048,576 are read"),
        (
            {"attributes": [attribute() | {f"k{n}": 1 for n in range(100)}]},
            'attribute "x": has 103 fields, and at most',
        ),
        (
            {"attributes": [{**SCALED, "name": f"a{n}"} for n in range(257)]},
            "Schema: its scales have 65,792 bins together, and at most 65,536 are possible; ask for fewer.",
        ),
        ({"attributes": [LONG_WRITTEN | {"name": f"a{n}"} for n in range(90)]}, "Schema: written in full it has"),
    ],
    ids=[
        "title",
        "name",
        "value",
        "token",
        "attributes",
        "categories",
        "text",
        "fields",
        "scales",
        "long when written",
    ],
)
def test_a_schema_out_of_all_bounds_is_refused_with_the_bound(schema, sentence):
    assert sentence in refusal(schema)


def test_the_largest_schemas_are_taken():
    assert len(Schema.parse({"attributes": [attribute(f"a{n}") for n in range(2000)]}).names) == 2000
    whole = {"kind": "integer", "min": 1, "max": 65_536}
    assert sum(Schema.parse({"attributes": [{"name": f"a{n}", **whole} for n in range(16)]}).sizes) == 1 << 20


def test_a_refusal_never_repeats_a_megabyte():
    assert len(refusal({"attributes": [attribute() | {"k" * 1_000_000: 1}]})) < 600
    assert len(refusal({"attributes": [attribute(taxonomy={"g" * 1_000_000: ["a"]})]})) < 600
    assert len(refusal({"attributes": [attribute("n" * 1_000_000)]})) < 600


def test_a_list_full_of_mistakes_takes_no_time():
    began = process_time()
    assert "entry 1: must be a text in quotes" in refusal({"attributes": [attribute(values=list(range(500_000)))]})
    many = {"attributes": [attribute(labels=dict.fromkeys(map(str, range(500_000)), 1))]}
    assert 'the label of "0" must be a text in quotes' in refusal(many)
    assert process_time() - began < 2  # four times what it takes with coverage


def test_the_most_edges_of_scales_take_little_time():
    began = process_time()
    assert sum(Schema.parse({"attributes": [SCALED | {"name": f"a{n}"} for n in range(256)]}).sizes) == 1 << 16
    assert process_time() - began < 10  # four times what it takes with coverage


# Problems


def test_all_problems_are_told_at_once():
    mark = "to be justified from public knowledge"
    attributes = [
        {"name": "age", "kind": "integer", "min": 9, "max": 0, "unti": "years"},
        {"name": "sex", "kind": "categorical", "values": ["F", "F"], "missing": ["?", "?"], "labels": {"X": "x"}},
        {"name": "age", "kind": "real", "min": 0},
        {"name": "bmi", "kind": "real", "min": {mark: 12.3}, "max": 10, "bins": 0},
        3,
    ]
    with pytest.raises(SchemaError) as caught:
        Schema.parse({"attributes": attributes, "titel": "x"})
    assert (
        list(caught.value.problems)
        == str(caught.value).split("\n")
        == [
            'Schema, field "titel": is not known here; remove it or correct its spelling.',
            'Schema, field "attributes": the name "age" is given to two attributes; rename one.',
            'Schema, attribute "age", field "unti": is not known here; remove it or correct its spelling.',
            'Schema, attribute "age", field "min": 9 is above max 0; write the smaller one as min.',
            'Schema, attribute "sex", field "values": the value "F" is listed twice; list it once.',
            'Schema, attribute "sex", field "missing": the token "?" is listed twice; list it once.',
            'Schema, attribute "sex", field "labels": "X" is not one of the values; correct it or add it to `values`.',
            'Schema, attribute "age", field "bins": is missing; add it.',
            'Schema, attribute "age", field "max": is missing; add it.',
            f'Schema, attribute "bmi", field "min": is {mark}; replace the mark by what is known without a look at '
            "any row.",
            'Schema, attribute "bmi", field "bins": must be at least 1.',
            "Schema, attribute number 5: must be an object.",
        ]
    )


def test_more_problems_than_anybody_reads_are_counted():
    attributes = [{"name": f"a{number}", "kind": "text"} for number in range(150)]
    with pytest.raises(SchemaError) as caught:
        Schema.parse({"attributes": attributes})
    assert len(caught.value.problems) == 101
    assert caught.value.problems[-1] == "Schema: 50 more problems."


@pytest.mark.parametrize(
    "attribute",
    [
        {"kind": "real", "min": 0, "max": 10**15, "bins": 256, "scale": "log", "decimals": 2},
        {"kind": "real", "min": -(10**18), "max": 10**18, "bins": 65_536, "decimals": 0},
        {"kind": "datetime", "min": "2015", "max": "2021", "resolution": "hour"},
    ],
)
def test_work_for_an_attribute_does_not_grow_with_its_categories(attribute):
    """A schema comes from outside: a megabyte of it may not keep a party busy for long."""
    Schema.parse({"attributes": [{"name": "warm", **attribute}]})
    begun = process_time()
    Schema.parse({"attributes": [{"name": f"a{number}", **attribute} for number in range(15)]})
    assert process_time() - begun < 15 * 0.05  # ten times what it takes on a busy machine
