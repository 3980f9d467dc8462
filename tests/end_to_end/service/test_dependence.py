"""Runs that ask how strongly columns depend, between real processes, and homes that are opened again in the middle."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from protocol.run.agreement import agree
from protocol.run.curator import tasks
from protocol.stages.dependence import rows_below
from tests.end_to_end.cluster import cluster
from tests.end_to_end.service.test_runs import check_books
from tests.support.curator import Desk
from tests.support.fake_curator import FakeCurator
from tests.support.party import finish, killed_after, parties_of, run_terms
from tests.support.small_runs import BITS, FIFTY

NAMES = ("Nord", "West")


def test_a_run_over_http_counts_independent_columns_alone(no_process_is_left: None, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", FIFTY) as home:
        home.add(*NAMES, rows=4000)
        for number, name in enumerate(NAMES):
            data = np.random.default_rng(number)
            home.fill(name, [data.integers(0, 2, 4000).astype(np.uint8) for _ in FIFTY.names])
        home.acquaint(*NAMES)
        home.enrol(*NAMES)
        home.serve(*NAMES)
        wishes = {"epsilon": "20", "method": "guided", "insiders": 1}
        planned = home.http.post("/v1/plans", json=home.body(*NAMES, **wishes)).json()
        run = home.finished(*NAMES, **wishes)
        manifest = check_books(home, run)
        terms = agree(manifest.plan, FIFTY)
        assert planned["steps"][1]["name"] == "dependence"
        part = manifest.plan.dependence
        assert [(one.step, one.charge) for one in manifest.parties[0].receipts][1] == ("dependence", 20 * part)
        found = manifest.dependence
        assert found is not None
        assert (found.below, found.alone) == (rows_below(terms), True)
        report, released = json.loads(home.get(run, "report.json")), json.loads(home.get(run, "tables.json"))
        assert report["dependence"] == found.model_dump(mode="json")
        assert released["dependence"] == found.measured
        assert report["parties"][0]["phases"]["dependence"] == str(20 * part)
        counted = [one["variables"] for one in released["tables"] if one["step"] == "correlations"]
        assert counted == [[number] for number in range(50)]
        assert "<strong>Every column was counted alone.</strong>" in home.get(run, "report.html").decode()
        assert len(home.get(run, "table.csv", rows="50").splitlines()) == 51


ASKING: dict[str, Any] = {
    "method": "guided",
    "views": "pairs",
    "dependence": Fraction(1, 10),
    "alone_below": Fraction(1, 5),
}


def test_a_party_that_is_killed_after_the_question_answers_what_follows(tmp_path: Path) -> None:
    fake = FakeCurator()
    parties = parties_of(tmp_path, fake, schema=BITS)
    fake.start(run_terms(schema=BITS, **ASKING))
    finish(fake, killed_after(2, parties), "run-1")  # joining, dependence
    assert fake.runs["run-1"].status == "finished"


def test_a_curator_that_is_killed_after_the_answer_asks_for_the_same(tmp_path: Path) -> None:
    desk = Desk(tmp_path, rows=(900, 800, 700), schema=FIFTY)
    run = desk.run(noise="distributed", method="guided", epsilon="20")
    while desk.orchestrator.live[run].at.state.step.name != "correlations":
        for party in desk.parties:
            desk.answer_one(party)
    state = desk.orchestrator.live[run].at.state
    found, asked = state.knowledge.dependence, [task.tables for task in tasks(state).values()]
    assert found is not None
    desk.restart()
    state = desk.orchestrator.live[run].at.state
    assert state.knowledge.dependence == found
    assert [task.tables for task in tasks(state).values()] == asked
    desk.finish(run)
