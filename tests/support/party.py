"""Homes of parties for tests: settings, schema, a small table, keys; and a run between them and the fake curator.

It does not know any expected value.
"""

import asyncio
import csv
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from crypto.randomness import Stream
from party.answering.answering import Answering
from party.books.audit import Audit, entries
from party.books.budget import Account, Claims
from party.books.ledger import Ledger
from party.curator_link.client import Backoff, Curator
from party.home import settings
from party.home.home import OpenHome
from party.home.keys import OwnKeys, peer_fingerprint
from party.home.layout import Home
from party.worker import Worker
from protocol.plan.terms import Terms
from protocol.tables.coding import labels
from protocol.tables.schema import Schema
from tests.support.fake_curator import NOW, URL, FakeCurator
from tests.support.small_runs import BITS, SMALL_BITS, identity, random_codes, terms_of

ROWS = (30, 20, 10)
SETTINGS = """
[datasets.patients]
source = "patients.csv"
schema = "schema.json"
epsilon_total = "{total}"

[policy]
accept = "{accept}"
epsilon_per_run = "{per_run}"

[curator]
name = "{name}"
url = "{url}"
key = "{key}"
"""


# Of an account of “patients” alone, with no delta and nothing spent before its ledger.
ALONE = {"account": "patients", "datasets": ["patients"], "before": "0", "delta_before": "0"}
NO_DELTA = ALONE | {"delta_total": "0", "delta_spent": "0", "delta_reserved": "0", "delta_left": "0"}


def account(limit: Fraction, delta: Fraction = Fraction(0), dataset: str = "patients") -> Account:
    """The account of one data set, by its name alone."""
    return Account(dataset, Claims(frozenset({dataset})), (dataset,), (limit, delta))


def no_wait(_seconds: float) -> Any:
    return asyncio.sleep(0)


def seams_to(fake: FakeCurator) -> dict[str, Any]:
    """What leads a command to the fake curator instead of the network."""
    return {"transport": fake.transport(), "clock": lambda: NOW, "sleep": no_wait, "backoff": Backoff(0, 0)}


def make_home(
    folder: Path,
    number: int,
    curator: FakeCurator,
    *,
    schema: Schema = BITS,
    rows: Sequence[int] = ROWS,
    accept: str = "auto",
    total: str = "4",
    per_run: str = "2",
    more: str = "",
) -> Home:
    """Party number `number` of `tests.support.small_runs.members`, with its `random_codes`, known to the curator."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"party-{number + 1}"
    codes = random_codes(schema, rows)[number]
    with (folder / "patients.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(schema.names)
        writer.writerows(zip(*labels(schema, codes, Stream.keyed(b"labels")), strict=True))
    (folder / "schema.json").write_text(schema.to_json())
    values = {"accept": accept, "total": total, "per_run": per_run, "name": name, "url": URL}
    peers = "".join(
        f'\n[peers.party-{peer + 1}]\nfingerprint = "{fingerprint_of(peer)}"\n'
        for peer in range(len(rows))
        if peer != number
    )
    (folder / "party.toml").write_text(SETTINGS.format(key=curator.key.public.hex(), **values) + peers + more)
    (folder / "party.toml").chmod(0o600)
    curator.know(name, identity(number).signing.public, identity(number).exchange.public)
    return Home(folder)


def write_keys(home: Home, number: int) -> None:
    """The keys that `tests.support.small_runs` gives this party, where commands look for them."""
    own = identity(number)
    content = {"signing_key": own.signing.to_bytes().hex(), "exchange_key": own.exchange.to_bytes().hex()}
    home.keys.mkdir(mode=0o700)
    (home.keys / "identity.json").touch(0o600)
    (home.keys / "identity.json").write_text(json.dumps(content | {"retired": []}))


def fingerprint_of(number: int) -> str:
    return peer_fingerprint(identity(number).signing.public, identity(number).exchange.public)


class Party:
    """One process of a party, as it were: opening a home a second time is a restart after a kill."""

    def __init__(self, home: Home, number: int, curator: FakeCurator, **seams: Any) -> None:
        self.home, self.number, self.fake = home, number, curator
        ledger = Ledger.open(home.ledger)
        log = Audit(home.audit, heads=ledger)
        self.opened = OpenHome(home, settings.load(home), OwnKeys(identity(number)), ledger, log)
        self.answering = Answering(self.opened, smallest_key=SMALL_BITS, **seams)
        self.logged: list[tuple[str, dict[str, Any]]] = []

    @property
    def name(self) -> str:
        return f"party-{self.number + 1}"

    def killed(self) -> "Party":
        """The same home in a new process: nothing but the disk is left of the old one."""
        self.opened.ledger.close()
        return Party(self.home, self.number, self.fake)

    @property
    def ledger(self) -> Ledger:
        return self.opened.ledger

    def worker(
        self,
        curator: Curator,
        sleep: Callable[[float], Awaitable[None]] = no_wait,
        backoff: Backoff = Backoff(0, 0),  # noqa: B008 - it never changes
    ) -> Worker:
        return Worker(self.opened, curator, self.answering, sleep=sleep, backoff=backoff, log=self.log)

    def line(self, **changes: Any) -> Curator:
        seams = {"transport": self.fake.transport(), "clock": lambda: NOW, "sleep": no_wait, "tries": 2} | changes
        key = bytes.fromhex(self.opened.curator.key)
        return Curator(URL, self.name, identity(self.number).signing, key, log=self.log, **seams)

    def log(self, event: str, **fields: Any) -> None:
        self.logged.append((event, fields))

    def turns(self, count: int = 1, start: bool = False, **changes: Any) -> None:
        async def work() -> None:
            async with self.line(**changes) as line:
                worker = self.worker(line)
                if start:
                    await worker.start()
                for _ in range(count):
                    await worker.turn()

        asyncio.run(work())

    def audited(self) -> list[dict[str, Any]]:
        return list(entries(self.home.audit))


def parties_of(tmp_path: Path, fake: FakeCurator, rows: Sequence[int] = ROWS, **choices: Any) -> list[Party]:
    numbers = range(len(rows))
    return [Party(make_home(tmp_path / f"party-{n + 1}", n, fake, rows=rows, **choices), n, fake) for n in numbers]


def run_terms(run: str = "run-1", schema: Schema = BITS, rows: Sequence[int] = ROWS, **wishes: Any) -> Terms:
    terms = terms_of(schema, rows, **({"noise": "distributed"} | wishes))
    plan = terms.plan.model_copy(update={"run": run})
    return replace(terms, plan=plan)


def killed_after(rounds: int, parties: Sequence[Party]) -> list[Party]:
    """Everybody answers so many steps, is killed, and begins again."""
    for _ in range(rounds):
        for party in parties:
            party.turns()
    return [party.killed() for party in parties]


def finish(fake: FakeCurator, parties: Sequence[Party], run: str, rounds: int = 60) -> None:
    """Everybody takes turns until the run is over."""

    async def work() -> None:
        for _ in range(rounds):
            for party in parties:
                async with party.line() as line:
                    await party.worker(line).turn()
            if fake.runs[run].status not in ("joining", "running"):
                return

    asyncio.run(work())
