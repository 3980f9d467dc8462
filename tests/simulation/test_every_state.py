"""Every state of a run of three parties, for every method and update rule: none is a dead end, and every one ends."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise

import pytest

from protocol.errors import OutOfTurn
from protocol.plan.step import Step
from protocol.stages.methods import METHODS
from protocol.tables.schema import Schema
from tests.simulation import homes
from tests.simulation.exploration import Exploration, Key
from tests.support.effort import mostly_exhaustive
from tests.support.small_runs import SEARCHED, random_codes, terms_of

ROWS = homes.ROWS
SINGLE = Schema.parse({"title": "one", "attributes": [{"name": "a1", "kind": "categorical", "values": ["n", "y"]}]})
# What is explored, and how many states it has. A party is before a step, has answered it on its way to the curator, or
# has refused; the curator has some of the answers; and a run ends by each move that can end it.
_QUARTERS = {"split": (5, 5, 5, 5), "further": (1, 0, 1)}
_TURNS = {"noise": "distributed", "update": "turns"}
_GUIDED = {"method": "guided", "views": "single", **_QUARTERS}
_EDGES = {"split": (9, 0, 0, 9), "further": (0, 0, 0), "edges": Fraction(1, 10)}
_ASKING = {
    "views": "pairs",
    "split": (9, 0, 0, 9),
    "further": (0, 0, 0),
    "dependence": Fraction(1, 10),
    "alone_below": Fraction(1, 10),
}
_BOTH = {"split": (8, 0, 0, 8)}
PLANS: Mapping[str, tuple[dict[str, object], int]] = {
    "turns": ({**_TURNS, **_QUARTERS}, 1017),
    "turns, halves": ({**_TURNS, "views": "halves", "merging": True, **_QUARTERS}, 1495),
    "turns, selected": ({**_TURNS, "noise": "selected", **_QUARTERS}, 1017),
    "turns without a network": ({**_TURNS, **_QUARTERS, "split": (10, 0, 5, 5)}, 981),
    "a single column": ({**_TURNS, "views": "single", "split": (10, 0, 0, 10), "further": (0, 0, 0)}, 718),
    "accumulate": ({"noise": "distributed", "update": "accumulate"}, 790),
    "accumulate, selected": ({"noise": "selected", "update": "accumulate"}, 790),
    "joint": ({"noise": "local", "update": "joint"}, 1232),
    "replace": ({"noise": "local", "update": "replace", "preset": "paper", "insiders": 0}, 876),
    "guided": ({"noise": "distributed", "rounds": 2, **_GUIDED}, 1280),
    "guided, selected": ({"noise": "selected", "rounds": 1, **_GUIDED}, 1017),
    "guided, views": ({"noise": "distributed", "rounds": 1, **_GUIDED, "views": "pairs"}, 1017),
    "guided, a tree": ({"method": "guided", "views": "single", "split": (5, 5, 0, 10)}, 754),
    "guided, single columns": ({"method": "guided", "views": "single", "split": (10, 0, 0, 10)}, 718),
    "guided without picks": ({"noise": "distributed", "method": "guided", "split": (10, 0, 0, 10)}, 718),
    "views alone": ({"noise": "distributed", "update": "accumulate", "split": (10, 0, 0, 10)}, 718),
    "picks alone": ({"noise": "distributed", "update": "accumulate", "split": (0, 10, 0, 10)}, 515),
    "views and updates": ({"noise": "distributed", "update": "accumulate", "split": (5, 0, 5, 10)}, 754),
    "parameters alone": ({"noise": "distributed", "update": "accumulate", "split": (0, 0, 0, 20)}, 479),
    "dp-ccbn": ({"noise": "distributed", "method": "dp-ccbn"}, 957),
    "dp-ccbn, selected": ({"noise": "selected", "method": "dp-ccbn"}, 957),
    "dp-ccbn, parameters alone": ({"noise": "distributed", "method": "dp-ccbn", "split": (0, 20)}, 479),
    "privbayes": ({"noise": "distributed", "method": "privbayes", "split": (10, 10)}, 515),
    "privbayes, selected": ({"noise": "selected", "method": "privbayes", "split": (10, 10)}, 515),
    "privbayes, parameters alone": ({"method": "privbayes", "split": (0, 20)}, 479),
    "privabn": ({"noise": "distributed", "method": "privabn", "split": (10, 10)}, 515),
    "privabn, parameters alone": ({"method": "privabn", "split": (0, 20)}, 479),
    "jtree": ({"noise": "distributed", "method": "jtree", "split": (10, 10), "views": "pairs"}, 718),
    "jtree, selected": ({"noise": "selected", "method": "jtree", "split": (10, 10), "views": "pairs"}, 718),
    "jtree, halves": ({"noise": "distributed", "method": "jtree", "split": (10, 10), "views": "halves"}, 957),
    "jtree, parameters alone": ({"method": "jtree", "split": (0, 20)}, 479),
    "independent": ({"method": "independent"}, 479),
    "edges, halves": ({**_TURNS, "views": "halves", "merging": True, **_EDGES}, 1196),
    "edges, views": ({**_TURNS, "views": "pairs", **_EDGES}, 957),
    "guided, edges": ({"method": "guided", "views": "single", **_EDGES}, 957),
    "guided, dependence": ({"method": "guided", "noise": "distributed", **_ASKING}, 957),
    "dependence, turns": ({**_TURNS, **_ASKING}, 957),
    "guided, edges, views": ({"method": "guided", "noise": "distributed", "views": "pairs", **_EDGES}, 957),
    "guided, edges, dependence": ({"method": "guided", "noise": "distributed", **_EDGES, **_ASKING, **_BOTH}, 1196),
    "turns, edges, dependence": ({**_TURNS, **_EDGES, **_ASKING, **_BOTH}, 1196),
}


@cache
def explored(plan: str) -> Exploration:
    wishes, _ = PLANS[plan]
    schema = SINGLE if plan == "a single column" else SEARCHED if "edges" in wishes else homes.SCHEMA
    terms = terms_of(schema, ROWS, 20, **wishes)
    return Exploration(terms, random_codes(schema, ROWS), homes.secret())


@pytest.fixture(params=mostly_exhaustive(PLANS, range(0, len(PLANS), 5)))
def plan(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_these_are_all_states(plan: str) -> None:
    assert len(explored(plan).situations) == PLANS[plan][1]


def test_no_state_is_a_dead_end_and_every_way_ends(plan: str) -> None:
    """Something can go on in every state that is not over, and no way leads back to where it has been."""
    found = explored(plan)
    for key, situation in found.situations.items():
        going_on = set(found.moves[key]) - {"cancel", "deadline"}
        assert bool(going_on) != situation.is_over, key
    list(TopologicalSorter({key: moves.values() for key, moves in found.moves.items()}).static_order())


def test_a_run_ends_in_a_known_way(plan: str) -> None:
    ends = {
        "finished" if one.ending is None else one.ending.state
        for one in explored(plan).situations.values()
        if one.is_over
    }
    assert ends == {"finished", "refused", "failed", "cancelled", "timed_out"}


def test_every_run_that_nobody_refuses_can_still_finish(plan: str) -> None:
    found = explored(plan)
    hopeful = _leading_to(found, [key for key, one in found.situations.items() if one.ending is None and one.is_over])
    for key, one in found.situations.items():
        if not one.is_over:
            assert (key in hopeful) != any(party.has_refused for party in one.parties), key


def test_nothing_out_of_turn_is_taken(plan: str) -> None:
    """An answer again, or to another step; a question that was answered, or that is not the party's next one."""
    found = explored(plan)
    tried = list(found.out_of_turn())
    assert [name for name, move in tried if not _is_refused(move)] == []
    assert len(tried) > len(found.terms.steps) ** 2


