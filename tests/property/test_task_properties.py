"""Whatever a curator asks, a party answers it or refuses it clearly, and blames the curator."""

import copy
from functools import cache
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Reply, Task
from protocol.run.party import answer, check
from tests.support.effort import examples
from tests.support.small_runs import CITIES, Driver, random_codes, terms_of

ROWS = (60, 40)
SIZES = (2, 3, 20)
INDEX = st.integers(0, 4)
VARIABLES = st.lists(INDEX, max_size=4).map(tuple)


@cache
def at(step: str) -> tuple[Driver, Task]:
    terms = terms_of(CITIES, ROWS, 20, method="guided", views="single", noise="local", further=(1, 1))
    run = Driver(terms, random_codes(CITIES, ROWS), clear=True).run_to(step)
    return run, run.tasks()[0]


def asked(step: str, changes: dict[str, Any]) -> Reply | None:
    """The answer, or None if it was refused as the curator's fault; anything else fails the test."""
    run, task = at(step)
    try:
        state = copy.copy(run.parties[0])
        checked = check(state, task.model_copy(update=changes))
        _, reply = answer(state, checked, run.rows[0], Stream.keyed(b"question"))
    except FailedCheck as error:
        if error.culprit != CURATOR:
            raise
        return None
    return reply


@st.composite
def mergings(draw: st.DrawFn) -> tuple[tuple[int, tuple[int, ...]], ...]:
    found = []
    for base in sorted(draw(st.sets(st.integers(0, 3), max_size=3))):
        size = SIZES[base] if base < 3 and draw(st.integers(0, 4)) else draw(st.integers(1, 5))
        groups = draw(st.integers(1, size))
        found.append((base, tuple(code % groups for code in range(size))))
    return tuple(found)


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """Often with as many bytes as such a model has, of any weights."""
    merged = draw(mergings())
    cliques = tuple(draw(st.lists(VARIABLES, max_size=4)))
    parents = tuple(draw(st.integers(0, 3)) for _ in cliques)
    sizes = dict(enumerate(SIZES)) | {base: max(groups) + 1 for base, groups in merged}
    numbers = sum(int(np.prod([sizes.get(v, 1) for v in clique])) for clique in cliques)
    numbers += draw(st.sampled_from([0, 0, 0, 1]))
    weight = draw(st.sampled_from([0, 1, 2**32, 2**64 - 1]))
    blob = np.full(numbers, weight, dtype="<u8").tobytes()
    return {"merged": merged, "cliques": cliques, "parents": parents, "blob": blob}


@given(models())
@settings(max_examples=examples(150), deadline=None)
def test_any_model_is_used_or_refused(model):
    asked("further/1", model)


def test_a_model_of_single_variables_is_used():
    blob = np.ones(sum(SIZES), dtype="<u8").tobytes()
    assert asked("further/1", {"merged": (), "cliques": ((0,), (1,), (2,)), "parents": (0, 0, 0), "blob": blob})


@given(st.lists(VARIABLES, max_size=4).map(tuple))
@settings(max_examples=examples(80), deadline=None)
def test_any_further_pairs_are_taken_or_refused(further):
    asked("further/1", {"further": further})


@given(st.lists(VARIABLES, max_size=4).map(tuple), mergings())
@settings(max_examples=examples(200), deadline=None)
def test_any_tables_are_counted_or_refused(tables, merged):
    asked("tables/1", {"tables": tables, "merged": merged})
