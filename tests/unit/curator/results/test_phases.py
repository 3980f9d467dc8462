"""A run phase by phase: its networks and frontiers as the parties picked them, its views, and its pictures."""

from itertools import combinations, pairwise

import pytest

from curator.results import phase_pictures
from curator.results.phases import networks, phases
from curator.results.report import report_html, report_json
from protocol.messages.tasks import Placed
from protocol.run.synthesis import fitted
from tests.support.small_runs import BITS, CITIES, LONG, MIXED, NO_NOISE, Driver, random_codes, terms_of
from tests.unit.curator.results.test_report import drawn

ROWS = (300, 200, 100)


def driven(schema=MIXED, **wishes) -> Driver:
    terms = terms_of(schema, ROWS, **({"method": "dp-subn", "preset": "sound", "noise": "distributed"} | wishes))
    return Driver(terms, random_codes(schema, ROWS), clear=True)


def told(driver):
    terms, known = driver.terms, driver.state.knowledge
    return phases(terms, known, fitted(terms, known))


def test_turn_by_turn_the_network_grows_by_what_the_party_picked():
    driver, picked = driven(epsilon=3), {}
    while driver.state.step is not None:
        for party, reply in driver.replies().items():
            if isinstance(reply, Placed) and reply.step.startswith("frontier"):
                picked[reply.step] = {frozenset((child, *parents)) for child, parents in reply.families}
            driver.receive(party, reply)
    names, found = MIXED.names, networks(driver.terms, driver.state.knowledge)
    assert set(picked) <= {one["step"] for one in found}
    before: set[frozenset[str]] = set()
    for one in found:
        pairs, frontier = ({frozenset(pair) for pair in one[kind]} for kind in ("pairs", "frontier"))
        assert {frozenset(pair) for pair in one["new"]} == pairs - before
        assert {frozenset(pair) for pair in one["dropped"]} == frontier - pairs
        if one["step"] in picked:
            assert one["parties"] == [f"party-{one['step'][-1]}"]
            assert pairs - before == {frozenset(names[v] for v in pair) for pair in picked[one["step"]]}
            assert pairs - before <= frontier
        before = pairs


@pytest.mark.parametrize("update", ["accumulate", "joint"])
def test_a_frontier_tells_what_an_update_did_not_take(update):
    driver = driven(BITS, update=update, epsilon=3).finish()
    found = [one for one in networks(driver.terms, driver.state.knowledge) if one["stage"] == "update"]
    assert len(found) == sum(step.stage == "update" for step in driver.terms.steps)
    assert all(one["frontier"] for one in found)
    for one in found:
        taken = {*map(tuple, one["pairs"])} & {*map(tuple, one["frontier"])}
        assert len(one["frontier"]) == len(one["dropped"]) + len(taken)


def test_every_pair_of_columns_lies_in_one_view():
    driver = driven(epsilon=3).finish()
    held = told(driver)["views"]
    pairs = [pair for view in held["attributes"] for pair in combinations(sorted(view), 2)]
    assert sorted(pairs) == sorted(tuple(sorted(pair)) for pair in combinations(MIXED.names, 2))
    assert held["halves"] == (driver.terms.plan.views == "halves")


def test_distances_fall_to_nothing_and_only_models_of_all_tables_have_them():
    """Each phase that counts pairs brings the model closer to the last one, where there is next to no noise."""
    driver = driven(CITIES, method="guided", epsilon=str(NO_NOISE)).finish()
    found = told(driver)["distances"]
    assert found[-1]["distance"] == 0
    assert [one["tables"] for one in found] == [
        sum(one.step.startswith(stage["stage"]) for one in driver.state.knowledge.released) for stage in found
    ]
    assert found[0]["distance"] > 0.05 or len(found) == 1
    paper = driven(BITS, preset="paper", insiders=0).finish()
    assert told(paper)["distances"] == []


def test_phases_are_compared_with_a_model_of_the_same_kind():
    """The model that rows are drawn from smooths long columns in order, those that parties are sent do not."""
    driver = driven(LONG, epsilon="1/4").finish()
    update = next(one for one in told(driver)["distances"] if one["stage"] == "update")
    assert update["distance"] < 0.1  # under so much noise the last phase brings next to nothing


def test_methods_without_a_common_network_have_no_phases_to_draw():
    driver = driven(method="independent").finish()
    assert told(driver) == {"views": None, "networks": [], "distances": []}


def test_the_report_draws_every_phase_and_no_name_becomes_markup():
    driver = driven(epsilon=3).finish()
    terms, known = driver.terms, driver.state.knowledge
    report = report_json(terms, known, [], [], drawn(terms), bytes(32), "2026-11-19", told(driver))
    page = report_html(report)
    shown = phase_pictures.drawn_networks(report["phases"]["networks"])
    assert page.count("The network after") == len(shown) >= 4
    assert page.count('class="held"') == len(report["phases"]["views"]["attributes"])
    evil = report["phases"]["networks"][0] | {"new": [["<b>", "a&b"]], "pairs": [["<b>", "a&b"]]}
    assert "<b>" not in phase_pictures.network(["<b>", "a&b"], evil)


def test_a_picture_of_many_columns_stays_small():
    names = [f"attribute {number}" for number in range(200)]
    pairs = [list(pair) for pair in pairwise(names)]
    one = {"step": "initial/1", "new": [], "pairs": pairs, "dropped": pairs}
    assert len(phase_pictures.network(names, one)) < 60_000


def test_of_many_steps_the_last_of_each_phase_is_drawn():
    many = [{"stage": stage, "step": f"{stage}/{n}"} for stage in ("initial", "frontier") for n in range(1, 21)]
    few = [one for one in many if one["step"] in ("initial/1", "initial/20", "frontier/1")]
    assert [one["step"] for one in phase_pictures.drawn_networks(many)] == ["initial/20", "frontier/20"]
    assert [one["step"] for one in phase_pictures.drawn_networks(few)] == ["initial/20", "frontier/1"]
