"""`subn simulate` from files to files: what it writes, what it refuses, and what it never says."""

import csv
import gzip
import json
import re
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from curator.commands.main import main as curator_service
from curator.experiments.division_options import WAYS
from curator.subn import main
from party.commands.main import main as party
from tests.support.effort import mostly_exhaustive

SCHEMA: dict[str, Any] = {
    "title": "clinics",
    "attributes": [
        {"name": "work", "kind": "categorical", "values": ["clerk", "smith", "baker"], "missing": ["?"]},
        {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"]},
        {"name": "age", "kind": "integer", "min": 0, "max": 39, "bins": 4},
        {"name": "bmi", "kind": "real", "min": 10, "max": 40, "bins": 3},
        {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
    ],
}
HEADER = "work,grade,age,bmi,ill,clinic"
WORKS, GRADES = ("clerk", "smith", "baker", "?"), ("low", "mid", "high")
LINES = [
    f"{WORKS[i % 4]},{GRADES[i % 3]},{i},{10 + i / 2},{'no' if i % 5 else 'yes'},{'north' if i % 3 else 'south'}"
    for i in [*range(40), *range(20)]
]
EXPECTED = "; expected random|file:COLUMN|sorted:ATTRIBUTE|dirichlet:ATTRIBUTE:BETA|largest:SHARE"
PRIVATE = "Hieronymus"  # stands in a table where the schema does not expect it


class World:
    """A folder with a table and its schema, and the command run in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.table, self.schema, self.out = folder / "t.csv", folder / "s.json", folder / "out"
        self.write_table()
        self.write_schema(SCHEMA)

    def write_table(self, lines: list[str] = LINES, header: str = HEADER) -> None:
        self.table.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")

    def write_schema(self, schema: object) -> None:
        self.schema.write_text(json.dumps(schema), encoding="utf-8")

    def run(self, *options: str) -> tuple[int, str, str]:
        """Exit code, output and complaints; later options win over these."""
        files = ["--data", str(self.table), "--schema", str(self.schema), "--out", str(self.out)]
        try:
            code = main(["simulate", *files, "--epsilon", "1", "--crypto", "none", *options])
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def refusal(self, *options: str) -> str:
        """The one sentence of a refusal, after which nothing has been written."""
        code, out, err = self.run(*options)
        assert code == 2
        assert out == ""
        assert not self.out.exists() or not list(self.out.iterdir())
        sentence = [line for line in err.splitlines() if line.startswith("subn: ")]
        assert len(sentence) == 1, err
        assert "Traceback" not in err
        assert PRIVATE not in err
        return sentence[0].removeprefix("subn: ")

    def manifest(self) -> Any:
        return json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))

    def synthetic(self) -> list[list[str]]:
        with (self.out / "synthetic.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))


@pytest.fixture
def world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, capsys)


# What is written


def test_the_synthetic_table_has_the_schemas_header_and_labels(world):
    assert world.run()[0] == 0
    header, *rows = world.synthetic()
    assert header == ["work", "grade", "age", "bmi", "ill"]
    assert len(rows) == 60
    for work, grade, age, bmi, ill in rows:
        assert work in WORKS
        assert grade in GRADES
        assert 0 <= int(age) <= 39
        assert 10 <= float(bmi) <= 40
        assert ill in ("no", "yes")


def test_the_manifest_says_what_was_done_and_spent(world):
    assert world.run("--epsilon", "0.8", "--insiders", "2", "--update", "accumulate")[0] == 0
    manifest = world.manifest()
    assert (manifest["method"], manifest["preset"], manifest["epsilon"]) == ("dp-subn", "sound", "4/5")
    assert manifest["crypto"] == "none"
    assert manifest["parameters"]["insiders"] == 2
    assert [party["name"] for party in manifest["parties"]] == ["party-1", "party-2", "party-3"]
    assert [party["rows"] for party in manifest["parties"]] == [20, 20, 20]
    assert all(Fraction(party["spent"]) <= Fraction(4, 5) for party in manifest["parties"])
    assert [phase["name"] for phase in manifest["phases"]] == [
        *["joining", "correlations", "initial", "update", "parameters"]
    ]
    assert {"name", "seconds", "cells", "ciphertexts", "bytes"} == set(manifest["phases"][0])
    assert sorted(family["attribute"] for family in manifest["network"]) == ["age", "bmi", "grade", "ill", "work"]
    assert all(isinstance(family["parents"], list) for family in manifest["network"])
    assert manifest["seconds"] > 0


def test_real_cryptography_is_the_default(world):
    assert world.run("--crypto", "real", "--noise", "distributed", "--epsilon", "5")[0] == 0
    assert world.manifest()["crypto"] == "real"


@pytest.mark.parametrize(
    ("method", "wishes"),
    mostly_exhaustive(
        [
            ("recommended", ()),
            ("dp-subn", ("--noise", "selected")),
            ("guided", ("--noise", "local")),
            ("privbayes", ()),
            ("privabn", ()),
            ("jtree", ()),
            ("dp-ccbn", ()),
            ("independent", ()),
            ("dp-subn", ("--preset", "paper", "--key-bits", "2048")),
        ],
        {0, 1, 3, 7},
    ),
)
def test_one_party_alone_is_a_central_baseline_by_the_same_code(world, method, wishes):
    """Its totals hold one full share of noise: nobody else adds any."""
    assert world.run("--parties", "1", "--crypto", "real", "--method", method, "--epsilon", "3", *wishes)[0] == 0
    manifest = world.manifest()
    assert [(party["name"], party["rows"]) for party in manifest["parties"]] == [("party-1", 60)]
    assert manifest["parameters"]["insiders"] == 0
    assert Fraction(manifest["parties"][0]["spent"]) <= 3
    assert len(world.synthetic()) == 61


def test_one_party_has_no_insiders(world):
    assert "1 insiders among 1 parties" in world.refusal("--parties", "1", "--insiders", "1")


def test_advice_is_told_but_an_experiment_is_free(world):
    code, said, _ = world.run("--epsilon", "25")
    assert code == 0
    assert "stop: Epsilon 25" in said
    assert "stop" in {one["severity"] for one in world.manifest()["advice"]}


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
@pytest.mark.parametrize("preset", ["sound", "paper"])
def test_every_method_and_preset_runs(world, method, preset):
    assert world.run("--method", method, "--preset", preset)[0] == 0
    assert (world.manifest()["method"], world.manifest()["preset"]) == (method, preset)


def test_independent_networks_name_their_party(world):
    world.run("--method", "independent")
    assert {family["party"] for family in world.manifest()["network"]} == {"party-1", "party-2", "party-3"}


def test_every_wish_arrives_in_the_plan(world):
    code, _, err = world.run(
        *("--noise", "local", "--update", "joint", "--rounds", "3", "--encoding", "gray", "--score", "F"),
        *("--choice", "exponential", "--split", "1/8,1/8,1/4,1/2", "--theta", "5.5", "--rows", "7", "--insiders", "0"),
        *("--degree", "0", "--key-bits", "2048", "--parties", "4"),
    )
    assert code == 0, err
    chosen = world.manifest()["parameters"]
    expected = {"noise": "local", "update": "joint", "rounds": 3, "encoding": "gray", "score": "F", "insiders": 0}
    expected |= {"choice": "exponential", "split": ["1/8", "1/8", "1/4", "1/2"], "theta": "11/2", "degree": 0}
    assert {name: chosen[name] for name in expected} == expected
    assert len(world.manifest()["parties"]) == 4
    assert len(world.synthetic()) == 8


def test_gzipped_tables_are_read(world):
    world.run("--seed", "1")
    plain = world.synthetic()
    packed = world.folder / "t.csv.gz"
    packed.write_bytes(gzip.compress(world.table.read_bytes()))
    assert world.run("--seed", "1", "--data", str(packed))[0] == 0
    assert world.synthetic() == plain


def test_a_byte_order_mark_is_no_part_of_the_header(world):
    world.table.write_text("\ufeff" + world.table.read_text(), encoding="utf-8")
    assert world.run()[0] == 0


def test_a_column_can_say_who_holds_which_rows(world):
    assert world.run("--partition", "file:clinic")[0] == 0
    parties = {party["name"]: party["rows"] for party in world.manifest()["parties"]}
    assert parties == {"north": 39, "south": 21}
    assert world.run("--partition", "file:work", "--parties", "4")[0] == 0  # an attribute will do as well
    assert [party["rows"] for party in world.manifest()["parties"]] == [15, 15, 15, 15]


def test_rows_without_a_party_are_a_party(world):
    world.write_table([*LINES, "clerk,low,1,20,no,"])
    assert world.run("--partition", "file:clinic")[0] == 0
    assert world.manifest()["parties"][0]["name"] == "(empty)"


def test_a_seed_repeats_an_experiment_byte_for_byte(world):
    tables, plans = [], []
    for seed in ("7", "7", "8"):
        assert world.run("--seed", seed)[0] == 0
        tables.append((world.out / "synthetic.csv").read_bytes())
        plans.append(world.manifest()["parameters"]["plan_hash"])  # from which reference rows are drawn
    assert tables[0] == tables[1] != tables[2]
    assert plans[0] == plans[1] != plans[2]


def test_without_a_seed_no_two_runs_are_alike(world):
    tables = []
    for _ in range(2):
        world.run("--rows", "200")
        tables.append((world.out / "synthetic.csv").read_bytes())
    assert tables[0] != tables[1]


def test_json_prints_the_manifest_and_nothing_else(world):
    code, out, err = world.run("--json")
    assert code == 0
    assert json.loads(out) == world.manifest()
    assert "parameters" in err  # progress goes elsewhere


def test_the_summary_names_files_and_spending(world):
    code, out, _ = world.run("--epsilon", "4/5")
    assert code == 0
    assert "party-1: 20 rows, spent " in out
    assert str(world.out / "synthetic.csv") in out
    assert str(world.out / "manifest.json") in out


def test_an_evaluation_is_marked_as_private(world):
    code, out, _ = world.run("--evaluate")
    assert code == 0
    assert re.search(r"average error of all pairs of attributes: 0\.\d+, predicted (0\.\d+|not: )", out)
    evaluation = world.manifest()["evaluation"]
    assert "never to be published" in evaluation["warning"]
    assert 0 <= evaluation["average_2way_distance"] <= 1
    world.run()
    assert "evaluation" not in world.manifest()


def test_an_evaluation_of_a_single_attribute_measures_that_attribute(world):
    """It has no pairs: the mean over all of them was no number, and no JSON."""
    world.write_schema({"attributes": [SCHEMA["attributes"][1]]})
    code, out, _ = world.run("--evaluate", "--epsilon", "20")
    assert code == 0
    assert re.search(r"error of the single attribute, which has no pairs: 0\.\d+\n", out)
    assert "nan" not in out
    assert 0 <= world.manifest()["evaluation"]["average_1way_distance"] < 0.2


def test_files_appear_whole_and_replace_older_ones(world):
    world.run("--rows", "500")
    world.run("--rows", "5")
    assert sorted(path.name for path in world.out.iterdir()) == ["manifest.json", "synthetic.csv"]
    assert len(world.synthetic()) == 6


# What is refused


@pytest.mark.parametrize(
    ("line", "column", "what"),
    [
        (f"{PRIVATE},low,1,20,no,north", "work", "a category that the schema does not list"),
        (f"clerk,low,{PRIVATE},20,no,north", "age", "text where a number is expected"),
        ("clerk,low,40,20,no,north", "age", "a number above the largest"),
        ("clerk,low,-1,20,no,north", "age", "a number below the smallest"),
        ("clerk,low,1.5,20,no,north", "age", "a fraction where a whole number is expected"),
        ("clerk,low,1,40.001,no,north", "bmi", "a number above the largest"),
        ("clerk,low,1,,no,north", "bmi", "an empty field"),
        (",low,1,20,no,north", "work", "an empty field"),
    ],
)
def test_a_value_outside_the_schema_names_file_row_column_and_class(world, line, column, what):
    world.write_table([*LINES[:9], line, f"{PRIVATE},{PRIVATE},{PRIVATE},{PRIVATE},{PRIVATE},{PRIVATE}"])
    text = world.refusal()
    assert text.startswith(f'{world.table}, row 10, column "{column}": {what}')


def test_a_row_of_the_wrong_width_is_named(world):
    world.write_table([*LINES[:4], f"clerk,low,{PRIVATE}"])
    assert "row 5: the wrong number of fields, 3 instead of 6" in world.refusal()
    assert "row 5: the wrong number of fields, 3 instead of 6" in world.refusal("--partition", "file:clinic")


def test_a_missing_column_is_named(world):
    world.write_table(["a"], header="work,grade,age,bmi,clinic")
    assert world.refusal() == f'{world.table}: the header lacks "ill"; add the column or correct its name.'


def test_an_empty_table_is_refused(world):
    world.table.write_text("")
    assert "the file is empty; a header row" in world.refusal()


def test_a_table_without_rows_is_refused(world):
    world.write_table([])
    assert "0 rows cannot be divided among 3 parties" in world.refusal()


def test_files_that_cannot_be_read_are_named(world):
    for option in ("--data", "--schema"):
        assert world.refusal(option, "nowhere.x") == "nowhere.x: cannot be read: No such file or directory"
    assert "cannot be read: Is a directory" in world.refusal("--data", str(world.folder))


@pytest.mark.parametrize("broken", [b"\x1f\x8bnot gzip", gzip.compress(b"work" * 999, mtime=0)[:-9], b"plain"])
def test_broken_gzip_is_refused(world, broken):
    packed = world.folder / "t.csv.gz"
    packed.write_bytes(broken)
    assert "not a readable CSV file" in world.refusal("--data", str(packed))


def test_a_damaged_gzip_body_is_refused(world):
    packed = world.folder / "t.csv.gz"
    good = bytearray(gzip.compress(world.table.read_bytes()))
    good[20] ^= 0xFF
    packed.write_bytes(good)
    assert "not a readable CSV file" in world.refusal("--data", str(packed))


def test_a_spreadsheet_s_way_of_writing_is_read(world):
    text = world.table.read_text(encoding="utf-8")
    world.table.write_bytes(text.replace(",", ";").replace(".", ",").encode("cp1252"))
    assert world.run()[0] == 0
    assert len(world.synthetic()) == 1 + len(LINES)


def test_a_letter_of_another_encoding_is_read_and_not_shown(world):
    world.table.write_bytes(HEADER.encode() + b"\nm\xfcller,low,1,20,no,north\n")
    assert 'row 1, column "work": a category that the schema does not list' in world.refusal()


def test_broken_quotes_are_refused(world):
    world.write_table(['"clerk",low,1,20,no,north', '"clerk,low,1,20,no,north'])
    assert "not a readable CSV file" in world.refusal()


LISTED: dict[str, Any] = {"name": "x", "kind": "ordinal", "values": ["a"]}


def attributes(**changes: Any) -> dict[str, Any]:
    """The schema with its numeric attribute changed."""
    first, second, age, *rest = SCHEMA["attributes"]
    return {"attributes": [first, second, age | changes, *rest]}


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (attributes(name="work"), "given to two attributes"),
        (attributes(min=50), "above max"),
        (attributes(bins=400), "more than the 40 integers"),
        (attributes(missing=["7"]), "also a number between min and max"),
        ({"attributes": []}, "at least one attribute"),
        ({"attributes": [LISTED | {"values": []}]}, "at least one value"),
        (
            {"attributes": [{"name": "x", "kind": "ordinal", "values": ["a"], "missing": ["a"]}]},
            "also one of the values",
        ),
        (
            {"attributes": [{"name": "x", "kind": "categorical", "values": ["a"], "taxonomy": {"g": ["b"]}}]},
            "is not one of the values",
        ),
        ("no object", "must be an object"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(world, schema, what):
    world.write_schema(schema)
    assert what in world.refusal()


def test_a_schema_that_is_no_json_is_refused(world):
    world.schema.write_text("{")
    assert "not JSON" in world.refusal()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--epsilon", "0"], "epsilon is 0: it must be positive"),
        (["--epsilon", "-1"], "epsilon is -1: it must be positive"),
        (["--epsilon", "abc"], """--epsilon: expected an exact number such as "0.8" or "4/5", found 'abc'"""),
        (["--epsilon", "1e1"], """--epsilon: expected an exact number such as "0.8" or "4/5", found '1e1'"""),
        (["--epsilon", "nan"], """--epsilon: expected an exact number such as "0.8" or "4/5", found 'nan'"""),
        (["--epsilon", "1/0"], """--epsilon: expected an exact number such as "0.8" or "4/5", found '1/0'"""),
        (["--parties", "0"], "60 rows cannot be divided among 0 parties: everybody needs at least one"),
        (["--parties", "-2"], "60 rows cannot be divided among -2 parties: everybody needs at least one"),
        (["--parties", "61"], "60 rows cannot be divided among 61 parties: everybody needs at least one"),
        (["--insiders", "3"], "3 insiders among 3 parties leave nobody to protect: at most 2"),
        (
            ["--seed", "1", "--crypto", "real"],
            "--seed works only with --crypto none: noise from a seed protects nobody",
        ),
        (
            ["--key-bits", "1024", "--crypto", "real"],
            "a Paillier key of 1024 bits is too small: take 3072, or at least 2048",
        ),
        (
            ["--partition", "clinic"],
            f"--partition is 'clinic'; expected {WAYS}",
        ),
        (
            ["--partition", "file:"],
            f"--partition is 'file:'; expected {WAYS}",
        ),
        (
            ["--partition", "random:x"],
            f"--partition is 'random:x'; expected {WAYS}",
        ),
        (
            ["--partition", "file:clinic", "--parties", "3"],
            "--parties says 3, the column that divides the rows has 2 values",
        ),
        (
            ["--split", "1/2,1/2"],
            "the split has 2 budgets, but guided needs 4 (columns or views, picks, tables of the first picks, tables "
            "of the last picks)",
        ),
        (["--score", "F"], "score F is defined for binary variables only: choose score R, or encoding binary or gray"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_with_one_sentence(world, options, text):
    assert world.refusal(*options) == text


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (["--insiders", "-1"], "insiders of -1 cannot be planned: "),
        (["--rows", "0"], "rows of 0 cannot be planned: "),
        (["--rounds", "0"], "rounds of 0 cannot be planned: "),
        (["--degree", "-1"], "degree of -1 cannot be planned: "),
        (["--degree", "4"], "degree 4 cannot be afforded: "),
        (["--theta", "0"], "theta must be positive: "),
        (["--split", "1/2,1/2,1/2,1/2"], "this plan costs party-1 3/2, more than epsilon = 1: "),
        (["--epsilon", "0.0000000000000000000001"], "the noise of 'levels' is too wide: "),
        (["--update", "replace"], "update=replace protects nobody against other parties, "),
        (["--update", "replace", "--insiders", "0", "--split", "1/4,1/4,1/4,1/4"], "this plan costs party-1 3/2, "),
    ],
)
def test_other_plans_are_refused_for_their_reason(world, options, start):
    assert world.refusal(*options).startswith(start)


def test_a_column_to_divide_by_must_exist(world):
    assert world.refusal("--partition", "file:town") == f"{world.table}: no column 'town' to divide the rows by"


def test_a_partys_name_has_a_length(world):
    world.write_table([*LINES, "clerk,low,1,20,no," + PRIVATE * 30])
    text = world.refusal("--partition", "file:clinic")
    assert text == "the column that divides the rows names a party with more than 200 characters"


@pytest.mark.parametrize(
    "options",
    [
        ["--split", "a,b"],
        ["--method", "magic"],
        ["--parties", "two"],
        ["--theta", "0.1e3"],
        ["--unknown"],
        ["--noise", ""],
    ],
)
def test_a_command_that_cannot_be_parsed_is_refused(world, options):
    code, _, err = world.run(*options)
    assert code == 2
    assert "error: " in err.splitlines()[-1]


def test_a_folder_that_cannot_be_written_is_noticed_before_the_run(world):
    world.out.write_text("a file, not a folder")
    code, _, err = world.run()
    assert code == 1
    assert err == f"subn: {world.out}: File exists\n"


# Help


def test_help_mentions_every_option(world):
    code, out, _ = world.run("--help")
    assert code == 0
    options = (
        "data schema out json epsilon method preset insiders noise update rounds encoding score choice split theta"
    )
    options += " degree rows key-bits parties partition crypto seed evaluate"
    for option in options.split():
        assert f"--{option}" in out
    assert "Exit codes: 0 done, 1 failed, 2 " in " ".join(out.split())
    assert "E1,E2,E3,E4" in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_command_introduces_itself(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "simulate" in out
    assert "differential privacy" in " ".join(out.split())


@pytest.mark.parametrize(("program", "run"), [("subn", main), ("subn-curator", curator_service), ("subn-party", party)])
def test_every_program_says_its_version(capsys, program, run):
    with pytest.raises(SystemExit) as stop:
        run(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"{program} {version('dp-subn')}\n"


def test_no_command_is_a_mistake(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
