"""The path of a row in docs/architecture.md is the path that a run of real parties with a real curator takes."""

import asyncio
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

import httpx

from tests.documents.test_architecture import named, stops
from tests.support.api import Api, with_api
from tests.support.curator import Desk
from tests.support.party import Party, make_home

PATIENCE = 60.0  # seconds until the run's end is missed


@contextmanager
def seeing_calls(codes: dict[CodeType, str]) -> Iterator[list[str]]:
    """Collect the names of these functions in the order of their calls, in all threads that begin meanwhile."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            seen.append(codes[frame.f_code])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def homes(tmp_path: Path, desk: Desk, api: Api) -> list[Party]:
    """Parties with homes of their own in place of the desk's, which the curator knows already."""
    curator: Any = SimpleNamespace(
        key=SimpleNamespace(public=desk.keys.signing.public),
        know=lambda *_: None,
        transport=lambda: httpx.ASGITransport(api.app),
    )
    places = range(len(desk.parties))
    return [Party(make_home(tmp_path / f"party-{n}", n, curator), n, curator) for n in places]


async def serve(party: Party) -> None:
    async with party.line() as line:
        worker = party.worker(line)
        while True:
            await worker.turn()


async def run_to_its_end(tmp_path: Path, desk: Desk, api: Api) -> None:
    run = await api.create_run()
    serving = [asyncio.create_task(serve(party)) for party in homes(tmp_path, desk, api)]
    try:
        async with asyncio.timeout(PATIENCE):
            while desk.views.run(run).state in ("joining", "running"):
                await asyncio.sleep(0.05)
        assert desk.views.run(run).state == "finished"
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def test_a_run_takes_the_path_of_the_row_in_its_order(tmp_path: Path) -> None:
    path = stops()
    codes = {inspect.unwrap(named(stop)[1]).__code__: stop for stop in path}
    desk = Desk(tmp_path / "curator")
    with seeing_calls(codes) as seen:
        with_api(desk, lambda api: run_to_its_end(tmp_path, desk, api))
    desk.store.close()
    calls = iter(seen)
    assert [stop for stop in path if stop not in calls] == []  # every stop is called after the stop before it
