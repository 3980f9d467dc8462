"""A curator and parties as real processes on loopback, set up through the real command lines, in a temporary folder.

It does not know any expected value. Whatever it starts is in a process group of its own and is ended by its number.
"""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from crypto.randomness import Stream
from crypto.signing import SigningKey
from curator.home.tls import client_context
from party.commands.main import main as party_command
from party.home import keys
from protocol.messages.run_states import ENDS
from protocol.tables.coding import labels
from protocol.tables.schema import Schema
from tests.support.programs import Process, run_program, start_program
from tests.support.small_runs import MIXED, random_codes

PATIENCE = 60.0  # seconds until anything that must come is missed
_POLL = 0.03
_LAST_LINES = 25

RULES: Mapping[str, Any] = {
    "accept": "auto",
    "epsilon_per_run": "1000000",
    "delta_per_run": "1e-3",
    "updates": ["turns", "accumulate", "joint", "replace"],
    "smallest_insiders": 0,
}


class Missed(AssertionError):
    """What was waited for did not come; the logs are in the text."""


@dataclass
class Program:
    """One process that was started; its output goes to a file."""

    name: str
    process: Process
    log: Path

    def lines(self) -> Iterator[dict[str, Any]]:
        written = self.log.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]  # the last one may be cut
        for line in written.splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def said(self, event: str, **more: str) -> dict[str, Any] | None:
        wanted = ({"event": event} | more).items()
        return next((line for line in self.lines() if wanted <= line.items()), None)

    def wait_for(self, event: str, **more: str) -> dict[str, Any]:
        return wait(lambda: self.said(event, **more), f"{event!r} of {self.name}", self)

    def tail(self) -> str:
        last = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join([f"--- {self.name} (exit code {self.process.poll()})", *last])

    def send(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def ask_to_stop(self, number: int = signal.SIGTERM) -> None:
        # A process that has been waited for has no group any more, and its number may be another's.
        if self.process.poll() is None:
            with suppress(ProcessLookupError):  # it ends by itself at this moment
                self.send(signal.SIGCONT)
                self.send(number)

    def gone(self) -> int:
        """Its exit code; it is killed if it does not go by itself."""
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.ask_to_stop(signal.SIGKILL)
            self.process.wait()
            raise Missed(f"{self.name} did not stop by itself\n{self.tail()}") from None

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.ask_to_stop(number)
        return self.gone()


def wait(found: Callable[[], Any], what: str, *programs: Program, patience: float = PATIENCE) -> Any:
    """Whatever `found` gives that is true; asked again and again."""
    deadline = time.monotonic() + patience
    while True:
        result = found()
        if result:
            return result
        gone = any(program.process.poll() is not None for program in programs)
        if gone or time.monotonic() > deadline:
            raise Missed("\n".join([f"waited in vain for {what}", *(program.tail() for program in programs)]))
        time.sleep(_POLL)


def command(
    program: str, *arguments: object, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """One of the installed programs, run to its end."""
    return run_program(program, *arguments, env=env, timeout=PATIENCE)


@dataclass
class Site:
    """One party: its home, its table, and its process while it serves."""

    name: str
    home: Path
    codes: Sequence[Any] = field(repr=False)
    fingerprint: str = ""
    program: Program | None = None

    def cli(self, *arguments: object, code: int = 0) -> Any:
        """The JSON that a command prints; it must end with this exit code.

        The command line runs in this process, which saves the start of another; `shell` runs it in its own.
        """
        said, complaint = io.StringIO(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(complaint):
            words = [str(arguments[0]), "--home", str(self.home), "--json", *map(str, arguments[1:])]
            # In a thread of its own, because a browser's test has an event loop in this one.
            with ThreadPoolExecutor(1) as thread:
                found = thread.submit(party_command, words).result()
        assert found == code, f"{arguments}: exit code {found}\n{said.getvalue()}\n{complaint.getvalue()}"
        return json.loads(said.getvalue())

    def shell(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return command("subn-party", arguments[0], "--home", self.home, *arguments[1:])

    @property
    def signing(self) -> SigningKey:
        return keys.load(self.home / "keys").identity.signing

    @property
    def running(self) -> Program:
        assert self.program is not None
        return self.program

    def account(self) -> dict[str, str]:
        found: dict[str, str] = self.cli("ledger")["accounts"]["patients"]
        return found


@dataclass
class Cluster:
    folder: Path
    schema: Schema = MIXED
    env: Mapping[str, str] = field(default_factory=dict)
    sites: dict[str, Site] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    url: str = ""
    begin_process: Callable[..., Process] = start_program
    host: str = "127.0.0.1"  # where the curator listens
    names: Sequence[str] = ()  # of its certificate

    # Setting up

    def start_curator(self) -> None:
        if not (self.folder / "curator").exists():
            names = [word for name in self.names for word in ("--name", name)]
            made = json.loads(self.curator_cli("init", "--json", *names).stdout)
            self.key, self.public = made["operator_key"], made["curator_key"]
            self.key_file = self.folder / "operator.key"
            self.key_file.write_text(self.key + "\n")
        port = self.url.rpartition(":")[2] or "0"
        where = ["--home", self.home_folder, "--host", self.host, "--port", port]
        self.curator = self.start("curator", "subn-curator", "serve", *where)
        self.url = str(self.curator.wait_for("listening")["url"])
        self.hang_up()
        self.http = self.client(Authorization=f"Bearer {self.key}")

    def client(self, **headers: str) -> httpx.Client:
        """Somebody who pins the curator's CA and sends these headers."""
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=60, verify=client_context(self.ca_file.read_text())
        )

    def add(
        self, *names: str, rows: int = 60, rules: Mapping[str, Any] | None = None, total: str = "100000000"
    ) -> None:
        """Homes with keys and tables; nobody has enrolled yet."""
        tables = random_codes(self.schema, [rows] * len(names), seed=len(self.sites) + 1)
        new = [Site(name, self.folder / name, codes) for name, codes in zip(names, tables, strict=True)]
        self.sites |= {site.name: site for site in new}
        for site in new:
            site.fingerprint = site.cli("init")["fingerprint"]
            self._write_table(site)
            self.write_settings(site, {**RULES, **(rules or {})}, total)

    def fill(self, name: str, codes: list[Any]) -> None:
        """Other rows for a party."""
        self.sites[name].codes = codes
        self._write_table(self.sites[name])

    def write_settings(self, site: Site, rules: Mapping[str, Any], total: str = "100000000") -> None:
        section = "\n".join(f"{name} = {json.dumps(value)}" for name, value in rules.items())
        (site.home / "party.toml").write_text(
            f'[datasets.patients]\nsource = "patients.csv"\nschema = "schema.json"\nepsilon_total = "{total}"\n'
            f'delta_total = "1/2"\n\n'
            f"[policy]\n{section}\n\n[local]\nport = 0\n"
        )

    def acquaint(self, *names: str) -> None:
        """Everybody of these notes the others' fingerprints, as if compared by voice; `subn-party trust` notes one."""
        for name in names:
            with (self.sites[name].home / "party.toml").open("a+") as file:
                file.seek(0)
                noted = file.read()
                for peer in names:
                    section = f"[peers.{json.dumps(peer)}]"
                    if peer != name and section not in noted:
                        file.write(f'\n{section}\nfingerprint = "{self.sites[peer].fingerprint}"\n')

    def enrol(self, *names: str) -> None:
        for name in names:
            site = self.sites[name]
            site.cli("enrol", "--curator", self.url, "--code", self.code(name), "--name", name)
            site.cli("offer")

    def serve(self, *names: str) -> None:
        for name in names:
            site = self.sites[name]
            site.program = self.start(name, "subn-party", "serve", "--home", site.home)
        for name in names:
            self.sites[name].running.wait_for("listening")

    def code(self, name: str) -> str:
        answer = self.http.post("/v1/parties/codes", json={"name": name})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["code"])

    # Programs

    def start(self, name: str, program: str, *arguments: object) -> Program:
        log = self.folder / f"{name}.{len(self.programs)}.log"
        with log.open("wb") as output:
            process = self.begin_process(program, *arguments, output=output, env=self.env)
        self.programs.append(Program(name, process, log))
        return self.programs[-1]

    def stop(self) -> None:
        """Everything, by number; a process that does not go by itself is killed and said."""
        self.hang_up()
        stubborn = []
        for program in reversed(self.programs):
            program.ask_to_stop()
        for program in reversed(self.programs):
            try:
                program.gone()
            except Missed as error:
                stubborn.append(str(error))
        assert not stubborn, "\n".join(stubborn)

    def hang_up(self) -> None:
        if hasattr(self, "http"):
            self.http.close()

    def curator_cli(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        done = command("subn-curator", *arguments, "--home", self.home_folder, env=self.env)
        assert done.returncode == 0, done.stderr
        return done

    @property
    def ca_file(self) -> Path:
        return self.folder / "curator" / "tls" / "ca.pem"

    @property
    def operator(self) -> dict[str, str]:
        """The operator's environment."""
        return {"SUBN_URL": self.url, "SUBN_KEY_FILE": str(self.key_file), "SUBN_CA_FILE": str(self.ca_file)}

    # Runs

    def subn(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """The operator's command."""
        return command("subn", *arguments, env=self.operator)

    def body(self, *names: str, **wishes: Any) -> dict[str, Any]:
        usual = {"epsilon": "2", "noise": "distributed", "anyway": True}  # few rows: much is noise
        return {"schema": self.schema.hash, "parties": list(names)} | usual | wishes

    def begin(self, *names: str, key: str | None = None, **wishes: Any) -> str:
        headers = {"Idempotency-Key": key or Stream.system().take(16).hex()}
        answer = self.http.post("/v1/runs", json=self.body(*names, **wishes), headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run"])

    def run(self, run: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/runs/{run}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def until(self, run: str, state: str, patience: float = PATIENCE) -> dict[str, Any]:
        """The run, once it is in this state; it may not end in another."""

        def reached() -> dict[str, Any] | None:
            found = self.run(run)
            if found["state"] in ENDS and found["state"] != state:
                raise Missed("\n".join([f"not {state}: {found}", *(program.tail() for program in self.programs)]))
            return found if found["state"] == state else None

        found: dict[str, Any] = wait(reached, f"{run} to be {state}", self.curator, patience=patience)
        return found

    def finished(self, *names: str, **wishes: Any) -> str:
        run = self.begin(*names, **wishes)
        self.until(run, "finished")
        return run

    def get(self, run: str, name: str, **query: Any) -> bytes:
        answer = self.http.get(f"/v1/runs/{run}/{name}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.content

    @property
    def home_folder(self) -> str:
        return str(self.folder / "curator")

    def _write_table(self, site: Site) -> None:
        (site.home / "schema.json").write_text(self.schema.to_json())
        with (site.home / "patients.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.schema.names)
            writer.writerows(zip(*labels(self.schema, list(site.codes), Stream.keyed(b"labels")), strict=True))


@contextmanager
def cluster(
    folder: Path,
    schema: Schema = MIXED,
    env: Mapping[str, str] | None = None,
    begin_process: Callable[..., Process] = start_program,
    host: str = "127.0.0.1",
    names: Sequence[str] = (),
) -> Iterator[Cluster]:
    """A curator that serves, and nobody else yet; nothing of it is left afterwards."""
    found = Cluster(folder, schema, env or {}, begin_process=begin_process, host=host, names=names)
    try:
        found.start_curator()
        yield found
    finally:
        found.stop()
    shutil.rmtree(folder)
