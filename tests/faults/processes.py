"""A curator and parties as processes with a proxy between them: started, killed and started again by their numbers.

It does not know what must hold afterwards (`books`).
"""

import csv
import json
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from crypto.randomness import Stream
from curator.accounts.registry import Registry
from curator.clock import system_clock
from curator.errors import CuratorUnreachable
from curator.home.keys import CuratorKeys
from curator.operator.client import CuratorClient
from curator.store import run_records as records
from curator.store.run_records import ReplyRecord
from curator.store.store import Store
from party.books.ledger import Ledger
from party.home import keys, settings
from party.home.keys import peer_fingerprint
from party.home.layout import Home
from protocol.messages.run_states import ENDS
from protocol.tables.coding import labels
from protocol.tables.schema import Schema
from tests.faults.books import check_books
from tests.faults.proxy import Proxy
from tests.support.programs import Process, start_program
from tests.support.small_runs import BITS, random_codes

CURATOR = "curator"
PATIENCE = 60.0
_SETTINGS = """
[datasets.patients]
source = "patients.csv"
schema = "schema.json"
epsilon_total = "1000"

[policy]
accept = "auto"
epsilon_per_run = "2"

[local]
port = 0

[curator]
name = "{name}"
url = "{url}"
key = "{key}"
"""


