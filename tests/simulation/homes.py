"""Homes of a curator and its parties as they are when a schedule begins, made once and copied for every schedule.

It does not know what happens in them.
"""

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from curator.app import make_app
from curator.home.keys import metrics_token
from curator.service import Service
from protocol.tables.schema import Schema
from tests.support.curator import Desk, OneKey
from tests.support.party import make_home, write_keys
from tests.support.small_runs import SMALL_BITS

ROWS = (8, 6, 5)
TOTAL, PER_RUN = "100", "30"
# The values are canaries: no log, no reason of a refusal and no error may hold any of them.
VALUES = ("Okapi", "Zebra")
NOTE, BAD = "Wombat", "Dingo"  # in a column of which no schema tells, and in a row that does not fit
CANARIES = (*VALUES, NOTE, BAD)
SCHEMA = Schema.parse(
    {
        "title": "trio",
        "attributes": [{"name": name, "kind": "categorical", "values": list(VALUES)} for name in ("a1", "b2", "c3")],
    }
)
_RULES = """
updates = ["turns", "accumulate", "joint", "replace"]
smallest_insiders = 0
delta_per_run = "1/1000"
"""


@dataclass
class Homes:
    folder: Path
    operator_key: str
    _app: FastAPI | None = None

    def app(self, service: Service) -> FastAPI:
        """The application of a curator with this home, made for the first service and used by all."""
        self._app = self._app or make_app(service)
        return self._app


def secret() -> SecretKey:
    """One key of the smallest size for all runs: drawing one takes longer than a run."""
    return _secret(SMALL_BITS)


def crypto() -> OneKey:
    return OneKey(secret())


@cache
def _secret(bits: int) -> SecretKey:
    return SecretKey.generate(bits)


@cache
def made(parties: int) -> Homes:
    """The homes of a curator and so many parties that have enrolled and offered their rows."""
    folder = Path(tempfile.mkdtemp(prefix="homes", dir=memory()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rows = ROWS[:parties]
    desk = Desk(folder / "curator", rows=rows, schema=SCHEMA)
    key = desk.orchestrator.registry.new_operator_key("simulation", Stream.keyed(b"operator"))
    metrics_token(desk.home)
    known: Any = type("Known", (), {"key": desk.keys.signing, "know": lambda *_: None})()
    for number in range(parties):
        make_party(folder / f"party-{number + 1}", number, known, rows)
    desk.store.close()
    return Homes(folder, key)


def make_party(folder: Path, number: int, curator: Any, rows: tuple[int, ...]) -> None:
    home = make_home(folder, number, curator, schema=SCHEMA, rows=rows, total=TOTAL, per_run=PER_RUN)
    write_keys(home, number)
    text = home.settings.read_text()
    for place, more in (("[policy]", _RULES), ("epsilon_total", None)):
        text = text.replace(place, f'delta_total = "1/100"\n{place}' if more is None else f"{place}{more}", 1)
    home.settings.write_text(text)
    table = folder / "patients.csv"
    header, *lines = table.read_text().splitlines()
    table.write_text("\n".join([f"{header},note", *(f"{line},{NOTE}{n}" for n, line in enumerate(lines))]) + "\n")


def memory() -> str | None:
    """A folder in memory, if the system has one: what is synced there costs nothing."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
