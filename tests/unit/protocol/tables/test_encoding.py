import numpy as np
import pytest

from protocol.errors import SchemaError
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema


def categorical(name, count, **more):
    return {"name": name, "kind": "categorical", "values": [f"v{i}" for i in range(count)], **more}


def encoding(name, *attributes):
    return Encoding.of(Schema.parse({"attributes": list(attributes)}), name)


def every_code(count):
    return np.arange(count, dtype=np.uint8 if count <= 256 else np.uint16)


FIVE = categorical("x", 5)
WORK = categorical(
    "work", 6, missing=["?"], taxonomy={"paid": {"state": ["v0", "v2"], "firm": ["v1", "v3"]}, "unpaid": ["v4"]}
)


def test_native_has_one_variable_per_attribute():
    native = encoding("native", FIVE, categorical("y", 2, missing=[""]))
    assert native.domain.sizes == (5, 3)
    assert native.domain.names((0, 1)) == ["x", "y"]
    assert [block.variables for block in native.blocks] == [(0,), (1,)]
    assert all(block.valid.all() for block in native.blocks)


def test_binary_puts_the_most_significant_bit_first():
    binary = encoding("binary", categorical("y", 2), FIVE)
    assert binary.domain.names(range(4)) == ["y:0", "x:2", "x:1", "x:0"]
    assert [block.variables for block in binary.blocks] == [(0,), (1, 2, 3)]
    columns = binary.encode([every_code(2)[[0] * 5], every_code(5)])
    assert [column.tolist() for column in columns[1:]] == [[0, 0, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 1, 0]]


def test_gray_neighbours_differ_in_one_bit():
    columns = encoding("gray", categorical("x", 8)).encode([every_code(8)])
    assert [column.tolist() for column in columns] == [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 1, 1, 1, 1, 0, 0],
        [0, 1, 1, 0, 0, 1, 1, 0],
    ]


def test_blocks_mark_what_decodes_to_no_value():
    [block] = encoding("binary", FIVE).blocks
    assert block.valid.tolist() == [[[True, True], [True, True]], [[True, False], [False, False]]]
    [block] = encoding("gray", FIVE).blocks
    assert block.valid.tolist() == [[[True, True], [True, True]], [[False, False], [True, False]]]


@pytest.mark.parametrize("name", ["binary", "gray"])
def test_a_single_category_has_one_bit_that_is_always_0(name):
    single = encoding(name, categorical("x", 1))
    assert single.domain.is_binary
    assert single.domain.names([0]) == ["x:0"]
    assert single.blocks[0].valid.tolist() == [True, False]
    assert single.encode([np.zeros(3, np.uint8)])[0].tolist() == [0, 0, 0]


def test_hierarchical_follows_the_taxonomy_from_fine_to_coarse():
    hierarchical = encoding("hierarchical", FIVE, WORK)
    assert hierarchical.domain.count == 2
    assert hierarchical.domain.names(range(4)) == ["x", "work", "work@1", "work@2"]
    # state 0, firm 1, v4 alone in "unpaid" 2, v5 in no group 3, missing 4; then paid 0, unpaid 1, v5 2, missing 3.
    assert hierarchical.domain.variables[2].groups == (0, 1, 0, 1, 2, 3, 4)
    assert hierarchical.domain.variables[3].groups == (0, 0, 0, 0, 1, 2, 3)
    assert hierarchical.domain.variants == ((0,), (1, 2, 3))
    assert [column.tolist() for column in hierarchical.encode([every_code(5), every_code(7)[:5]])] == [
        [0, 1, 2, 3, 4]
    ] * 2


def test_a_group_that_holds_everything_is_no_variant():
    assert encoding("hierarchical", categorical("x", 2, taxonomy={"all": ["v0", "v1"]})).domain.sizes == (2,)


def test_a_group_of_one_value_merges_nothing():
    assert encoding("hierarchical", categorical("x", 2, taxonomy={"g": ["v0"]})).domain.sizes == (2,)


def test_a_value_is_not_taken_for_a_group_of_its_name():
    attribute = categorical("x", 3, taxonomy={"v2": ["v0", "v1"]})
    assert encoding("hierarchical", attribute).domain.variables[1].groups == (0, 0, 1)


def test_ordered_attributes_merge_neighbours_and_keep_missing_apart():
    age = {"name": "age", "kind": "integer", "min": 0, "max": 4, "missing": [""]}
    grade = {"name": "grade", "kind": "ordinal", "values": ["a", "b", "c", "d"]}
    domain = encoding("hierarchical", age, grade).domain
    assert domain.names(range(6)) == ["age", "grade", "age@1", "age@2", "age@3", "grade@1"]
    assert domain.variables[2].groups == (0, 0, 1, 1, 2, 3)
    assert domain.variables[3].groups == (0, 0, 0, 0, 1, 2)
    assert domain.variables[4].groups == (0, 0, 0, 0, 0, 1)
    assert domain.variables[5].groups == (0, 0, 1, 1)


def test_variables_that_would_share_a_name_are_refused():
    grade = {"name": "x", "kind": "ordinal", "values": ["a", "b", "c", "d"]}
    with pytest.raises(SchemaError, match='Two variables of this encoding would both be called "x@1"; rename'):
        encoding("hierarchical", grade, categorical("x@1", 2))


@pytest.mark.parametrize("name", ["native", "binary", "gray", "hierarchical"])
def test_codes_outside_the_attribute_are_a_mistake(name):
    coded = encoding(name, FIVE)
    with pytest.raises(ValueError, match="outside the 5 categories"):
        coded.encode([np.array([5], np.uint8)])
    with pytest.raises(ValueError, match="decode to no value"):
        coded.decode([np.array([7 if coded.domain.count == 1 else 1], np.uint8)] * coded.domain.count)


def test_a_wrong_number_of_columns_is_a_mistake():
    with pytest.raises(ValueError, match="2 columns were given for 3 base variables"):
        encoding("binary", FIVE).decode([np.zeros(1, np.uint8)] * 2)


@pytest.mark.parametrize("name", ["native", "binary", "gray", "hierarchical"])
def test_a_table_without_rows(name):
    coded = encoding(name, FIVE, WORK)
    empty = [np.zeros(0, np.uint8)] * 2
    assert [column.size for column in coded.decode(coded.encode(empty))] == [0, 0]


@pytest.mark.parametrize("name", ["native", "binary", "gray", "hierarchical"])
@pytest.mark.parametrize("count", [1, 2, 3, 255, 256, 257, 1000])
def test_decode_is_the_inverse_of_encode_on_every_code(name, count):
    coded = encoding(name, categorical("x", count))
    codes = every_code(count)
    [decoded] = coded.decode(coded.encode([codes]))
    assert decoded.dtype == codes.dtype
    assert decoded.tolist() == codes.tolist()