class Cluster:
    def __init__(self, folder: Path, rows: tuple[int, ...], schema: Schema = BITS) -> None:
        self.schema = schema
        self.folder, self.names = folder, [f"party-{k + 1}" for k in range(len(rows))]
        self.proxy = Proxy()
        self.home = folder / CURATOR
        self.homes = {name: Home(folder / name) for name in self.names}
        self.alive: dict[str, Process] = {}
        self.all_ever: list[int] = []
        self.environment: dict[str, str] = {}
        self.begun = 0
        self.finished: list[str] = []
        self._make(rows)
        for name in (CURATOR, *self.names):
            self.start(name)

    # Setting up, by the programs' own functions

    def _make(self, rows: tuple[int, ...]) -> None:
        self.home.mkdir(parents=True)
        curator_keys = CuratorKeys.create(self.home, Stream.system())
        store = Store.open(f"sqlite:///{self.home / 'curator.db'}")
        registry = Registry(store, system_clock)
        self.operator_key = registry.new_operator_key("tests", Stream.system())
        codes = random_codes(self.schema, rows)
        own = {name: keys.make(self.homes[name].keys).identity for name in self.names}
        public = {name: (one.signing.public, one.exchange.public) for name, one in own.items()}
        for number, name in enumerate(self.names):
            code, _ = registry.new_code(name, Stream.system())
            registry.enrol(code, name, *public[name])
            registry.offer(name, "patients", self.schema, rows[number])
            self._furnish(self.homes[name].path, codes[number])
            text = _SETTINGS.format(name=name, url=self.proxy.url, key=curator_keys.signing.public.hex())
            for peer in self.names:
                if peer != name:
                    text += f'\n[peers.{peer}]\nfingerprint = "{peer_fingerprint(*public[peer])}"\n'
            self.homes[name].settings.write_text(text)
            settings.load(self.homes[name])
        store.close()

    def _furnish(self, home: Path, codes: Any) -> None:
        with (home / "patients.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.schema.names)
            writer.writerows(zip(*labels(self.schema, codes, Stream.keyed(b"labels")), strict=True))
        (home / "schema.json").write_text(self.schema.to_json())

    # Processes

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def start(self, name: str, wait: bool = True) -> None:
        program = "subn-curator" if name == CURATOR else "subn-party"
        home = self.home if name == CURATOR else self.homes[name].path
        arguments = ["serve", "--home", home]
        if name == CURATOR:
            arguments += ["--port", "0", "--plain-http"]  # the proxy between them reads and changes what it carries
        env = {"SUBN_CURATOR_TICK_SECONDS": "0.2"} | self.environment
        with self.log(name).open("ab") as log:
            begun = log.tell()
            process = start_program(program, *arguments, output=log, env=env)
        self.alive[name] = process
        self.all_ever.append(process.pid)
        if wait or name == CURATOR:
            line = self.wait_for_line(name, "listening", begun)
            if name == CURATOR:
                self.proxy.target = line["url"]
                self.proxy.is_up.set()

    def lines(self, name: str, begun: int = 0) -> list[dict[str, Any]]:
        with self.log(name).open("rb") as log:
            log.seek(begun)
            written = log.read().rpartition(b"\n")[0].decode()  # the last one may be cut
        return [json.loads(line) for line in written.splitlines() if line.startswith("{") and line.endswith("}")]

    def said(self, name: str, words: str, begun: int = 0) -> bool:
        """Whether a line of its log holds these words."""
        return any(words in json.dumps(line) for line in self.lines(name, begun))

    def wait_for_line(self, name: str, event: str, begun: int = 0) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            said = next((line for line in self.lines(name, begun) if event in line["event"]), None)
            assert said or self.alive[name].poll() is None, self.log(name).read_text()[-2000:]
            return said

        return self.until(found)

    def until(self, found: Callable[[], Any], patience: float = PATIENCE) -> Any:
        deadline = time.monotonic() + patience
        while not (what := found()):
            assert time.monotonic() < deadline, f"it did not come to that in {patience:g} s"
            time.sleep(0.02)
        return what

    def kill(self, name: str) -> None:
        """kill -9, and wait until it is gone."""
        process = self.alive.pop(name)
        if name == CURATOR:
            self.proxy.is_up.clear()
        assert process.poll() is None, f"{name} has died by itself: {self.log(name).read_text()[-2000:]}"
        with suppress(ProcessLookupError):  # it ends by itself at this moment: its code tells
            os.kill(process.pid, signal.SIGKILL)
        code = process.wait()
        assert code == -signal.SIGKILL, f"{name} ended by itself with {code}: {self.log(name).read_text()[-2000:]}"

    def gives_up(self, name: str, code: int) -> None:
        """It ends by itself, with this exit code."""
        assert self.alive[name].wait(30) == code
        del self.alive[name]

    def limit_files(self, name: str, size: int) -> None:
        """No file of this process grows beyond so many bytes."""
        resource.prlimit(self.alive[name].pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def close(self) -> None:
        self.proxy.is_up.set()
        for name in list(self.alive):
            if self.alive[name].poll() is None:
                self.kill(name)
        self.proxy.close()

    def orphans(self) -> list[int]:
        """Processes of this cluster that still live although nobody holds them."""
        held = {process.pid for process in self.alive.values()}
        sessions = set(self.all_ever)
        found = []
        for process in psutil.process_iter(["pid"]):
            try:
                if os.getsid(process.pid) in sessions and process.pid not in held:
                    found.append(process.pid)
            except ProcessLookupError:
                continue
        return found

    # Runs

    def replies(self, run: str) -> list[ReplyRecord]:
        """The answers that the curator has stored."""
        store = Store.open(f"sqlite:///{self.home / 'curator.db'}")
        try:
            with store.reading() as db:
                return records.replies_of_run(db, run)
        finally:
            store.close()

    def client(self) -> CuratorClient:
        return CuratorClient(self.proxy.target, self.operator_key)

    def begin(self, **wishes: Any) -> str:
        usual = {"epsilon": "1", "noise": "distributed", "update": "accumulate", "key_bits": 2048, "anyway": True}
        body = {"schema": self.schema.hash} | usual | wishes
        self.begun += 1
        while True:
            try:
                with self.client() as client:
                    return str(client.create_run(body, f"run-{self.begun}")["run"])
            except CuratorUnreachable:  # killed as it began: the same key begins the same run
                self.start_again()

    def start_again(self) -> None:
        """Whoever was killed, or died in a test before."""
        for name in (CURATOR, *self.names):
            if name not in self.alive or self.alive[name].poll() is not None:
                self.start(name)

    def state(self, run: str) -> dict[str, Any]:
        """Where the run stands; nothing while the curator is away."""
        try:
            with self.client() as client:
                return client.run(run)
        except CuratorUnreachable:
            return {"state": "unknown"}

    def end(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def is_over() -> bool:
            found.update(self.state(run))
            return found["state"] in ENDS

        self.until(is_over)
        return found

    def finishes(self, run: str) -> None:
        """The run finishes, and everything is as it must be."""
        ended = self.end(run)
        assert (ended["state"], ended["culprit"], ended["reason"]) == ("finished", None, None)
        self.check(run)
        self.finished.append(run)

    def check(self, run: str, *, settled: bool = False) -> None:
        check_books(self.home, self.homes, run, self.proxy.sent, settled=settled)
        assert self.orphans() == []

    def check_settled(self, run: str) -> None:
        """Once more, when all parties know that the run is over: they need not hear of it at once."""
        for name in self.names:
            self.until(partial(self.has_settled, name, run))
        self.check(run, settled=True)

    def has_settled(self, name: str, run: str) -> bool:
        """As its books say: it may have been killed before it could log what it had settled."""
        ledger = Ledger.open(self.homes[name].ledger)
        try:
            request = ledger.request(run)
        finally:
            ledger.close()
        return request is not None and request.state == "ended" and not list(self.homes[name].rows.glob("*"))