def test_a_restarted_curator_stands_where_it_stood(plan: str) -> None:
    """With the same tasks, byte for byte, whichever of its answers it had when it was killed."""
    found = explored(plan)
    standing = {one.key[:2]: one for one in found.situations.values()}
    for one in standing.values():
        state, again = one.standing.state, found.rebuilt(one)
        assert (again.state.position, set(again.state.replies)) == (state.position, set(state.replies))
        assert again.tasks == one.standing.tasks


def test_every_order_of_stages_that_methods_know_is_explored() -> None:
    """With the plans above, so that none of their states is missed."""
    seen = {(explored(plan).terms.plan.method, a.stage, b.stage) for plan in PLANS for a, b in _steps(plan)}
    assert seen == {
        (name, before, after)
        for name, method in METHODS.items()
        for before, follow in method.order.items()
        for after in follow
    }


def _is_refused(move: Callable[[], object]) -> bool:
    try:
        move()
    except OutOfTurn:
        return True
    return False


def _steps(plan: str) -> list[tuple[Step, Step]]:
    return list(pairwise(explored(plan).terms.steps))


def _leading_to(found: Exploration, ends: list[Key]) -> set[Key]:
    """The states from which a way leads to one of these."""
    before: dict[Key, list[Key]] = {key: [] for key in found.moves}
    for key, moves in found.moves.items():
        for there in moves.values():
            before[there].append(key)
    reached, waiting = set(ends), list(ends)
    while waiting:
        waiting += (new := [key for key in before[waiting.pop()] if key not in reached])
        reached |= set(new)
    return reached
