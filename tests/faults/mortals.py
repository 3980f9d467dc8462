"""A curator and its parties in one process, on real files, any of which dies where a test says and starts anew.

It does not know what must hold afterwards (`books`).

A death is an exception that nothing handles, thrown before or after an effect: a transaction, a line of the audit log,
a file, a message. Whoever died is made again from its files; nothing of its memory is used any more.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from curator.results import publication
from party.answering import frozen_rows
from party.answering.answering import Answering
from party.books.audit import Audit
from party.books.ledger import Ledger
from party.curator_link.client import Backoff, Waiting
from party.errors import Declined as Refused
from party.errors import Unreachable
from party.home import settings
from party.home.home import OpenHome
from party.home.keys import OwnKeys
from party.home.layout import Home
from party.worker import Worker
from protocol.errors import SubnError
from tests.faults.books import check_books
from tests.support.curator import Desk
from tests.support.party import make_home
from tests.support.small_runs import SMALL_BITS, identity

CURATOR = "curator"
LEDGER_EFFECTS = ("ask", "reserve", "record", "decline", "settle")
TURNS = 400


class Killed(BaseException):
    """Thrown where a process would be killed."""


class Fate:
    """Who dies at which of its effects; `seen` counts the moments before and after them."""

    def __init__(self, *deaths: tuple[str, int]) -> None:
        self.deaths = set(deaths)
        self.seen: dict[str, int] = defaultdict(int)
        self.died: list[str] = []

    def moment(self, who: str) -> None:
        self.seen[who] += 1
        if (who, self.seen[who]) in self.deaths:
            self.died.append(who)
            raise Killed(who)

    def around(self, who: str, action: Any, *arguments: Any, **named: Any) -> Any:
        self.moment(who)
        found = action(*arguments, **named)
        self.moment(who)
        return found


class Mortal:
    """Another object, with moments of death around some of its methods."""

    def __init__(self, inner: Any, fate: Fate, who: str, names: Sequence[str]) -> None:
        self._inner, self._fate, self._who, self._names = inner, fate, who, names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return partial(self._fate.around, self._who, found) if name in self._names else found


class Line:
    """A party's line to the curator in this process. Who is cut off because the other side died learns no more."""

    def __init__(self, world: "World", name: str) -> None:
        self._world, self._name = world, name

    async def inbox(self, _wait: int, skip: Sequence[str] = ()) -> Any:
        def look(desk: Desk) -> Waiting | None:
            found = desk.orchestrator.inbox(self._name, tuple(skip))
            return None if found is None else Waiting(*found, desk.views.receipts_held(self._name))

        return self._world.ask(look)

    async def deliver(self, run: str, step: str, reply: bytes, receipt: bytes) -> None:
        self._world.fate.moment(self._name)
        digest = sha256(reply).hexdigest()
        self._world.ask(lambda desk: desk.orchestrator.promise(run, step, self._name, digest, receipt))
        self._world.fate.moment(self._name)
        self._world.sent[run, step, self._name].add(digest)
        self._world.ask(lambda desk: desk.orchestrator.deliver(run, step, self._name, reply, receipt))
        self._world.fate.moment(self._name)

    async def my_runs(self) -> Any:
        return self._world.ask(lambda desk: desk.views.of_party(self._name))

    async def clock_difference(self) -> int:
        return 0

    async def receipts(self) -> Any:
        return self._world.ask(lambda desk: desk.views.receipts(self._name))


class MortalParty:
    def __init__(self, world: "World", home: Home, number: int) -> None:
        self.world, self.home, self.number, self.name = world, home, number, f"party-{number + 1}"
        self.open()

    def open(self) -> None:
        fate = self.world.fate
        self.ledger = Ledger.open(self.home.ledger)
        ledger: Any = Mortal(self.ledger, fate, self.name, LEDGER_EFFECTS)
        log: Any = Mortal(Audit(self.home.audit, heads=self.ledger), fate, self.name, ["append"])
        opened = OpenHome(self.home, settings.load(self.home), OwnKeys(identity(self.number)), ledger, log)
        line: Any = Line(self.world, self.name)
        self.said: list[str] = []
        self.worker = Worker(opened, line, Answering(opened, smallest_key=SMALL_BITS), backoff=Backoff(0, 0))
        self.started = False

    def turn(self) -> None:
        """One turn of its work; what goes wrong it tries again, and when it is killed it starts anew."""
        try:
            asyncio.run(self.worker.turn() if self.started else self.worker.start())
            self.started = True
        except SubnError as error:
            self.said.append(str(error))
        except Killed:
            self.ledger.close()
            self.open()


class World:
    def __init__(
        self, folder: Path, fate: Fate, monkeypatch: Any, rows: tuple[int, ...], crypto: Any = None, **rules: Any
    ) -> None:
        self.fate = fate
        self.sent: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self.desk = Desk(folder / CURATOR, rows=rows, crypto=crypto)
        self._watch()
        keys: Any = type("Known", (), {"key": self.desk.keys.signing, "know": lambda *_: None})()
        homes = [make_home(folder / f"party-{k + 1}", k, keys, rows=rows, **rules) for k in range(len(rows))]
        for name in ("write_table", "write_file"):
            monkeypatch.setattr(publication, name, partial(fate.around, CURATOR, getattr(publication, name)))
        self._now = ""
        freeze = frozen_rows.freeze
        monkeypatch.setattr(frozen_rows, "freeze", lambda *what: fate.around(self._now, freeze, *what))
        self.parties = [MortalParty(self, home, number) for number, home in enumerate(homes)]

    def _watch(self) -> None:
        store: Any = self.desk.store
        inner = store.writing

        @contextmanager
        def writing() -> Iterator[Any]:
            self.fate.moment(CURATOR)
            with inner() as db:
                yield db
                self.fate.moment(CURATOR)  # all is written, nothing is committed
            self.fate.moment(CURATOR)

        store.writing = writing

    def ask(self, question: Any) -> Any:
        try:
            return question(self.desk)
        except Killed as death:
            if death.args != (CURATOR,):
                raise
            self.restart_curator()
            raise Unreachable("the curator was killed") from None
        except SubnError as error:
            raise Refused(409, str(error)) from None

    def restart_curator(self) -> None:
        while True:
            try:
                self.desk.restart()
                self._watch()
                return
            except Killed:
                continue

    def tick(self) -> None:
        self.desk.clock.advance(1)
        try:
            for run in self.desk.orchestrator.complete_runs():
                self.desk.orchestrator.advance(run)
            self.desk.orchestrator.tick()
        except Killed:
            self.restart_curator()

    def begin(self, **wishes: Any) -> str:
        while True:
            try:
                return self.desk.run("only", **wishes)
            except Killed:
                self.restart_curator()

    def work(self, run: str) -> str:
        """Everybody in turn until the run is over and everybody knows."""
        for _ in range(TURNS):
            for party in self.parties:
                self._now = party.name
                party.turn()
            self.tick()
            record = self.desk.views.record(run)
            if not record.is_active and all(self._has_settled(party, run) for party in self.parties):
                return record.state
        raise AssertionError(
            f"no end: {self.desk.views.run(run)}, {[party.commands.result[-3:] for party in self.parties]}"
        )

    def _has_settled(self, party: MortalParty, run: str) -> bool:
        request = party.ledger.request(run)
        return party.started and (request is None or request.state == "ended")

    def close(self) -> None:
        self.desk.store.close()
        for party in self.parties:
            party.ledger.close()

    def check(self, run: str) -> None:
        check_books(self.desk.home, {p.name: p.home for p in self.parties}, run, self.sent, SMALL_BITS)
