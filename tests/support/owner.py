"""A data owner's pages for tests: a home with a history against the fake curator, and its pages served on loopback.

It does not know any expected value.
"""

import atexit
import csv
import io
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from crypto.randomness import Stream
from party.app import make_app
from party.home.layout import Home
from party.operations.health import Health
from protocol.tables.coding import labels
from protocol.tables.schema import Schema
from tests.support.fake_curator import FakeCurator
from tests.support.party import ROWS, Party, finish, parties_of, run_terms
from tests.support.small_runs import BITS, identity, random_codes

TOKEN = "ab" * 32


def elsewhere(action: Callable[..., Any], *arguments: Any) -> None:
    """In a thread of its own: a browser's event loop runs in the one of the test."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(action, *arguments).result()


def a_table(schema: Schema, rows: int, seed: int = 9) -> bytes:
    """A published table of made-up rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(schema.names)
    codes = random_codes(schema, [rows], seed)[0]
    writer.writerows(zip(*labels(schema, codes, Stream.keyed(b"table")), strict=True))
    return text.getvalue().encode()


def with_history(
    tmp_path: Any, fake: FakeCurator, schema: Schema = BITS, rows: Sequence[int] = ROWS, **choices: Any
) -> list[Party]:
    """Parties that have finished one run; their homes are copies, so that the run is worked out once."""
    folder = _finished(schema.to_json(), tuple(rows), tuple(choices.items()))
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    fake.tables["run-1"] = a_table(schema, sum(rows))
    for number in range(len(rows)):
        own = identity(number)
        fake.know(f"party-{number + 1}", own.signing.public, own.exchange.public)
    return [Party(Home(tmp_path / f"party-{number + 1}"), number, fake) for number in range(len(rows))]


@cache
def _finished(schema_text: str, rows: tuple[int, ...], choices: tuple[tuple[str, Any], ...]) -> Path:
    folder, fake, schema = Path(tempfile.mkdtemp()), FakeCurator(), Schema.parse(schema_text)
    atexit.register(shutil.rmtree, folder)
    parties = parties_of(folder, fake, rows, schema=schema, **dict(choices))
    run_of(fake, parties, "run-1", schema, rows, epsilon="4/5")
    for party in parties:
        party.ledger.close()
    return folder


def run_of(
    fake: FakeCurator, parties: Sequence[Party], run: str, schema: Schema, rows: Sequence[int], **wishes: Any
) -> None:
    fake.start(run_terms(run, schema, rows, **wishes))
    elsewhere(finish, fake, parties, run)
    for party in parties:
        elsewhere(party.turns)


def ask(
    fake: FakeCurator, party: Party, run: str, schema: Schema = BITS, rows: Sequence[int] = ROWS, **wishes: Any
) -> str:
    """A run that the party has been asked about; its plan's hash."""
    terms = run_terms(run, schema, rows, **wishes)
    fake.start(terms)
    elsewhere(party.turns, 2)
    return terms.plan_hash


@dataclass
class Served:
    url: str
    trouble: str | None = None
    party: Party | None = field(default=None, repr=False)

    def address(self) -> str:
        """A one-time sign-in address, as `subn-party page` prints it."""
        answer = httpx.post(f"{self.url}/v1/sign-in", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200, answer.text
        return f"{self.url}{answer.json()['path']}"


@contextmanager
def served(party: Party, is_connected: bool = True) -> Iterator[Served]:
    """The party's pages at an address of their own, as long as the body runs."""
    found = Served("", party=party)
    app = make_app(
        party.opened, TOKEN, Health(party.opened, lambda: found.trouble), party.line(tries=1) if is_connected else None
    )
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    found.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.should_exit = True
        thread.join()
