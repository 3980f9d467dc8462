"""A run that finds the edges of bins, between real processes, and a home that is opened again in the middle of one."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from protocol.run.agreement import agree
from protocol.tables.batches import batched
from protocol.tables.coding import Coder
from protocol.tables.found_edges import with_edges
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import cluster
from tests.end_to_end.service.test_runs import check_books
from tests.support.curator import Desk
from tests.support.fake_curator import FakeCurator
from tests.support.party import finish, killed_after, parties_of, run_terms
from tests.support.small_runs import SEARCHED

NAMES = ("Nord", "West")


def test_a_run_over_http_publishes_the_edges_that_it_has_found(no_process_is_left: None, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", SEARCHED) as home:
        home.add(*NAMES, rows=300)
        home.acquaint(*NAMES)
        home.enrol(*NAMES)
        home.serve(*NAMES)
        wishes = {"epsilon": "4", "method": "guided", "edges": "1/8", "insiders": 1}
        planned = home.http.post("/v1/plans", json=home.body(*NAMES, **wishes)).json()
        run = home.finished(*NAMES, **wishes)
        manifest = check_books(home, run)
        terms = agree(manifest.plan, SEARCHED)
        assert planned["steps"][1]["name"] == "edges"
        assert [(one.step, one.charge) for one in manifest.parties[0].receipts][1] == ("edges", Fraction(1, 2))
        told = json.loads(home.get(run, "tables.json"))["grids"]
        edges = tuple((one["variable"], tuple(one["starts"])) for one in told)
        assert [len(one["counts"]) for one in told] == [60, 41]
        schema = Schema.parse(home.get(run, "schema.json"))
        assert schema == with_edges(SEARCHED, edges)
        assert Schema.parse(manifest.schema_text) == SEARCHED
        _rows_fit(schema, home.get(run, "table.csv"))
        _rows_fit(schema, home.get(run, "table.csv", rows="50"))
        report = json.loads(home.get(run, "report.json"))
        assert report["parties"][0]["phases"]["edges"] == str(terms.plan.edges * 4)
        assert any("finds edges" in why for why in report["why"])
        assert b"edges" in home.get(run, "report.html")


def _rows_fit(schema: Schema, table: bytes) -> None:
    header, *rows = csv.reader(io.StringIO(table.decode()))
    coder = Coder(schema)
    coder.columns(header)
    assert rows
    assert coder.problems(batched(rows, len(header))) == []


WISHES: dict[str, Any] = {"method": "guided", "edges": Fraction(1, 10)}


def test_a_party_that_is_killed_after_it_was_told_the_edges_counts_in_their_bins(tmp_path: Path) -> None:
    fake = FakeCurator()
    parties = parties_of(tmp_path, fake, schema=SEARCHED)
    fake.start(run_terms(schema=SEARCHED, **WISHES))
    finish(fake, killed_after(3, parties), "run-1")  # joining, edges, levels
    assert fake.runs["run-1"].status == "finished"


def test_a_curator_that_is_killed_after_it_has_found_the_edges_tells_the_same(tmp_path: Path) -> None:
    desk = Desk(tmp_path, rows=(60, 50, 40), schema=SEARCHED)
    run = desk.run(noise="distributed", method="guided", edges="1/10")
    while desk.orchestrator.live[run].at.state.step.name != "levels":
        for party in desk.parties:
            desk.answer_one(party)
    told = desk.orchestrator.live[run].at.state.knowledge.edges
    assert len(told) == 2
    desk.restart()
    assert desk.orchestrator.live[run].at.state.knowledge.edges == told
    desk.finish(run)
