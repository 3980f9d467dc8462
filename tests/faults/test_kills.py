"""kill -9 of real processes over real sockets, as requests arrive, as answers leave, and at moments in between.

What must hold after each is in `tests.faults.books`; deaths at every single effect are in `test_deaths.py`.
"""

import random
import time
from contextlib import closing

import numpy as np
import pytest

from tests.faults.processes import CURATOR, Cluster
from tests.faults.trap import STEPS, Trap
from tests.support.effort import mostly_exhaustive
from tests.support.small_runs import FIFTY, SEARCHED

DELAYS = [0.02, 0.06, 0.1, 0.14, 0.18, 0.24, 0.3, 0.4]


def generated(seed, count):
    """Steps are taken in turn, so that every one is hit; who dies and when is drawn."""
    draw = random.Random(seed)
    cases = []
    for number in range(count):
        step = STEPS[number % len(STEPS)]
        victim = [CURATOR, "party-1", "party-2"][(number + number // len(STEPS)) % 3]
        cases.append((victim, step, draw.choice(["lost before", "lost after", "after, but heard", "task taken"])))
    return cases


# Every other method, with a budget of which its choices get a part however few rows there are, and its steps.
HALVES = {"split": ["1/2", "1/2"]}
METHODS = {
    "guided": ({"split": ["1/4"] * 4, "rounds": 1}, ["joining", "levels", "initial/1", "initial/2", "parameters"]),
    "privbayes": (HALVES, ["joining", "initial/1", "initial/2", "parameters"]),
    "privabn": (HALVES, ["joining", "growth/1", "growth/2", "parameters"]),
    "jtree": (HALVES, ["joining", "correlations", "parameters"]),
    "dp-ccbn": ({}, ["joining", *(f"candidates/{number}" for number in range(1, 5)), "parameters"]),
    "independent": ({"noise": None}, ["joining", "models"]),
}
BOUNDARIES = [
    (method, step, victim, moment)
    for method, (_, steps) in METHODS.items()
    for number, step in enumerate(steps)
    for victim, moment in [
        (CURATOR, ("lost before", "lost after", "after, but heard")[number % 3]),
        (f"party-{number % 2 + 1}", ("lost after", "after, but heard", "lost before")[number % 3]),
    ]
]


def all_alike(schema, rows):
    return [[np.zeros(count, np.uint8) for _ in schema.sizes] for count in rows]


def restarted_and_finished(cluster, run):
    cluster.start_again()
    cluster.finishes(run)


def killed_and_finished(cluster, victim, step, moment, **wishes):
    trap = Trap(cluster, victim, step, moment)
    run = cluster.begin(**wishes)
    assert trap.sprung.wait(60)
    cluster.proxy.clear()
    restarted_and_finished(cluster, run)
    return run


@pytest.mark.parametrize(
    ("victim", "step", "moment"), mostly_exhaustive(generated(seed=1, count=21), range(0, len(STEPS), 3))
)
def test_killed_at_the_boundary_of_a_step(cluster, victim, step, moment):
    killed_and_finished(cluster, victim, step, moment)


@pytest.mark.parametrize(
    ("method", "step", "victim", "moment"),
    mostly_exhaustive(BOUNDARIES, [BOUNDARIES.index(("jtree", "parameters", CURATOR, "after, but heard"))]),
)
def test_killed_at_the_boundary_of_a_step_of_any_method(cluster, method, step, victim, moment):
    wishes, steps = METHODS[method]
    run = killed_and_finished(cluster, victim, step, moment, method=method, update=None, **wishes)
    assert {reply.step for reply in cluster.replies(run)} == set(steps)


@pytest.mark.parametrize("delay", mostly_exhaustive(DELAYS, {3}))
@pytest.mark.parametrize("victim", mostly_exhaustive([CURATOR, "party-1"], {0}))
def test_killed_at_some_moment(cluster, victim, delay):
    run = cluster.begin()
    time.sleep(delay)
    cluster.kill(victim)
    restarted_and_finished(cluster, run)


def test_everybody_is_killed_at_once(cluster):
    Trap(cluster, "party-1", "update/1", "lost after")
    run = cluster.begin()
    cluster.until(lambda: "party-1" not in cluster.alive)
    cluster.proxy.clear()
    for name in (CURATOR, "party-2"):
        cluster.kill(name)
    for name in ("party-2", "party-1", CURATOR):
        cluster.start(name, wait=False)
    cluster.finishes(run)


@pytest.mark.parametrize(
    ("victim", "step", "moment"),
    mostly_exhaustive(
        [
            ("party-1", "levels", "lost after"),
            (CURATOR, "edges", "lost after"),
            (CURATOR, "levels", "lost before"),
            ("party-2", "edges", "after, but heard"),
        ],
        set(),
    ),
)
def test_killed_while_edges_of_bins_are_found_and_told(tmp_path, victim, step, moment):
    with closing(Cluster(tmp_path / "cluster", (60, 40), SEARCHED)) as own:
        killed_and_finished(own, victim, step, moment, method="guided", update=None, edges="1/10")


@pytest.mark.parametrize(
    ("victim", "step", "moment"),
    mostly_exhaustive(
        [
            (CURATOR, "dependence", "lost after"),
            ("party-1", "dependence", "after, but heard"),
            (CURATOR, "correlations", "lost before"),
            ("party-2", "correlations", "lost after"),
        ],
        {0},
    ),
)
def test_killed_while_it_is_asked_how_strongly_columns_depend(tmp_path, monkeypatch, victim, step, moment):
    # Columns of one value: they are counted alone, and their model is fitted at once.
    monkeypatch.setattr("tests.faults.processes.random_codes", all_alike)
    with closing(Cluster(tmp_path / "cluster", (9000, 8000), FIFTY)) as own:
        run = killed_and_finished(own, victim, step, moment, method="guided", update=None, epsilon="2")
        assert "dependence" in {reply.step for reply in own.replies(run)}


@pytest.mark.parametrize(("victim", "step", "moment"), mostly_exhaustive(generated(seed=2, count=5), {1}))
def test_killed_with_encrypted_sums(cluster, victim, step, moment):
    killed_and_finished(cluster, victim, step, moment, noise="selected")


def test_a_home_is_served_by_one_process_and_free_again_when_that_is_killed(cluster):
    first = cluster.alive["party-1"]
    cluster.start("party-1", wait=False)
    cluster.gives_up("party-1", 1)
    assert f"process {first.pid} serves this home already" in cluster.log("party-1").read_text()
    cluster.alive["party-1"] = first
    cluster.kill("party-1")
    cluster.start("party-1")
