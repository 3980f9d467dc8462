"""Reading JSON of others: exact or plain numbers, and limits that hold in linear time."""

import json
from decimal import Decimal
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from protocol.errors import SchemaError
from protocol.outside_json import DEEPEST, LONGEST_NUMBER, MOST_KEYS, MOST_PARTS, complaint, read_as, read_json
from protocol.tables.schema import Schema

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(json_values)
def test_within_the_limits_it_reads_what_the_standard_library_reads(value: Any) -> None:
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == value


def test_exact_numbers_keep_every_digit() -> None:
    text = '{"x": 0.1000000000000000055511151231257827, "n": -12}'
    assert read_json(text, exact=True) == {"x": Decimal("0.1000000000000000055511151231257827"), "n": -12}
    assert read_json(text) == {"x": 0.1, "n": -12}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1, 2", "Expecting ',' delimiter"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" is given twice in one object'),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "it is nested too deeply"),
        ('{"a":' * (DEEPEST + 1) + "0" + "}" * (DEEPEST + 1), "it is nested too deeply"),
        ("9" * (LONGEST_NUMBER + 1), "a number is written with 101 characters, at most 100 are read"),
        ("[0." + "1" * LONGEST_NUMBER + "]", "a number is written with 102 characters"),
        ("1e999", "exponent out of all proportion"),
        ("[NaN]", "NaN is not a number"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        ("[" + "0," * MOST_PARTS + "0]", "it has more than 2,097,152 parts"),
        ('{"a":0' + ',"b":0' * MOST_KEYS + "}", "it has more than 262,144 keys"),
    ],
)
def test_what_is_refused(text: str | bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_json(text)


def test_the_caller_says_how_much_is_read() -> None:
    assert read_json("[1, 2, 3]", largest=9) == [1, 2, 3]
    with pytest.raises(ValueError, match="it has 9 characters, and at most 8 are read"):
        read_json("[1, 2, 3]", largest=8)


def test_the_caller_says_how_many_keys_are_read_and_colons_in_texts_are_none() -> None:
    assert read_json('{"a": 1, "b\\":": "::::"}', most_keys=2) == {"a": 1, 'b":': "::::"}
    with pytest.raises(ValueError, match="it has more than 2 keys"):
        read_json('{"a": {"b": 1, "c": 2}}', most_keys=2)


def test_the_deepest_that_is_read_and_brackets_in_texts() -> None:
    deepest = "[" * DEEPEST + "]" * DEEPEST
    assert read_json(deepest) is not None
    strings = json.dumps(["[{" * 1000, '\\"[[[[', "]]"])
    assert read_json(strings) == json.loads(strings)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json('["\\"", ' + deepest + "]")


def test_typed_reading_has_the_same_limits() -> None:
    numbers = TypeAdapter(tuple[int, ...])
    assert read_as(numbers, b"[1,2]") == (1, 2)
    for text in ("[" * 1_000_000, "[" + "0," * MOST_PARTS + "0]", b'["\xff"]', b"[" + b"9" * 5000 + b"]", b"[1,"):
        with pytest.raises(ValueError):
            read_as(numbers, text)


def test_a_complaint_says_where_and_what_and_no_value() -> None:
    numbers = TypeAdapter(list[dict[str, int]])
    for text, said in (
        ("[1", "it: Invalid JSON"),
        ('[{"a":"secret"}]', "0.a: Input should"),
        ("[" * 65, "it: it is n"),
    ):
        with pytest.raises(ValueError) as caught:
            read_as(numbers, text)
        assert complaint(caught.value, "it").startswith(said)
        assert "secret" not in complaint(caught.value, "it")
    with pytest.raises(ValueError) as caught:
        read_as(numbers, "[" + "0," * 2000 + "0]")
    assert complaint(caught.value, "it") == "it: 2,001 mistakes"


def doubled_key(keys: int) -> str:
    return "{" + ",".join(f'"{number:x}":0' for number in range(keys)) + f',"{keys - 1:x}":1}}'


def seconds_for(keys: int) -> float:
    text = doubled_key(keys)
    began = process_time()
    with pytest.raises(SchemaError, match="is given twice"):
        Schema.parse(text)
    return process_time() - began


def test_a_key_given_twice_is_found_in_linear_time() -> None:
    """A document of a megabyte whose last key stands there twice took more than a minute of computing."""
    assert len(doubled_key(100_000)) < 1 << 20
    assert seconds_for(100_000) < 2


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 200_000,
        '"' + "\\" * 999_999,
        '["' + '\\"[' * 300_000,
        "[" + "1" * 1_000_000 + "]",
        "[" + "[]," * 300_000,
        "[" + '"[",' * 200_000 + "]" * 100_000,
    ],
    ids=["brackets", "objects", "backslashes", "escaped", "digits", "lists", "unopened"],
)
def test_a_megabyte_made_to_take_long_is_refused_at_once(text: str) -> None:
    began = process_time()
    with pytest.raises(ValueError):
        read_json(text)
    assert process_time() - began < 2
