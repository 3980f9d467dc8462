"""No room on either side: the run pauses, both sides say so, and it goes on when there is; nothing is paid twice."""

import resource

import httpx
import pytest

from curator.errors import StoreUnavailable
from tests.faults.processes import CURATOR
from tests.support.api import with_api
from tests.support.curator import Desk
from tests.support.effort import mostly_exhaustive

NO_LIMIT = resource.RLIM_INFINITY
PLAIN = {"noise": "distributed"}


def full_from(cluster, name, step):
    """From the moment that party-1 answers this step, no file of a process takes another byte."""

    def fill(exchange):
        if exchange.step == step and exchange.party == "party-1":
            cluster.limit_files(name, 1)

    cluster.proxy.before = fill


def readiness(cluster, name):
    url = [line["url"] for line in cluster.lines(name) if line["event"] == "listening"][-1]
    return httpx.get(f"{url}/readyz")


def what_party_says(cluster, name, words):
    def found():
        answer = readiness(cluster, name)
        return answer.status_code == 503 and words in answer.json()["reason"]

    cluster.until(found)


@pytest.mark.parametrize("step", mostly_exhaustive(["joining", "correlations", "update/1"], {1}))
def test_a_party_without_room_holds_the_run_and_says_why(cluster, step):
    full_from(cluster, "party-1", step)
    run = cluster.begin(**PLAIN)
    what_party_says(cluster, "party-1", "room")
    cluster.until(lambda: [one["party"] for one in cluster.state(run)["waiting_for"]] == ["party-1"])
    cluster.proxy.clear()
    cluster.limit_files("party-1", NO_LIMIT)
    cluster.finishes(run)


@pytest.mark.parametrize("step", mostly_exhaustive(["joining", "initial/1", "parameters"], {0}))
def test_a_curator_without_room_pauses_and_says_so(cluster, step):
    full_from(cluster, CURATOR, step)
    run = cluster.begin(**PLAIN)
    cluster.until(lambda: "paused" in (cluster.state(run)["reason"] or ""))
    assert "takes nothing more" in cluster.state(run)["reason"]
    what_party_says(cluster, "party-1", "takes nothing more")
    cluster.proxy.clear()
    cluster.limit_files(CURATOR, NO_LIMIT)
    cluster.finishes(run)
    with cluster.client() as client:
        kinds = [event["kind"] for event in client.events(run)]
    assert kinds.count("paused") == kinds.count("resumed") >= 1


@pytest.mark.exhaustive
def test_results_that_cannot_be_written_are_written_later(cluster):
    runs, aside = cluster.home / "runs", cluster.home / "aside"
    runs.mkdir(exist_ok=True)
    runs.rename(aside)
    runs.touch()  # where a directory should be: nothing can be written there
    run = cluster.begin(**PLAIN)
    cluster.until(lambda: "results cannot be written" in (cluster.state(run)["reason"] or ""))
    runs.unlink()
    aside.rename(runs)
    cluster.finishes(run)


@pytest.mark.exhaustive
def test_a_party_killed_without_room_goes_on_when_there_is_room(cluster):
    full_from(cluster, "party-1", "correlations")
    run = cluster.begin(**PLAIN)
    what_party_says(cluster, "party-1", "room")
    cluster.proxy.clear()
    cluster.kill("party-1")
    cluster.start("party-1")
    cluster.finishes(run)


def test_nobody_is_blamed_for_the_time_in_which_the_curator_could_not_store(tmp_path, monkeypatch):
    desk = Desk(tmp_path, rows=(30, 20))
    run = desk.run(step_seconds=100, join_seconds=100, **PLAIN)
    before = desk.views.run(run).deadline

    async def story(api):
        desk.clock.advance(60)
        with monkeypatch.context() as patch:
            for way in ("writing", "write"):
                patch.setattr(desk.store, way, no_room)
            assert (await api.party(0, "GET", "/v1/inbox")).status_code == 503
            desk.orchestrator.tick()
            shown = (await api.operator("GET", f"/v1/runs/{run}")).json()
            assert (shown["state"], shown["reason"]) == ("joining", "paused: no room")
            for _ in range(10):
                desk.clock.advance(60)
                desk.orchestrator.tick()
        desk.clock.advance(60)
        desk.orchestrator.tick()
        shown = desk.views.run(run)
        assert (shown.state, shown.deadline) == (
            "joining",
            before.fromtimestamp(before.timestamp() + 660, before.tzinfo),
        )
        await api.answer_all()
        await api.wait_until(run, "finished")

    with_api(desk, story)


def no_room(*_change):
    raise StoreUnavailable("no room")
