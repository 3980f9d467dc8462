"""What a finished run publishes, and what can be read back from it."""

import csv
import json

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.results.publication import load_knowledge, synthetic_labels
from protocol.run.synthesis import synthetic_codes
from tests.support.curator import Desk, OneKey
from tests.support.small_runs import CITIES, MIXED, NO_NOISE, pooled

WAYS = [
    {"method": "guided"},
    {"update": "accumulate"},
    {"update": "joint", "encoding": "hierarchical"},
    {"method": "privbayes", "encoding": "binary"},
    {"method": "privabn", "encoding": "hierarchical"},
    {"method": "jtree"},
    {"method": "jtree", "encoding": "binary"},
    {"method": "dp-ccbn", "degree": 1},
    {"method": "independent"},
]


def finished(tmp_path, small_secret, epsilon: object = "50", **wishes) -> tuple[Desk, str]:
    desk = Desk(tmp_path, schema=MIXED, rows=(400, 250), crypto=OneKey(small_secret))
    run = desk.run(noise="distributed", epsilon=str(epsilon), **wishes)
    desk.finish(run)
    desk.store.close()
    return desk, run


@pytest.mark.parametrize("wishes", WAYS)
def test_what_was_published_draws_the_same_rows(tmp_path, small_secret, wishes):
    """The published table again from the published network and noisy tables, with the seed that the store keeps."""
    desk = Desk(tmp_path, schema=MIXED, rows=(400, 250), crypto=OneKey(small_secret))
    run = desk.run(noise="distributed", epsilon="50", rows=200, **wishes)
    desk.answer_all()
    known = desk.orchestrator.live[run].at.state.knowledge
    desk.orchestrator.tick()
    folder, terms = desk.orchestrator.folder(run), desk.views.terms(run)
    read = load_knowledge(folder, terms)
    first, second = (
        [np.concatenate(c) for c in zip(*synthetic_codes(terms, k, 500, Stream.keyed(b"rows")), strict=True)]
        for k in (known, read)
    )
    assert all((one == other).all() for one, other in zip(first, second, strict=True))
    with (folder / "table.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == MIXED.names
    assert len(rows) == 200
    desk.store.close()


def test_merged_categories_are_published_and_read_back(tmp_path, small_secret):
    desk = Desk(tmp_path, schema=CITIES, rows=(400, 250), crypto=OneKey(small_secret))
    run = desk.run(noise="distributed", epsilon="1", method="guided", split=["1/10", "1/10", "2/5", "2/5"])
    desk.finish(run)
    folder, terms = desk.orchestrator.folder(run), desk.views.terms(run)
    content = json.loads((folder / "tables.json").read_text())
    (merged,) = content["merged"]
    assert merged["variable"] == 2
    assert content["variables"][3] == {"name": "city (merged)", "size": max(merged["groups"]) + 1}
    assert any(3 in one["variables"] for one in content["tables"])
    known = load_knowledge(folder, terms)
    assert known.merged == ((2, tuple(merged["groups"])),)
    with (folder / "table.csv").open(newline="") as file:
        assert sum(1 for _ in csv.reader(file)) == 651
    report = json.loads((folder / "report.json").read_text())
    assert "city (merged)" in {name for one in report["released"] for name in one["variables"]}
    (told,) = report["analysis"]["merged"]
    assert told["attribute"] == "city"
    last = max(merged["groups"])
    assert told["categories"] == [f"city {code}" for code, group in enumerate(merged["groups"]) if group == last]
    assert f"city</bdi> ({len(told['categories'])})" in (folder / "report.html").read_text()
    pairs = {(edge["parent"], edge["child"]) for edge in report["analysis"]["edges"]}
    assert any("city" in pair for pair in pairs)
    desk.store.close()


def test_the_same_seed_draws_the_same_table(tmp_path, small_secret):
    desk, run = finished(tmp_path, small_secret)
    terms = desk.views.terms(run)
    known = load_knowledge(desk.orchestrator.folder(run), terms)
    drawn = (synthetic_labels(terms, known, 50, seed) for seed in (b"1", b"1", b"2"))
    one, same, other = ([[*column] for columns in batches for column in columns] for batches in drawn)
    assert one == same != other
    desk.store.close()


def test_tables_are_the_pooled_counts_where_there_is_no_noise(tmp_path, small_secret):
    desk, run = finished(tmp_path, small_secret, epsilon=NO_NOISE, update="accumulate")
    content = json.loads((desk.orchestrator.folder(run) / "tables.json").read_text())
    columns = pooled(MIXED, desk.codes)
    sizes = [variable["size"] for variable in content["variables"]]
    checked = [one for one in content["tables"] if one["rows"] == 650]
    assert {one["step"] for one in checked} == {"correlations", "parameters"}
    for one in checked:
        expected = np.zeros([sizes[v] for v in one["variables"]], dtype=int)
        np.add.at(expected, tuple(columns[v] for v in one["variables"]), 1)
        assert one["counts"] == expected.ravel().tolist()
        assert one["variance"] < 1e-300


def test_the_network_says_every_attribute_once(tmp_path, small_secret):
    desk, run = finished(tmp_path, small_secret)
    network = json.loads((desk.orchestrator.folder(run) / "network.json").read_text())
    assert sorted(edge["attribute"] for edge in network["edges"]) == sorted(MIXED.names)
    names = [variable["name"] for variable in network["variables"]]
    assert [
        {"attribute": names[child], "parents": [names[p] for p in parents], "party": ""}
        for child, *parents in network["networks"][0]
    ] == network["edges"]


def test_independent_models_have_a_network_for_each_party(tmp_path, small_secret):
    desk, run = finished(tmp_path, small_secret, method="independent")
    network = json.loads((desk.orchestrator.folder(run) / "network.json").read_text())
    assert network["rows"] == [400, 250]
    assert len(network["networks"]) == 2
    assert {edge["party"] for edge in network["edges"]} == {"party-1", "party-2"}
