"""The curator and the parties of a simulation: the real services on real homes, without sockets.

It does not know the network's faults (`tests.simulation.network`), or what must not happen
(`tests.simulation.witness`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import httpx

from crypto.randomness import Stream
from curator.errors import StoreUnavailable
from curator.home.keys import CuratorKeys
from curator.runs.orchestrator import Orchestrator
from curator.runs.planning import Planned, Wanted, plan_forecast
from curator.runs.ports import Seams
from curator.service import Service
from curator.settings import Settings
from curator.store.store import Store
from party.answering.answering import Answering
from party.curator_link.client import Curator
from party.errors import DiskFull
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.lock import served_alone
from party.worker import Worker
from protocol.forecast.recommendation import planned
from protocol.tables.schema import Schema
from tests.simulation import homes
from tests.simulation.effects import Killed, Life, Mortal, copied, refused
from tests.simulation.schedules import Busy, Death, Effect, Fault, Full, Jump, Restored
from tests.simulation.virtual_time import PIECE_OF_WORK
from tests.support.curator import START
from tests.support.fake_curator import URL
from tests.support.small_runs import SMALL_BITS

if TYPE_CHECKING:
    from tests.simulation.world import World

_AGAIN = 5.0  # seconds after which a service that has stopped is started again
JOIN, STEP = (1500, 100), (1500, 50)  # seconds of deadlines: far away, and near


class Node(Mortal):
    """A node over all its lives: its clock, its counts of what it comes by, and the faults that wait there."""

    def __init__(self, world: "World", name: str, home: Path) -> None:
        self.world, self.name, self.folder = world, name, home
        self.skew = 0.0
        self.life: Life | None = None
        self._refusals: Counter[str] = Counter()  # by effect: how many more of them a full disk refuses

    def start(self) -> None:
        self.lives += 1
        self.life = Life(self, self.folder)
        self.life.spawn(self._live(self.life)).add_done_callback(self._ended)

    async def _live(self, life: Life) -> None:
        raise NotImplementedError

    def now(self) -> float:
        """Seconds since 1970, as this node believes."""
        return START / 1000 + self.world.loop.time() + self.skew

    def stream(self, label: str) -> Stream:
        """A stream that no other life of any node has."""
        return Stream.keyed(b"%d" % self.world.schedule.seed, f"{self.name} {self.lives} {label}")

    def comes_by(self, kind: Effect) -> Death | None:
        self.world.note(self.name, kind)
        faults = self.world.due(self.name, kind)
        self._refusals[kind] += sum(fault.times for fault in faults if isinstance(fault, Full))
        return next((fault for fault in faults if isinstance(fault, Death)), None)

    def may_write(self, kind: Effect) -> None:
        if self._refusals[kind]:
            self._refusals[kind] -= 1
            self.world.witness.has_full_disks = True
            raise refused(kind)

    def message(self) -> list[Fault]:
        """A message comes or goes: at some of them the clock jumps."""
        faults = self.world.due(self.name, "message")
        for fault in faults:
            if isinstance(fault, Jump):
                self.set_clock(fault.jump)
                self.world.loop.call_later(fault.seconds, self.set_clock, -fault.jump)
        return faults

    def set_clock(self, seconds: int) -> None:
        self.skew += seconds

    def work_seconds(self) -> float:
        busy = [fault.seconds for fault in self.world.due(self.name, "work") if isinstance(fault, Busy)]
        return sum(busy, PIECE_OF_WORK)

    def dies(self, life: Life, home: Path, death: Death) -> None:
        self.folder, self.life = home, None
        self.world.spawn(self._buried(life, death.seconds))

    async def _buried(self, life: Life, seconds: float) -> None:
        """Let all that the process was doing end with it; start it again after a while."""
        await self._quiet(life)
        await asyncio.sleep(seconds)
        self.start()

    async def end(self) -> None:
        """Stop the process for good."""
        life, self.life = self.life, None
        if life is not None:
            await self._quiet(life)

    async def _quiet(self, life: Life) -> None:
        life.is_alive = False
        while life.tasks:
            for task in life.tasks:
                task.cancel()
            await asyncio.wait(life.tasks.copy())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, DiskFull | StoreUnavailable) and self.life is not None:
            life, self.life = self.life, None
            self.world.spawn(self._buried(life, _AGAIN))  # the machine starts it again
        elif error is not None and not isinstance(error, Killed):
            self.world.witness.fails(f"{self.name} stopped by itself: {error!r}")


class CuratorNode(Node):
    service: Service | None = None

    def __init__(self, world: "World", name: str, home: Path) -> None:
        super().__init__(world, name, home)
        self._messages = 0
        self._copies: dict[int, Path] = {}  # by the number of the message at which the next life begins with them

    async def _live(self, life: Life) -> None:
        store = None
        try:
            store = Store.open(self._settings(life).store_url)
            self.service = self._opened(life, store)
            self._app = self.world.app_of(self.service)
            async with self.service.relay:
                await asyncio.Event().wait()
        finally:
            self.service = None
            if store is not None:
                store.close()

    def set_clock(self, seconds: int) -> None:
        super().set_clock(seconds)
        if seconds < 0:
            self.world.witness.forgets()

    def _settings(self, life: Life) -> Settings:
        near = 0 if self.world.schedule.is_patient else 1
        return Settings(home=life.home, join_seconds=JOIN[near], step_seconds=STEP[near], tick_seconds=60 / 4)

    def _opened(self, life: Life, store: Store) -> Service:
        settings, keys = self._settings(life), CuratorKeys.load(life.home)
        store.serve_alone(f"life {self.lives}")
        clock = self.clock
        seams = Seams(clock, self._streams(), homes.crypto(), SMALL_BITS, self._worked_out)
        orchestrator = Orchestrator(store, keys, settings, seams)
        orchestrator.recover()
        return Service.of(settings, store, keys, orchestrator, clock)

    def clock(self) -> int:
        return int(self.now() * 1000)

    def _streams(self) -> Callable[[str], Stream]:
        drawn = self.stream("streams")
        return lambda purpose: drawn.child(purpose)

    def _worked_out(self, wanted: Wanted, _abandoned: Event) -> Planned:
        """Plan as the product does, with the tuning of this kind of run."""
        wishes = wanted.request.wishes() | self.world.way.tuning
        schema = Schema.parse(wanted.schema_text)
        terms = planned(wanted.run, schema, wanted.members, smallest_key=wanted.smallest_key, **wishes)
        return Planned(terms, plan_forecast(terms))

    async def serve(self, request: httpx.Request) -> httpx.Response:
        """Answer a request as a server does; the connection breaks when the process is killed meanwhile."""
        life = self.life
        if life is None or self.service is None:
            raise httpx.ConnectError("nobody listens")
        task = life.spawn(self._serve(life, request))
        await asyncio.wait({task})
        if task.cancelled() or isinstance(task.exception(), Killed):
            raise httpx.ReadError("the connection broke")
        return task.result()

    async def _serve(self, life: Life, request: httpx.Request) -> httpx.Response:
        for fault in self.message():
            if isinstance(fault, Restored) and self.world.all_begun:
                self._copies[self._messages + fault.messages_later] = copied(life.home, f"copy.{self._messages}")
        self._messages += 1
        if self._messages in self._copies:
            self.world.witness.forgets()
            life.end(self._copies.pop(self._messages), Death(self.name, "serve", 0, "before", 0, 1.0))
        death = self.comes_by("serve")
        if death is not None and death.edge == "before":
            life.kill(death)
        answer = await self._app.handle_async_request(request)
        content = await answer.aread()
        self.world.witness.answered(request, answer.status_code, content)
        if death is not None:
            life.kill(death)
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


class PartyNode(Node):
    opened: OpenHome | None = None

    @property
    def home(self) -> Home:
        return Home(self.folder)

    async def _live(self, life: Life) -> None:
        home = Home(life.home)
        with served_alone(home.lock), open_home(home, self._written) as opened:
            key = bytes.fromhex(opened.curator.key)
            seams: dict[str, Any] = {"transport": self.world.line(self, life), "clock": self.now, "tries": 1}
            seams |= {"stream": self.stream("line")}
            async with Curator(URL, self.name, opened.keys.identity.signing, key, **seams) as line:
                answering = Answering(opened, stream=self.stream("answering"), smallest_key=SMALL_BITS)
                worker = Worker(opened, line, answering, stream=self.stream("worker"), log=self._log)
                opened.audit.append("started", version="simulation")
                self.opened = opened
                try:
                    await worker.run()
                finally:
                    self.opened = None

    def _written(self) -> str:
        return f"{self.now():.3f}"

    def _log(self, event: str, **fields: Any) -> None:
        self.world.witness.logged(self.name, f"{event} {fields}")

    def decide(self, accept: bool) -> None:
        """The data owner's word on all that waits for it."""
        if self.life is not None and self.opened is not None:
            with suppress(Killed):
                self.life.context.copy().run(self._decide, self.opened, accept)

    def _decide(self, opened: OpenHome, accept: bool) -> None:
        for request in opened.ledger.requests("asked"):
            opened.decide(request.run, accept, "", by="owner")
