"""Whatever schema people agree on: its text, its codes and its variables lead back to where they came from."""

import json
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from protocol.tables.attributes import Numeric
from protocol.tables.batches import batched
from protocol.tables.coding import Coder, labels
from protocol.tables.encoding import Encoding
from protocol.tables.exact_json import fixed_point, is_number
from protocol.tables.fields import FieldReader
from protocol.tables.kinds.attribute import ABOVE, BELOW, EMPTY, NO_INTEGER, NO_NUMBER
from protocol.tables.kinds.formats import NO_MOMENT, Format
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema
from tests.support.effort import examples

modest = settings(deadline=None, max_examples=examples(60))

words = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=5)
encodings = st.sampled_from(["native", "binary", "gray", "hierarchical"])


@st.composite
def taxonomies(draw, leaves, depth=3):
    """Some of the leaves, dealt out to groups that are lists or taxonomies again."""
    groups = {}
    for name in draw(st.lists(words, max_size=3, unique=True)):
        own = [leaf for leaf in leaves if draw(st.booleans())]
        leaves = [leaf for leaf in leaves if leaf not in own]
        if own:
            groups[name] = (draw(taxonomies(own, depth - 1)) or own) if depth and draw(st.booleans()) else own
    return groups


@st.composite
def listed(draw):
    texts = draw(st.lists(words, min_size=1, max_size=12, unique=True))
    split = draw(st.integers(1, len(texts)))
    attribute = {"kind": "ordinal", "values": texts[:split], "missing": texts[split:]}
    if draw(st.booleans()):
        attribute |= {"kind": "categorical", "taxonomy": draw(taxonomies(texts[:split]))}
    return attribute


missing = st.lists(st.sampled_from(["", "?", "NA", "nan", "."]), max_size=3, unique=True)


@st.composite
def integers(draw):
    low = draw(st.integers(-(10**18), 10**18))
    high = draw(st.integers(low, min(low + 300, 10**18)) if draw(st.booleans()) else st.integers(low, 10**18))
    bins = draw(st.integers(1, min(high - low + 1, 300)))
    attribute = {"kind": "integer", "min": low, "max": high, "missing": draw(missing)}
    return attribute if high - low < 300 and draw(st.booleans()) else attribute | {"bins": bins}


@st.composite
def reals(draw):
    ends = st.decimals(-(10**6), 10**6, places=draw(st.integers(0, 18)))
    low, high = sorted(draw(st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1])))
    return {"kind": "real", "min": low, "max": high, "bins": draw(st.integers(1, 40)), "missing": draw(missing)}


@st.composite
def booleans(draw):
    texts = draw(st.lists(words, min_size=2, max_size=6, unique=True))
    first, second = sorted(draw(st.lists(st.integers(1, len(texts) - 1), min_size=2, max_size=2)))
    return {
        "kind": "boolean",
        "true": texts[:first],
        "false": texts[first : second + 1],
        "missing": texts[second + 1 :],
    }


@st.composite
def catch_alls(draw):
    texts = draw(st.lists(words.filter(bool), min_size=2, max_size=9, unique=True))
    attribute = {
        "kind": "categorical",
        "values": texts[1:],
        "other": texts[0],
        "missing": draw(st.sampled_from([[], [""]])),
    }
    return attribute | ({"taxonomy": {"prefix": [1, 2]}} if draw(st.booleans()) else {})


@st.composite
def divided(draw):
    """Numbers between edges of the schema's own, on a scale, or written with so many decimals."""
    places = draw(st.integers(0, 4))
    units = st.integers(0, 10**6).map(lambda number: Decimal(number).scaleb(-places))
    cuts = sorted(draw(st.sets(units, min_size=2, max_size=9)))
    kind = "real" if places else draw(st.sampled_from(["integer", "real"]))
    attribute = {"kind": kind, "missing": draw(missing)}
    if kind == "real" and draw(st.booleans()):
        attribute["decimals"] = places
    if draw(st.booleans()):
        return attribute | {"edges": cuts}
    scale = draw(st.sampled_from(["log", "sqrt"]))
    return attribute | {"min": cuts[0], "max": cuts[-1], "bins": draw(st.integers(1, 30)), "scale": scale}


