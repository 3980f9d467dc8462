"""`subn evaluate` from files to figures: what it measures, and what it refuses."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.experiments.classification import Exam, target_of
from curator.experiments.evaluation import MOST_SETS
from curator.subn import main
from protocol.tables.distance import attribute_sets, average_distance
from protocol.tables.schema import Schema

SCHEMA = {
    "attributes": [
        {"name": "signal", "kind": "ordinal", "values": ["0", "1", "2", "3"]},
        {"name": "degree", "kind": "categorical", "values": ["none", "school, low", "PhD"], "missing": ["?"]},
        {"name": "age", "kind": "integer", "min": 0, "max": 99, "bins": 10},
        {"name": "weight", "kind": "real", "min": 0, "max": 1, "bins": 200},
        {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
    ]
}
PRIVATE = "Hieronymus"


def lines(rows: int, seed: int, honest: bool = True) -> list[str]:
    """Whoever has a signal of 2 or more is ill, unless the table lies; nothing else depends on anything."""
    data = np.random.default_rng(seed)
    made = []
    for _ in range(rows):
        signal, age, weight = data.integers(0, 4), data.integers(0, 100), data.random()
        degree = ("none", '"school, low"', "PhD", "?")[data.integers(0, 4)]
        ill = "yes" if (signal >= 2) == honest else "no"
        made.append(f"{signal},{degree},{age},{weight:.4f},{ill}")
    return made


class World:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.real, self.synthetic, self.schema = folder / "real.csv", folder / "synthetic.csv", folder / "s.json"
        self.capsys = capsys
        self.write(self.real, lines(600, seed=1))
        self.write(self.synthetic, lines(500, seed=2))
        self.schema.write_text(json.dumps(SCHEMA))

    def write(self, path: Path, rows: list[str]) -> None:
        path.write_text("\n".join(["signal,degree,age,weight,ill", *rows]) + "\n", encoding="utf-8")

    def run(self, *options: str) -> tuple[int, str, str]:
        files = ["--real", str(self.real), "--synthetic", str(self.synthetic), "--schema", str(self.schema)]
        try:
            code = main(["evaluate", *files, *options])
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def measured(self, *options: str):
        code, out, err = self.run("--json", *options)
        assert (code, err) == (0, "")
        return json.loads(out)

    def refusal(self, *options: str) -> str:
        code, out, err = self.run(*options)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert PRIVATE not in err
        return err.removeprefix("subn: ").strip()


@pytest.fixture
def world(tmp_path, capsys) -> World:
    return World(tmp_path, capsys)


# Distances


def test_two_way_marginals_are_the_default(world):
    found = world.measured()
    assert found["rows"] == {"real": 600, "synthetic": 500}
    assert "never to be published" in found["warning"]
    (pairs,) = found["distances"]
    assert (pairs["ways"], pairs["measured"], pairs["of"]) == (2, 10, 10)
    assert 0 < pairs["average"] < pairs["largest"] < 1
    assert found["classification"] == []


def test_a_table_is_at_no_distance_from_itself(world):
    world.synthetic.write_bytes(world.real.read_bytes())
    assert [one["largest"] for one in world.measured("--ways", "1,2,3,5")["distances"]] == [0, 0, 0, 0]


def test_a_distance_by_hand(world):
    world.write(world.real, ["0,none,1,0.5,no", "0,none,1,0.5,yes"])
    world.write(world.synthetic, ["0,none,1,0.5,no", "1,none,1,0.5,no"])
    (single,) = world.measured("--ways", "1")["distances"]
    assert single["average"] == pytest.approx((1 / 2 + 1 / 2) / 5)
    assert single["largest"] == pytest.approx(1 / 2)


def test_the_summary_says_how_many_marginals_it_is_over(world):
    code, out, _ = world.run("--ways", "2,3")
    assert code == 0
    assert "600 real rows, 500 synthetic rows" in out
    assert "over all 10 marginals of 2" in out
    assert "over all 10 marginals of 3" in out


def test_too_many_marginals_are_sampled_and_it_is_said_how_many(world):
    names = [f"a{i}" for i in range(30)]
    world.schema.write_text(
        json.dumps({"attributes": [{"name": name, "kind": "ordinal", "values": ["0", "1"]} for name in names]})
    )
    for path in (world.real, world.synthetic):
        path.write_text("\n".join([",".join(names), ",".join("01" * 15)]) + "\n")
    code, out, _ = world.run("--ways", "3")
    assert code == 0
    assert f"over {MOST_SETS:,} of 4,060 marginals of 3" in out
    (triples,) = world.measured("--ways", "3")["distances"]
    assert (triples["measured"], triples["of"]) == (MOST_SETS, 4060)


def test_sampled_sets_are_distinct_and_cover_every_attribute():
    sets = attribute_sets(40, 3, 500, Stream.keyed(b"sets"))
    assert len(set(sets)) == len(sets) == 500
    assert all(len(set(one)) == 3 for one in sets)
    assert {index for one in sets for index in one} == set(range(40))


def test_marginals_with_more_cells_than_memory_are_compared():
    data = np.random.default_rng(5)
    one = [data.integers(0, 65_536, 300).astype(np.uint16) for _ in range(5)]
    other = [column.copy() for column in one]
    assert average_distance(one, other, [65_536] * 5, 5) == 0
    other[4][:150] ^= 1
    assert average_distance(one, other, [65_536] * 5, 5) == pytest.approx(0.5)


def test_big_and_small_marginals_are_measured_alike():
    data = np.random.default_rng(6)
    one, other = ([data.integers(0, 8, 400).astype(np.uint8) for _ in range(2)] for _ in range(2))
    assert average_distance(one, other, [8, 8], 2) == pytest.approx(average_distance(one, other, [4096, 4096], 2))


# Classification


def test_what_the_synthetic_rows_teach_is_measured_on_real_ones(world):
    for rates in world.measured("--classify", "ill")["classification"]:
        assert (rates["synthetic"], rates["real"]) == (0, 0)
        assert 0.3 < rates["majority"] < 0.7
    world.write(world.synthetic, lines(500, seed=3, honest=False))
    found = world.measured("--classify", "ill")["classification"]
    assert [rates["classifier"] for rates in found] == ["linear SVM", "gradient boosting"]
    for rates in found:
        assert (rates["synthetic"], rates["real"]) == (1, 0)  # it learned the contrary of what is true


def test_a_group_of_values_is_a_class(world):
    found = world.measured("--classify", 'degree="school, low",PhD,?')["classification"]
    assert {rates["target"] for rates in found} == {"degree in school, low, PhD, ?"}
    assert all(0.1 < rates["majority"] < 0.4 for rates in found)


def test_several_targets_and_attributes_left_out(world):
    found = world.measured("--classify", "ill", "--classify", "signal=3", "--without", "age,weight")["classification"]
    assert [rates["target"] for rates in found] == ["ill", "ill", "signal in 3", "signal in 3"]
    blind = world.measured("--classify", "ill", "--without", "signal")["classification"]
    assert all(rates["real"] > 0.3 for rates in blind)  # only the signal tells


def test_a_number_can_be_predicted_by_its_bins(world):
    assert len(world.measured("--classify", "age")["classification"]) == 2


def test_a_table_with_one_class_teaches_that_class(world):
    world.write(world.synthetic, ["0,none,1,0.5,no"] * 50)
    for rates in world.measured("--classify", "ill")["classification"]:
        assert rates["synthetic"] == pytest.approx(0.5, abs=0.2)


def test_the_summary_shows_the_majority_beside_the_rates(world):
    code, out, _ = world.run("--classify", "ill")
    assert code == 0
    assert "majority class" in out
    assert "linear SVM: ill" in out


def test_the_same_rows_are_held_out_every_time(world):
    assert world.measured("--classify", "signal=0") == world.measured("--classify", "signal=0")


def test_a_synthetic_row_never_decides_the_test(world):
    """The real rate and the majority rate are the same whatever the synthetic table is."""
    first = world.measured("--classify", "ill")["classification"]
    world.write(world.synthetic, lines(30, seed=9, honest=False))
    second = world.measured("--classify", "ill")["classification"]
    assert [(r["real"], r["majority"]) for r in first] == [(r["real"], r["majority"]) for r in second]


def test_without_the_library_the_extra_is_named(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "install the extra `experiments`" in world.refusal("--classify", "ill")
    assert world.run()[0] == 0  # distances need no extra


# What is refused


@pytest.mark.parametrize("which", ["real", "synthetic"])
@pytest.mark.parametrize(
    ("line", "column", "what"),
    [
        (f"0,{PRIVATE},1,0.5,no", "degree", "a category that the schema does not list"),
        (f"0,none,{PRIVATE},0.5,no", "age", "text where a number is expected"),
        ("0,none,100,0.5,no", "age", "a number above the largest"),
    ],
)
def test_a_value_outside_the_schema_names_file_row_column_and_class(world, which, line, column, what):
    path = getattr(world, which)
    world.write(path, [*lines(9, seed=1), line, ",".join([PRIVATE] * 5)])
    assert world.refusal().startswith(f'{path}, row 10, column "{column}": {what}')


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--ways", "0"], "--ways names 0, but the schema has 5 attributes: take 1 to 5"),
        (["--ways", "2,6"], "--ways names 6, but the schema has 5 attributes: take 1 to 5"),
        (["--classify", "wealth"], 'cannot classify "wealth": the schema has no such attribute; correct the name'),
        (
            ["--classify", "weight"],
            'cannot classify "weight": it has 200 categories, at most 100 can be classes; name a group of its values',
        ),
        (["--classify", "weight=0.5"], 'cannot group "weight": it is a number; only listed values can be grouped'),
        (["--classify", "degree=MD"], 'cannot group "degree": "MD" is not one of its values; correct it'),
        (["--without", "wealth"], 'cannot leave out "wealth": the schema has no such attribute; correct the name'),
        (
            ["--classify", "ill", "--without", "signal,degree,age,weight"],
            "cannot classify: at least one other attribute and 5 real rows are needed",
        ),
        (["--real", "nowhere.csv"], "nowhere.csv: cannot be read: No such file or directory"),
        (["--schema", "nowhere.json"], "nowhere.json: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_work_is_refused_with_one_sentence(world, options, sentence):
    assert world.refusal(*options) == sentence


def test_a_table_without_rows_is_refused(world):
    world.write(world.synthetic, [])
    assert world.refusal() == f"{world.synthetic}: it has no rows; at least one is needed"


def test_a_table_without_a_column_of_the_schema_is_refused(world):
    world.real.write_text("signal,degree\n0,none\n")
    assert world.refusal().startswith(f'{world.real}: the header lacks "age", "weight", "ill"')


@pytest.mark.parametrize("options", [["--ways", "two"], ["--ways", ""], ["--classify", 'degree="a'], ["--json=1"]])
def test_a_command_that_cannot_be_parsed_is_refused(world, options):
    code, _, err = world.run(*options)
    assert code == 2
    assert "error: " in err.splitlines()[-1]


def test_too_few_rows_to_hold_some_out_are_refused():
    schema = Schema.parse(SCHEMA)
    rows = [np.zeros(4, dtype=np.uint8)] * 5
    with pytest.raises(Exception, match="5 real rows are needed"):
        Exam(schema, rows, target_of(schema, "ill", ()), (), Stream.keyed(b"x"))


def test_help_says_that_the_figures_are_not_private(world):
    code, out, _ = world.run("--help")
    assert code == 0
    assert "never to be published" in " ".join(out.split())
