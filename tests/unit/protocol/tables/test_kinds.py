"""Every kind of attribute: which text means which category, and which text is written for it."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.errors import DataError
from protocol.tables.attributes import Attribute
from protocol.tables.coding import Coder, labels
from protocol.tables.encoding import Encoding
from protocol.tables.fields import FieldReader
from protocol.tables.kinds.attribute import (
    ABOVE,
    BELOW,
    EARLY,
    EMPTY,
    LATE,
    NO_DATE,
    NO_NUMBER,
    UNLISTED,
)
from protocol.tables.kinds.calendar import date_of, day_number, monday_of, starts_between
from protocol.tables.kinds.formats import Format, format_of, iso_span
from protocol.tables.kinds.scales import inner_edges
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED


def schema_of(**fields: object) -> Schema:
    return Schema.parse({"attributes": [{"name": "x", **fields}]})


def attribute_of(**fields: object) -> Attribute:
    return schema_of(**fields).attributes[0]


def codes(attribute: Attribute, *texts: str, decimal: str = ".") -> list[int]:
    return FieldReader(attribute, decimal).codes(texts).tolist()


def drawn(schema: Schema, category: int, count: int) -> list[str]:
    [texts] = labels(schema, [np.full(count, category, np.uint16)], Stream.keyed(b"drawn"))
    return texts


# Listed kinds


def test_a_boolean_has_two_categories_with_as_many_spellings_as_are_listed():
    smoker = attribute_of(kind="boolean", true=["ja", "1"], false=["nein", "0"], missing=[""])
    assert codes(smoker, "nein", "0", "ja", "1", "", "yes") == [0, 0, 1, 1, 2, UNLISTED]
    assert [*smoker.texts(np.array([0, 1, 2]), Stream.keyed(b""))] == ["nein", "ja", ""]
    assert (smoker.size, smoker.is_ordered) == (3, False)
    assert codes(attribute_of(kind="boolean"), "true", "false", "", "True") == [1, 0, EMPTY, UNLISTED]


def test_other_takes_every_value_that_is_not_listed_and_no_empty_field():
    code = attribute_of(kind="categorical", values=["E11", "I10"], other="other", missing=["NA"])
    assert codes(code, "E11", "I10", "Z99.9", "other", "NA", "") == [0, 1, 2, 2, 3, EMPTY]
    assert [*code.texts(np.array([2, 3]), Stream.keyed(b""))] == ["other", "NA"]
    assert code.labels_of_categories() == ["E11", "I10", "other", "missing"]


def test_a_taxonomy_by_prefix_groups_codes_by_their_first_characters():
    schema = schema_of(
        kind="categorical",
        values=["E10.9", "E11.2", "E11.9", "I10", "Z"],
        other="other",
        taxonomy={"prefix": [1, 3]},
    )
    domain = Encoding.of(schema, "hierarchical").domain
    assert [(one.name, one.groups) for one in domain.variables] == [
        ("x", None),
        ("x@1", (0, 1, 1, 2, 3, 4)),
        ("x@2", (0, 0, 0, 1, 2, 3)),
    ]


def test_other_may_be_named_in_a_taxonomy():
    taxonomy = {"known": ["a", "b"], "unknown": ["rest"]}
    schema = schema_of(kind="categorical", values=["a", "b"], other="rest", missing=[""], taxonomy=taxonomy)
    assert Encoding.of(schema, "hierarchical").domain.variables[1].groups == (0, 0, 1, 2)


# Numbers


def test_edges_make_bins_and_the_last_bin_holds_the_last_edge():
    age = attribute_of(kind="integer", edges=[0, 18, 65, 105])
    assert codes(age, "0", "17", "18", "64", "65", "105", "106", "-1") == [0, 0, 1, 1, 2, 2, ABOVE, BELOW]
    assert age.labels_of_categories() == ["0 to 17", "18 to 64", "65 to 105"]
    assert age.grid == ([0, 18, 65], [18, 47, 41])
    ratio = attribute_of(kind="real", edges=[0, 0.5, 2.25], decimals=2)
    assert codes(ratio, "0.49", "0.5", "2.25", "2.2500000000000000001") == [0, 1, 1, ABOVE]
    assert ratio.grid == ([0, 50], [50, 176])


def test_decimals_and_steps_say_how_a_number_is_written():
    schema = schema_of(kind="real", min=10, max=70, bins=3, decimals=1)
    assert {len(text.partition(".")[2]) for text in drawn(schema, 0, 50)} == {1}
    halves = drawn(schema_of(kind="real", min=35, max=42, bins=2, step=0.5), 1, 200)
    assert set(halves) == {"38.5", "39.0", "39.5", "40.0", "40.5", "41.0", "41.5", "42.0"}
    fives = drawn(schema_of(kind="integer", min=80, max=200, bins=6, step=5), 0, 200)
    assert set(fives) == {"80", "85", "90", "95", "100"}


@pytest.mark.parametrize("written", [{"step": 0.5}, {"step": 0.05}, *({"decimals": count} for count in range(12))])
@pytest.mark.parametrize("low", [0, -20, 10**6])
def test_numbers_written_together_are_those_written_one_by_one(written, low):
    attribute = attribute_of(kind="real", min=low, max=low + 20, bins=1, **written)
    [first], [held] = attribute.grid
    numbers = np.array([first, first + 1, first + held // 2, first + held - 1], np.int64)
    texts = attribute.written_values(numbers)
    assert texts == [*map(attribute.written_value, numbers.tolist())]
    assert [Fraction(text) / attribute.spacing for text in texts] == numbers.tolist()


@pytest.mark.parametrize(
    ("low", "high", "written"), [(4, 13, {"decimals": 18}), (4, 13, {"step": 1e-18}), (10**17, 10**18, {"decimals": 1})]
)
def test_numbers_beyond_64_bits_stay_in_their_range(low, high, written):
    texts = drawn(schema_of(kind="real", min=low, max=high, bins=1, **written), 0, 200)
    assert all(low <= Fraction(text) <= high for text in texts)


def test_every_written_number_is_as_likely_as_any_other_of_its_bin():
    found = Counter(drawn(schema_of(kind="real", edges=[0, 0.3], decimals=1), 0, 40_000))
    assert sorted(found) == ["0.0", "0.1", "0.2", "0.3"]
    assert all(abs(count - 10_000) < 520 for count in found.values())  # six standard deviations


def test_edges_without_decimals_leave_a_thousand_values_in_the_narrowest_bin():
    concentration = attribute_of(kind="real", edges=[0, 0.01, 5])
    assert (concentration.places, min(concentration.grid[1])) == (5, 1000)


def test_a_decimal_comma_is_read_where_the_table_has_one():
    cost = attribute_of(kind="real", min=0, max=100, bins=10, missing=["k,A"])
    assert codes(cost, "33,90", "1e1", "k,A", "", "3.5", "3,5,1", decimal=",") == [
        3,
        1,
        10,
        EMPTY,
        NO_NUMBER,
        NO_NUMBER,
    ]
    assert codes(cost, "33,90") == [NO_NUMBER]


def test_a_logarithmic_scale_divides_decades_evenly():
    cost = attribute_of(kind="real", min=1, max=10_000, bins=8, scale="log", decimals=2)
    assert [str(float(cut)) for cut in cost.cuts] == [
        "1.0", "3.16", "10.0", "31.62", "100.0", "316.23", "1000.0", "3162.28", "10000.0",
    ]  # fmt: skip
    assert codes(cost, "3.15", "3.16", "10000", "0.99") == [0, 1, 7, BELOW]


def test_a_logarithmic_scale_from_zero_is_that_of_one_more():
    days = attribute_of(kind="integer", min=0, max=999, bins=3, scale="log")
    assert list(days.cuts) == [0, 9, 99, 1000]
    assert days.labels_of_categories() == ["0 to 8", "9 to 98", "99 to 999"]


def test_a_square_root_scale_widens_with_the_values():
    cost = attribute_of(kind="real", min=0, max=100, bins=4, scale="sqrt")
    assert list(cost.cuts) == [0, Fraction("6.25"), 25, Fraction("56.25"), 100]


def test_edges_that_fall_together_are_one_edge():
    days = attribute_of(kind="integer", min=1, max=30, bins=20, scale="log")
    assert days.size < 20
    assert min(days.grid[1]) == 1
    assert sum(days.grid[1]) == 30


@pytest.mark.parametrize(
    ("scale", "low", "high", "bins", "step"),
    [("log", 1, 500_000, 50, None), ("log", 0, 500_000, 50, "0.01"), ("sqrt", 3, 500_000, 256, "1")],
)
def test_the_edges_of_a_scale_are_the_rounded_true_ones(scale, low, high, bins, step):
    """With ninety digits, from the definition: no digit of the forty may matter."""
    spacing = None if step is None else Fraction(step)
    found = inner_edges(scale, Fraction(low), Fraction(high), bins, spacing)
    with localcontext() as context:
        context.prec = 90
        shift = int(scale == "log" and not low)
        ends = [Decimal(end + shift) for end in (low, high)]
        first, last = [end.ln() if scale == "log" else end.sqrt() for end in ends]
        places = [first + (last - first) * index / bins for index in range(1, bins)]
        true = [(place.exp() if scale == "log" else place**2) - shift for place in places]
        if spacing is None:
            context.prec = 6
            expected = {Fraction(+one) for one in true}
        else:
            expected = {round_half_up(Fraction(one) / spacing) * spacing for one in true}
    assert found == sorted(one for one in expected if low < one < high)


def round_half_up(number: Fraction) -> int:
    return (number + Fraction(1, 2)).__floor__()


def test_the_edges_of_a_scale_do_not_depend_on_the_callers_arithmetic():
    edges = inner_edges("log", Fraction(1), Fraction(1000), 7, None)
    with localcontext() as context:
        context.prec = 3
        assert inner_edges("log", Fraction(1), Fraction(1000), 7, None) == edges


# Moments


def test_days_are_counted_as_the_calendar_does():
    """Every day of eight hundred years, and the first and the last that can be written."""
    epoch, day = date(1970, 1, 1), date(1583, 1, 1)
    days = [day + timedelta(number) for number in range(292_194)]
    for one in (*days, date.min, date.max):
        number = (one - epoch).days
        assert day_number(one.year, one.month, one.day) == number
        assert date_of(number) == (one.year, one.month, one.day)
    assert {date.fromordinal(monday_of(number) + epoch.toordinal()).weekday() for number in range(-20, 20)} == {0}


@pytest.mark.parametrize("resolution", ["year", "month", "week", "day", "hour"])
def test_parts_of_the_calendar_are_as_many_as_their_starts(resolution):
    for first, last in (("2019-12-30", "2021-03-01"), ("2020-02-29", "2020-02-29"), ("1968", "1972")):
        span = {"kind": "datetime", "min": first, "max": last, "resolution": resolution}
        [attribute] = schema_of(**span).attributes
        assert attribute.size == len(attribute.cuts) - 1
        assert all(count >= 1 for count in attribute.grid[1])
        begin, end = attribute.span
        assert [*starts_between(resolution, begin, end)] == list(attribute.cuts[1:-1])


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2019", "2019-01-01T00:00:00", "2019-12-31T23:59:59"),
        ("2019-12", "2019-12-01T00:00:00", "2019-12-31T23:59:59"),
        ("2020-02", "2020-02-01T00:00:00", "2020-02-29T23:59:59"),
        ("2019-12-31", "2019-12-31T00:00:00", "2019-12-31T23:59:59"),
        ("2019-12-31 23", "2019-12-31T23:00:00", "2019-12-31T23:59:59"),
        ("2019-12-31T23:59", "2019-12-31T23:59:00", "2019-12-31T23:59:59"),
        ("1969-12-31T23:59:58", "1969-12-31T23:59:58", "1969-12-31T23:59:58"),
    ],
)
def test_an_iso_text_means_all_that_it_leaves_open(text, first, last):
    ends = [datetime.fromisoformat(end) - datetime(1970, 1, 1) for end in (first, last)]
    assert list(iso_span(text)) == [end.total_seconds() for end in ends]


def test_a_date_is_read_and_written_in_the_format_of_the_table():
    admitted = schema_of(kind="date", min="2019", max="2020", resolution="month", format="%d.%m.%Y", missing=["-"])
    [attribute] = admitted.attributes
    assert attribute.size == 25
    assert codes(attribute, "01.01.2019", "29.02.2020", "31.12.2020", "-") == [0, 13, 23, 24]
    assert codes(attribute, "31.12.2018", "01.01.2021", "29.02.2019", "1.1.2019", "2019-01-01", "") == [
        EARLY,
        LATE,
        NO_DATE,
        NO_DATE,
        NO_DATE,
        EMPTY,
    ]
    found = drawn(admitted, 13, 600)
    assert {datetime.strptime(text, "%d.%m.%Y").strftime("%Y-%m") for text in found} == {"2020-02"}
    assert len(set(found)) == 29
    assert attribute.labels_of_categories()[::12] == ["2019-01", "2020-01", "missing"]


def test_dates_without_leading_zeros_are_read_and_written_so():
    american = Format("%-m/%-d/%Y")
    assert american.read("3/7/2024") == american.read("03/07/2024") == iso_span("2024-03-07")[0]
    assert american.write(iso_span("2024-03-07")[0]) == "3/7/2024"


def test_a_time_falls_into_its_hour_and_is_drawn_to_the_second():
    schema = schema_of(kind="datetime", min="2024-02-28T22", max="2024-03-01", resolution="hour")
    [attribute] = schema.attributes
    assert attribute.size == 2 + 24 + 24
    assert codes(attribute, "2024-02-28 22:00:00", "2024-02-29 00:59:59", "2024-03-01 23:59:59") == [0, 2, 49]
    assert codes(attribute, "2024-02-28 21:59:59", "2024-03-02 00:00:00", "2024-02-29 24:00:00") == [
        EARLY,
        LATE,
        NO_DATE,
    ]
    texts = drawn(schema, 2, 300)
    assert all(text.startswith("2024-02-29 00:") for text in texts)
    assert len({text[-2:] for text in texts}) > 40
    assert attribute.label_of_bin(2) == "2024-02-29T00"


def test_weeks_begin_on_monday():
    weeks = attribute_of(kind="date", min="2024-01-03", max="2024-01-15", resolution="week")
    assert weeks.labels_of_categories() == ["week of 2024-01-03", "week of 2024-01-08", "week of 2024-01-15"]


def test_edges_divide_dates_where_the_schema_says():
    attribute = attribute_of(kind="date", edges=["2015", "2020-03-11", "2022-06"], format="%Y%m%d")
    assert attribute.labels_of_categories() == ["2015-01-01 to 2020-03-10", "2020-03-11 to 2022-06-30"]
    assert codes(attribute, "20200310", "20200311", "20220630", "20220701") == [0, 1, 1, LATE]


def test_a_format_of_months_draws_months():
    schema = schema_of(kind="date", min="2019", max="2019", resolution="year", format="%m/%Y")
    assert set(drawn(schema, 0, 500)) == {f"{month:02d}/2019" for month in range(1, 13)}


@pytest.mark.parametrize("text", ["%Y-%m-%d", "%-d.%-m.%Y", "%Y%m%d", "%d/%m/%Y %H:%M", "%Y", "%Y-%m", "{%Y} 100%% %m"])
def test_what_a_format_writes_it_reads(text):
    form = format_of(text, "%H" in text)
    for moment in ("2019-01-01T00:00:00", "2020-02-29T23:59:00", "0001-10-10T10:10:00", "9999-12-31T00:00:00"):
        start = form.read(form.write(iso_span(moment)[0]))
        assert start is not None
        assert form.is_start(start)
        assert form.write(start) == form.write(iso_span(moment)[0])


# All kinds


def test_categories_read_well():
    found = {attribute.name: attribute.labels_of_categories() for attribute in MIXED.attributes}
    assert found["work"] == ["clerk", "smith", "baker", "missing"]
    assert found["age"] == ["0 to 9", "10 to 19", "20 to 29", "30 to 39"]
    assert found["bmi"] == ["10 to 20", "20 to 30", "30 to 40"]


def test_an_edge_that_no_decimal_number_meets_is_shown_rounded():
    thirds = attribute_of(kind="real", min=0, max=10, bins=3)
    assert thirds.labels_of_categories() == ["0 to 3.33333", "3.33333 to 6.66667", "6.66667 to 10"]


def test_clamping_moves_dates_too():
    schema = schema_of(kind="date", min="2019", max="2020", resolution="year")
    rows = [["2018-12-31"], ["2021-01-01"], ["2019-05-05"]]
    assert Coder(schema, "clamp").code(rows)[0].tolist() == [0, 1, 0]
    with pytest.raises(DataError, match=r'column "x": a date before the first; correct'):
        Coder(schema).code(rows)


def test_a_schema_of_new_kinds_has_a_canonical_text():
    schema = Schema.parse(
        {
            "attributes": [
                {
                    "name": "a",
                    "kind": "date",
                    "min": "2019",
                    "max": "2020-02",
                    "resolution": "week",
                    "format": "%Y-%m-%d",
                },
                {"name": "b", "kind": "boolean", "true": ["true"], "labels": {"true": "smokes"}},
                {"name": "c", "kind": "real", "edges": [0, 0.50, 1e1], "unit": "mg", "description": "measured"},
            ]
        }
    )
    assert schema.to_json() == (
        '{"attributes":['
        '{"kind":"date","max":"2020-02-29","min":"2019-01-01","name":"a","resolution":"week"},'
        '{"kind":"boolean","labels":{"true":"smokes"},"name":"b"},'
        '{"description":"measured","edges":[0,0.5,10],"kind":"real","name":"c","unit":"mg"}]}'
    )
    assert Schema.parse(schema.to_json()) == schema