@st.composite
def moments(draw):
    form, finest = draw(
        st.sampled_from(
            [
                ("%d.%m.%Y", "day"),
                ("%-m/%-d/%Y", "day"),
                ("%Y-%m", "month"),
                ("%Y", "year"),
                ("%d.%m.%Y %H:%M", "minute"),
            ]
        )
    )
    years = sorted(draw(st.lists(st.integers(1, 9999), min_size=2, max_size=2)))
    resolutions = ["year", "month", "week", "day", "hour"][: {"day": 4, "month": 2, "year": 1, "minute": 5}[finest]]
    resolution = draw(st.sampled_from(resolutions))
    most = {"year": 9999, "month": 4000, "week": 1000, "day": 150, "hour": 6}[resolution]
    low, high = f"{years[0]:04d}", f"{min(years[1], years[0] + most):04d}"
    kind = "datetime" if "%H" in form else "date"
    return {"kind": kind, "format": form, "min": low, "max": high, "resolution": resolution, "missing": draw(missing)}


@st.composite
def schemas(draw):
    kinds = listed() | integers() | reals() | booleans() | catch_alls() | divided() | moments()
    attributes = draw(st.lists(kinds, min_size=1, max_size=5))
    return Schema.parse({"attributes": [{"name": f"a{i}", **each} for i, each in enumerate(attributes)]})


@st.composite
def coded_tables(draw):
    """A schema and codes: every code of every attribute, in a few rounds."""
    schema = draw(schemas())
    rows = max(schema.sizes) + draw(st.integers(0, 5))
    codes = [(np.arange(rows) % attribute.size).astype(attribute.code_type) for attribute in schema.attributes]
    return schema, codes


@modest
@given(schemas())
def test_the_canonical_text_is_a_fixed_point(schema):
    again = Schema.parse(schema.to_json())
    assert again == schema
    assert again.to_json() == schema.to_json()
    assert again.hash == schema.hash
    json.loads(schema.to_json())


@modest
@given(coded_tables(), encodings)
def test_decoding_is_the_inverse_of_encoding(table, name):
    schema, codes = table
    encoding = Encoding.of(schema, name)
    decoded = encoding.decode(encoding.encode(codes))
    assert all(one.dtype == other.dtype and (one == other).all() for one, other in zip(codes, decoded, strict=True))


@modest
@given(coded_tables(), encodings)
def test_exactly_the_valid_combinations_occur(table, name):
    schema, codes = table
    encoding = Encoding.of(schema, name)
    columns = encoding.encode(codes)
    assert all(column.max() < encoding.domain.sizes[variable] for variable, column in enumerate(columns))
    for block in encoding.blocks:
        seen = np.zeros_like(block.valid)
        seen[tuple(columns[variable] for variable in block.variables)] = True
        assert (seen == block.valid).all()


@modest
@given(schemas())
def test_generalised_variants_nest_and_shrink(schema):
    domain = Encoding.of(schema, "hierarchical").domain
    assert len(set(domain.names(range(len(domain.sizes))))) == len(domain.sizes)
    for base, variants in enumerate(domain.variants):
        assert variants[0] == base
        sizes = domain.shape(variants)
        assert all(fine > coarse > 1 for fine, coarse in pairwise(sizes))
        finest = Table((base,), np.arange(1, sizes[0] + 1))
        for fine, coarse in pairwise(variants):
            by_steps = finest.project((fine,), domain).project((coarse,), domain)
            assert (by_steps.counts == finest.project((coarse,), domain).counts).all()
        for variant in variants[1:]:
            groups = domain.variables[variant].groups
            assert set(groups) == set(range(domain.sizes[variant]))
            if schema.attributes[base].missing:
                assert groups.count(groups[-1]) == 1


@modest
@given(coded_tables(), st.binary(max_size=8), st.randoms(use_true_random=False))
def test_labels_are_coded_back(table, seed, order):
    schema, codes = table
    header = [*schema.names, "other"]
    order.shuffle(header)
    columns = dict(zip(schema.names, labels(schema, codes, Stream.keyed(seed)), strict=True))
    columns["other"] = [""] * codes[0].size
    coder = Coder(schema)
    coder.columns(header)
    rows = list(zip(*(columns[name] for name in header), strict=True))
    assert coder.problems(batched(rows, len(header))) == []
    assert all((one == other).all() for one, other in zip(codes, coder.code(rows), strict=True))


