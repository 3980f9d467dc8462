"""A world in which one schedule takes its course: a curator, its parties, an operator, a network and a virtual clock.

It does not know what must hold in the end (`tests.simulation.verdicts`).
"""

import asyncio
import shutil
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from curator.service import Service
from curator.store import tables
from party.curator_link.tls import trusting_nobody
from protocol.messages.http import LONGEST_POLL
from protocol.messages.run_states import ENDS
from tests.simulation import homes
from tests.simulation.effects import LIFE, Life, watched
from tests.simulation.network import Line
from tests.simulation.nodes import CuratorNode, Node, PartyNode
from tests.simulation.rules import RULES
from tests.simulation.schedules import (
    CURATOR,
    WAYS,
    Busy,
    Cancel,
    Death,
    Fault,
    Full,
    Jump,
    Restored,
    Rules,
    Schedule,
)
from tests.simulation.virtual_time import VirtualLoop, without_threads
from tests.simulation.witness import STAND, Witness, witnessed
from tests.support.fake_curator import URL
from tests.support.small_runs import SMALL_BITS

_HORIZON = 2 * 3600  # seconds after which a run counts as stuck
_LOOK = 7  # seconds between two looks whether all is over
_STORM = 300  # requests between two looks
_COMPILED: Any = {"compiled_cache": {}}
_DIALECT = "sqlalchemy.dialects.sqlite.pysqlite.SQLiteDialect_pysqlite"
_REFERENCE_ROWS = 1 << 10  # fewer than the product's, which take longer to draw than a run
_ORDER_SECONDS = 1  # before an operator tries again
Place = tuple[str, str, int]


