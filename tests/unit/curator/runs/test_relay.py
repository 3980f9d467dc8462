"""Long polls and event streams: they wake when something happens, end when the run does, and let go at shutdown."""

import asyncio
import time

import pytest

from curator.runs import relay as relay_module
from curator.runs.relay import Relay
from curator.runs.views import RunViews
from tests.support.curator import Desk, OneKey

PLAIN = {"noise": "distributed", "epsilon": "50"}
SOON = 5  # seconds; whoever waits that long waits in vain


@pytest.fixture
def desk(tmp_path, small_secret):
    opened = Desk(tmp_path, crypto=OneKey(small_secret))
    yield opened
    opened.store.close()


async def play(desk: Desk, relay: Relay, number: int) -> int:
    """One party by long polls, until no run goes on; how much it answered."""
    party, answered = desk.parties[number], 0
    while any(entry.state in ("joining", "running") for entry in desk.views.runs(10)):
        if (found := await relay.inbox(party.name, 0.5)) is not None:
            await asyncio.to_thread(desk.deliver, party, party.handle(*found))
            answered += 1
    return answered


async def all_events(relay: Relay, run: str, after: int = 0) -> list[str]:
    return [event.kind async for event in relay.events(run, after) if event is not None]


def test_a_run_by_long_polls_ends_by_itself(desk):
    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            watching = asyncio.create_task(all_events(relay, run))
            answered = await asyncio.gather(*(play(desk, relay, number) for number in range(3)))
            kinds = await asyncio.wait_for(watching, SOON)
            assert kinds.count("answered") == sum(answered)
            assert kinds[-1] == "ended"
            assert await all_events(relay, run, after=len(kinds) - 1) == ["ended"]
            assert await all_events(relay, run, after=len(kinds)) == []

    run = desk.run(**PLAIN)
    asyncio.run(scene())
    assert desk.views.run(run).state == "finished"


def test_a_task_wakes_who_waits_for_it(desk):
    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            waiting = asyncio.create_task(relay.inbox("party-2", SOON))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            run = await asyncio.to_thread(lambda: desk.run(**PLAIN))
            found = await asyncio.wait_for(waiting, 1)
            assert found is not None
            assert found[0] == run
            assert await relay.inbox("party-2", 0, skip=(run,)) is None

    asyncio.run(scene())


def test_the_end_of_a_run_ends_its_parties_waiting(desk):
    """A run may be cancelled while a party waits: what it has set aside must not stay so for long."""

    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            assert await asyncio.to_thread(desk.answer_one, desk.parties[0])
            waiting = asyncio.create_task(relay.inbox("party-1", 600))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await asyncio.to_thread(desk.orchestrator.cancel, run)
            assert await asyncio.wait_for(waiting, SOON) is None

    run = desk.run(**PLAIN)
    asyncio.run(scene())


def test_an_answer_that_brings_no_task_wakes_nobody(desk, monkeypatch):
    """Of K parties, each answer of a step would wake K that wait: K squared looks for nothing."""
    looks: list[str] = []
    real = desk.orchestrator.inbox
    monkeypatch.setattr(desk.orchestrator, "inbox", lambda party, skip: looks.append(party) or real(party, skip))

    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            tasks = {party.name: await relay.inbox(party.name, 0) for party in desk.parties}
            first, second, third = desk.parties
            await asyncio.to_thread(desk.deliver, first, first.handle(*tasks[first.name]))
            waiting = asyncio.create_task(relay.inbox(first.name, SOON))
            await asyncio.sleep(0.05)
            looks.clear()
            await asyncio.to_thread(desk.deliver, second, second.handle(*tasks[second.name]))
            await asyncio.sleep(0.05)
            assert not looks
            await asyncio.to_thread(desk.deliver, third, third.handle(*tasks[third.name]))
            assert await asyncio.wait_for(waiting, SOON) is not None

    desk.run(**PLAIN)
    asyncio.run(scene())


def test_waiting_ends_when_its_time_is_over(desk):
    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            started = time.monotonic()
            assert await relay.inbox("party-1", 0) is None
            assert await relay.inbox("party-1", 0.1) is None
            assert 0.1 <= time.monotonic() - started < SOON

    asyncio.run(scene())


def test_a_silent_stream_says_that_it_is_there(desk, monkeypatch):
    monkeypatch.setattr(relay_module, "SILENCE_SECONDS", 0.02)

    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            stream = relay.events(run, after=2)
            assert await anext(stream) is None
            await asyncio.to_thread(desk.orchestrator.cancel, run)
            async for event in stream:
                if event is not None:
                    assert (event.kind, event.data["state"]) == ("ended", "cancelled")

    run = desk.run(**PLAIN)
    asyncio.run(scene())


def test_shutdown_lets_everybody_go(desk):
    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            polling = asyncio.create_task(relay.inbox("party-1", 30, skip=(run,)))
            watching = asyncio.create_task(all_events(relay, run))
            await asyncio.sleep(0.1)
            relay.close()
            assert await asyncio.wait_for(polling, SOON) is None
            assert await asyncio.wait_for(watching, SOON) == ["created", "step"]

    run = desk.run(**PLAIN)
    started = time.monotonic()
    asyncio.run(scene())
    assert time.monotonic() - started < SOON


def test_deadlines_pass_without_anybody_asking(desk):
    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            desk.clock.advance(8 * 24 * 3600)
            assert (await asyncio.wait_for(all_events(relay, run), SOON))[-1] == "ended"

    desk.settings = desk.settings.model_copy(update={"tick_seconds": 0.01})
    desk.restart()
    run = desk.run(**PLAIN)
    asyncio.run(scene())
    assert desk.views.run(run).state == "timed_out"


def test_what_happens_to_other_runs_is_not_looked_up(desk, monkeypatch):
    quiet, other = desk.run(key="quiet", **PLAIN), desk.run(key="other", **PLAIN)
    seen, looked_up, events = len(desk.views.events(quiet)), [], RunViews.events

    def counted(views, run, after):
        looked_up.append(run)
        return events(views, run, after)

    monkeypatch.setattr(RunViews, "events", counted)

    async def scene() -> None:
        async with Relay(desk.orchestrator) as relay:
            stream = relay.news(quiet, seen)
            waiting = asyncio.create_task(anext(stream))
            while not looked_up:
                await asyncio.sleep(0.01)
            for _ in range(5):
                desk.orchestrator.changed(other)
                await asyncio.sleep(0.01)
            assert looked_up == [quiet]
            await asyncio.to_thread(desk.orchestrator.cancel, quiet)
            assert [event.kind for event in await asyncio.wait_for(waiting, SOON)] == ["ended"]

    asyncio.run(scene())