@modest
@given(integers() | reals() | divided(), st.data())
def test_a_number_falls_into_the_bin_that_exact_arithmetic_says(attribute, data):
    schema = Schema.parse({"attributes": [{"name": "x", **attribute}]})
    [parsed] = schema.attributes
    assert isinstance(parsed, Numeric)
    first, counts = parsed.grid
    index = data.draw(st.integers(0, parsed.categories - 1))
    assert all(count >= 1 for count in counts)
    for units in (first[index], first[index] + counts[index] - 1):
        text = fixed_point(units, parsed.places)
        assert parsed.bin(Fraction(text)) == index
        assert Coder(schema).code([[text]])[0].tolist() == [index]
    assert parsed.cuts[index] <= Fraction(fixed_point(first[index], parsed.places))


numbers = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.integers(-3, 300).map(str),
    st.decimals(-(10**6), 10**6, allow_nan=False).map(str),
    st.floats(allow_nan=False).map(str),
    st.sampled_from(
        ["+5", "05", "5.", ".5", "1e2", "-0", "1e999", "9" * 300, "5\n6", "1_0", " 5", "5 ", "", "nan", "."]
    ),
)


def _code_by_exact_arithmetic(attribute, text):
    if not is_number(text):
        return NO_NUMBER if text else EMPTY
    value = Fraction(text)
    if attribute.kind == "integer" and value.denominator > 1:
        return NO_INTEGER
    if not attribute.lowest <= value <= attribute.highest:
        return ABOVE if value > attribute.highest else BELOW
    return attribute.bin(value)


@modest
@given(integers() | reals() | divided(), st.lists(numbers, max_size=12), st.data())
def test_numbers_are_coded_together_as_exact_arithmetic_says_of_each(attribute, texts, data):
    [parsed] = Schema.parse({"attributes": [{"name": "x", **attribute}]}).attributes
    whole = [
        fixed_point(int(cut * 10**20), 20) for cut in data.draw(st.lists(st.sampled_from(parsed.cuts), max_size=3))
    ]
    texts = [text for text in [*texts, *whole] if text not in parsed.spelled]
    found = FieldReader(parsed).codes(texts).tolist()
    assert found == [_code_by_exact_arithmetic(parsed, text) for text in texts]
    commas = [text.replace(".", ",") for text in texts]
    assert not {*commas}.isdisjoint(parsed.spelled) or FieldReader(parsed, ",").codes(commas).tolist() == found


FORMATS = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%Y",
    "%Y%m%d%H%M%S",
    "%Y-%m-%dT%H",
    "{%Y}%%%m",
    "%-d/%-m/%Y",
    "%Y年%m",
    "%H %Y-%m-%d",
]


@st.composite
def written_moments(draw, form):
    """A text of a moment, or one in which some signs were replaced."""
    text = list(form.write(draw(st.integers(-62_135_596_800, 253_402_300_799))))
    for place in draw(st.lists(st.integers(0, len(text) - 1), max_size=2)):
        text[place] = draw(st.sampled_from("0139 -ü٣"))
    return "".join(text)


@modest
@given(st.sampled_from(FORMATS).map(Format), st.data())
def test_moments_are_read_together_as_one_by_one(form, data):
    texts = data.draw(st.lists(written_moments(form) | st.sampled_from(["", "2019"]), max_size=8))
    for own in (texts, [text for text in texts if len(text) == len(form.write(0))]):
        expected = [form.read(text) for text in own]
        assert form.read_all(own).tolist() == [NO_MOMENT if found is None else found for found in expected]


@modest
@given(schemas(), st.lists(st.text(max_size=8), max_size=20))
def test_text_from_anywhere_is_coded_or_counted_and_never_breaks(schema, texts):
    rows = [[text] * len(schema.names) for text in texts]
    counted = sum(problem.count for problem in Coder(schema).problems(batched(rows, len(schema.names))))
    everything = {attribute.name: "missing" for attribute in schema.attributes if attribute.missing}
    if len(everything) == len(schema.names):
        assert [column.size for column in Coder(schema, everything).code(rows)] == [len(rows)] * len(schema.names)
    if not counted:
        assert all((c < a.size).all() for a, c in zip(schema.attributes, Coder(schema).code(rows), strict=True))