class World:
    def __init__(self, folder: Path, schedule: Schedule) -> None:
        self.folder, self.schedule, self.witness = folder, schedule, Witness()
        self.way, self._made = WAYS[schedule.way], homes.made(WAYS[schedule.way].parties)
        for name in (CURATOR, *schedule.names):
            shutil.copytree(self._made.folder / name, folder / name)
        self.curator = CuratorNode(self, CURATOR, folder / CURATOR)
        self.parties = [PartyNode(self, name, folder / name) for name in schedule.names]
        self.counts: Counter[tuple[str, str]] = Counter()
        self._served = 0  # requests, until the last look
        self.happened: list[Fault] = []
        self.states: set[int] = set()
        self.runs: list[str] = []
        self.ends: list[str] = []  # as the verdicts find them
        self._waiting = _by_place(schedule.faults)
        self._flying: set[asyncio.Task[Any]] = set()
        self._late: set[asyncio.Task[Any]] = set()
        self._orders: set[asyncio.Task[Any]] = set()

    @property
    def nodes(self) -> Sequence[Node]:
        return (self.curator, *self.parties)

    @property
    def all_begun(self) -> bool:
        """Whether the operator has begun all runs. A copy made before would know nothing of the last of them."""
        return len(self.runs) == self.schedule.runs

    def app_of(self, service: Service) -> httpx.ASGITransport:
        """The curator's application around this life's service: building one anew takes longer than a run."""
        app = self._made.app(service)
        app.state.service = service
        return httpx.ASGITransport(app, raise_app_exceptions=False)  # the witness looks for answers of 500

    def line(self, party: PartyNode, life: Life) -> Line:
        return Line(party, life)

    # Faults

    def due(self, node: str, what: str) -> list[Fault]:
        """Count one more of something at a node; the faults that wait there now happen."""
        self.counts[node, what] += 1
        found = self._waiting.pop((node, what, self.counts[node, what]), [])
        self.happened += found
        if any(isinstance(fault, Cancel) for fault in found):
            self._order(self._cancel())
        return found

    def change_rules(self, party: PartyNode, life: Life, fault: Rules) -> None:
        """The data owner changes a file and starts the party again, which reads it then."""
        RULES[fault.rule](life.home)
        if fault.word != "nothing":
            self._order(self._decided(party, fault.word == "accept"))
        life.kill(Death(party.name, "ask", 0, "before", 0, 0.1))

    async def _decided(self, party: PartyNode, accept: bool) -> None:
        while True:
            await asyncio.sleep(10)
            party.decide(accept)

    # What goes on

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Something that no process holds: a message under way, or a process that starts again."""
        return _kept(self._flying, work)

    def outlives(self, message: "asyncio.Task[Any]") -> None:
        """Note a message for which nobody waits any more: all is over only when it has arrived."""
        self._late.add(message)
        message.add_done_callback(self._late.discard)

    def note(self, node: str, kind: str) -> None:
        """Note the state that the world is in, of which two runs share many."""
        service = self.curator.service
        live = () if service is None else tuple(service.orchestrator.live.values())
        stands = tuple((one.at.state.position, one.at.state.waiting_for, one.deadline is None) for one in live)
        lives = tuple(one.life is not None for one in self.nodes)
        sent = tuple(sorted(self.sent_by(party.name) for party in self.parties))
        self.states.add(hash((self.schedule.way, node, kind, stands, lives, sent, len(self._late))))

    def sent_by(self, name: str) -> tuple[str, int]:
        return name, sum(party == name for _, _, party in self.witness.sent)

    def run(self) -> None:
        STAND.witness = self.witness
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(self._course())
            loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        for mistake in loop.mistakes:
            self.witness.fails(f"nobody handles: {mistake}")

    async def _course(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop, loop.work_seconds, loop.is_dead = loop, _work_seconds, _is_dead
        for node in self.nodes:
            node.start()
        try:
            async with asyncio.timeout(_HORIZON):
                for number in range(self.schedule.runs):
                    self.runs.append(await self._begin(number))
                while not self._is_over() and self._is_calm():
                    await asyncio.sleep(_LOOK)
                for party in self.parties:
                    await party.end()
                while self._late:  # what was sent long ago arrives after all
                    await asyncio.wait(self._late.copy())
        except TimeoutError:
            self.witness.fails("a run is stuck")
        finally:
            await self._end()

    def _is_over(self) -> bool:
        """Whether all runs have ended, everybody knows of it, and nothing is under way any more."""
        service = self.curator.service
        if service is None or service.orchestrator.waiting() or not self.all_begun:
            return False
        if any(service.views.record(run).state not in ENDS for run in self.runs):
            return False
        opened = [party.opened for party in self.parties]
        return all(one is not None and not _unsettled(one) for one in opened)

    def _is_calm(self) -> bool:
        """Whether nobody asks again and again without a pause, in which no schedule would come to an end."""
        served, self._served = self.counts[CURATOR, "serve"] - self._served, self.counts[CURATOR, "serve"]
        if served > _STORM:
            self.witness.fails("requests follow each other without a pause")
        return served <= _STORM

    async def _end(self) -> None:
        for tasks in (self._orders, self._flying):
            for task in tasks:
                task.cancel()
        for node in self.nodes:
            await node.end()

    # The operator

    def _order(self, work: Coroutine[Any, Any, Any]) -> None:
        _kept(self._orders, work)

    async def _begin(self, number: int) -> str:
        wishes = {"schema": homes.SCHEMA.hash, "epsilon": "20", "key_bits": SMALL_BITS, "anyway": True}
        wishes |= self.way.wishes
        answer = await self._ordered("/v1/runs", wishes, {"Idempotency-Key": f"run-{number}"})
        if not answer.is_success:
            raise TimeoutError(answer.text)  # there is nothing to wait for
        return str(answer.json()["run"])

    async def _cancel(self) -> None:
        while not self.runs:
            await asyncio.sleep(_ORDER_SECONDS)
        await self._ordered(f"/v1/runs/{self.runs[0]}/cancel", {}, {})

    async def _ordered(self, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        while True:
            try:
                key = {"Authorization": f"Bearer {self._made.operator_key}"}
                request = httpx.Request("POST", f"{URL}{path}", json=body, headers=headers | key)
                answer = await self.curator.serve(request)
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return answer
            except httpx.TransportError:
                pass  # it is tried again, with the same key
            await asyncio.sleep(_ORDER_SECONDS)


@contextmanager
def staged() -> Iterator[None]:
    """Lead all that the product does past the simulation: effects, threads, noise, masks and logs."""
    if STAND.is_taken:
        yield
        return
    nobody = trusting_nobody()  # reading the machine's certificates takes longer than a run
    with ExitStack() as stage:
        for part in (watched(), without_threads(), witnessed()):
            stage.enter_context(part)
        for place, quicker in {
            "party.curator_link.way.trusting": lambda *_: nobody,
            "protocol.stages.reference_rows.REFERENCE_ROWS": _REFERENCE_ROWS,
            "protocol.picks.by_model.REFERENCE_ROWS": _REFERENCE_ROWS,
            "party.worker.DECISION_SECONDS": LONGEST_POLL,  # fewer polls that bring nothing
            "httpx._transports.asgi.is_running_trio": lambda: False,  # looks for a package at every request
            # SQL is compiled once for all engines: to this end, all dialects are one.
            "curator.store.tables.create_engine": partial(tables.create_engine, execution_options=_COMPILED),
            f"{_DIALECT}.__eq__": lambda one, other: type(one) is type(other),
            f"{_DIALECT}.__hash__": lambda one: hash(type(one)),
        }.items():
            stage.enter_context(patch(place, quicker))
        stage.enter_context(patch.object(STAND, "is_taken", True))
        yield


def _by_place(faults: Sequence[Fault]) -> dict[Place, list[Fault]]:
    found: dict[Place, list[Fault]] = defaultdict(list)
    for fault in faults:
        found[_place(fault)].append(fault)
    return found


def _place(fault: Fault) -> Place:
    match fault:
        case Death():
            return fault.node, fault.effect, fault.number
        case Full():
            return fault.node, fault.effect, fault.number
        case Restored():
            return CURATOR, "message", fault.message
        case Jump():
            return fault.node, "message", fault.message
        case Busy():
            return fault.node, "work", fault.work
        case Cancel():
            return CURATOR, "serve", fault.requests
        case _:
            return fault.party, "ask", fault.ask


def _kept(tasks: "set[asyncio.Task[Any]]", work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def _unsettled(opened: Any) -> bool:
    return any(request.state != "ended" for request in opened.ledger.requests())


def _work_seconds() -> float:
    life = LIFE.get()
    return life.node.work_seconds() if life is not None and isinstance(life.node, Node) else 0


def _is_dead() -> bool:
    life = LIFE.get()
    return life is not None and not life.is_alive
