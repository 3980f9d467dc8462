"""`subn demo`: made-up hospitals, a curator and real runs on this machine, from nothing to published tables.

It does not know its command line (`curator.experiments.demo_command`), how processes are managed
(`curator.experiments.processes`) or how runs are compared (`curator.experiments.demo_tables`). It uses the project's
own commands.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from curator.experiments.demo_tables import DemoRun, budgets, comparison, stages
from curator.experiments.evaluation import errors_against
from curator.experiments.processes import ProgramFailed, Programs, installed, run
from curator.experiments.sample_data import write_sample
from curator.files import write_file
from curator.home.certificates import Certificates
from curator.operator.client import CuratorClient
from curator.operator.progress import Screen, describe_run
from protocol.exact import exact
from protocol.messages.run_states import ENDS
from protocol.run.manifest import verify_manifest
from protocol.tables.schema import Schema
from protocol.text import printable

ROWS = 20_000
_PAPERS = ("dp-subn", "dp-ccbn")  # methods that are shown with the papers' mechanism: Paillier, keys of full size
_SEED = 1
_SETTINGS = """\
[datasets.patients]
source = {source}
schema = {schema}
epsilon_total = {total}

[policy]
accept = {accept}
epsilon_per_run = {epsilon}
smallest_rows = 100

[local]
port = 0
"""
_PEER = """
[peers.{name}]
fingerprint = "{fingerprint}"
"""
_PATIENCE = 300  # seconds for a step
_PATIENCE_WITH_PEOPLE = 1800  # seconds until everybody has joined
_LOOK_SECONDS = 0.2  # seconds between two queries of the run
_AT_ONCE = 4  # programs that are started at the same time


@dataclass(frozen=True)
class DemoOptions:
    wishes: Mapping[str, str]  # method, preset and noise, where they are chosen
    parties: int
    epsilon: str
    folder: Path
    keep: bool
    ask: bool

    @property
    def hospitals(self) -> list[str]:
        return [f"hospital-{k + 1}" for k in range(self.parties)]

    @property
    def runs(self) -> list[dict[str, str]]:
        """The plans of the runs: the paper's phases and the recommended method, or the one that is chosen."""
        if not self.wishes and not self.ask:
            return [_plan("dp-subn"), _plan("recommended")]
        return [_plan(**{"method": "dp-subn"} | dict(self.wishes))]

    @property
    def total(self) -> str:
        """The epsilon of all runs."""
        return str(exact(self.epsilon) * len(self.runs))


def _plan(method: str, **wishes: str) -> dict[str, str]:
    of_the_papers = {"noise": "selected"} if method in _PAPERS else {}
    return {"method": method} | of_the_papers | wishes


def demonstrate(wishes: DemoOptions) -> None:
    """Show everything, and stop what was started, whatever happens."""
    with Programs(wishes.folder / "logs", wishes.keep) as programs:
        _tell(wishes, programs)


def _tell(wishes: DemoOptions, programs: Programs) -> None:
    _say(f"{wishes.parties} made-up hospitals of {ROWS:,} patients each, in {wishes.folder}")
    data = wishes.folder / "data"
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as together:  # none of these waits for another
        curator = together.submit(_start_curator, wishes, programs)
        homes = [together.submit(_make_home, wishes, name) for name in wishes.hospitals]
        write_sample(data, wishes.parties, ROWS, _SEED)
        url, key_file = curator.result()
        fingerprints = {name: home.result() for name, home in zip(wishes.hospitals, homes, strict=True)}
    ca_file = Certificates(wishes.folder / "curator").ca_file
    _say(f"a curator at {url}")
    key, ca = key_file.read_text(encoding="utf-8").strip(), ca_file.read_text(encoding="ascii")
    with CuratorClient(url, key, ca=ca) as client:
        codes = {name: client.code(name)["code"] for name in wishes.hospitals}
        _start_parties(wishes, programs, url, fingerprints, codes)
        runs = [_run(wishes, plan, client, programs, url) for plan in wishes.runs]
        spent = {name: _spent(wishes, name) for name in wishes.hospitals}
    _say_where_results_are(runs)
    if wishes.keep:
        _say_what_stays(programs, url, key_file, ca_file)
    for line in (*stages(runs), *comparison(runs), *budgets(runs, spent, wishes.total)):
        _say(line)


# The services


def _start_curator(wishes: DemoOptions, programs: Programs) -> tuple[str, Path]:
    program, home = installed("subn-curator"), wishes.folder / "curator"
    made = json.loads(run([program, "init", "--home", home, "--json"]))
    key_file = wishes.folder / "operator.key"
    write_file(key_file, made["operator_key"] + "\n")
    curator = programs.start("curator", [program, "serve", "--home", home, "--port", "0"])
    return str(curator.wait_for("listening")["url"]), key_file


def _start_parties(
    wishes: DemoOptions, programs: Programs, url: str, fingerprints: dict[str, str], codes: dict[str, str]
) -> None:
    names = wishes.hospitals
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as together:
        list(together.map(lambda name: _enrol(wishes, name, fingerprints, url, codes[name]), names))
    _say("every hospital has made its keys, enrolled with its code, noted the others' fingerprints, offered its rows")
    for name in names:
        programs.start(name, [installed("subn-party"), "serve", "--home", wishes.folder / name])


def _make_home(wishes: DemoOptions, name: str) -> str:
    """Make a party's home and return the fingerprint of its keys."""
    made = json.loads(run([installed("subn-party"), "init", "--home", wishes.folder / name, "--json"]))
    return str(made["fingerprint"])


def _enrol(wishes: DemoOptions, name: str, fingerprints: dict[str, str], url: str, code: str) -> None:
    program, home, data = installed("subn-party"), wishes.folder / name, wishes.folder / "data"
    # Data owners compare fingerprints by telephone or mail; here one process knows all of them.
    others = [
        _PEER.format(name=json.dumps(other), fingerprint=found)
        for other, found in fingerprints.items()
        if other != name
    ]
    accept = "ask" if wishes.ask and name == wishes.hospitals[0] else "auto"
    texts = {
        "source": data / f"{name}.csv",
        "schema": data / "schema.json",
        "total": wishes.total,
        "epsilon": wishes.epsilon,
        "accept": accept,
    }
    own = _SETTINGS.format(**{key: json.dumps(str(text)) for key, text in texts.items()})
    (home / "party.toml").write_text(own + "".join(others), encoding="utf-8")
    run([program, "enrol", "--home", home, "--curator", url, "--code", code, "--name", name])
    run([program, "offer", "--home", home])


# The run


def _run(wishes: DemoOptions, wanted: dict[str, str], client: CuratorClient, programs: Programs, url: str) -> DemoRun:
    data = wishes.folder / "data"
    schema = (data / "schema.json").read_bytes()
    body: dict[str, Any] = {"parties": wishes.hospitals, "epsilon": wishes.epsilon} | wanted
    body |= {"join_seconds": _PATIENCE_WITH_PEOPLE if wishes.ask else _PATIENCE, "step_seconds": _PATIENCE}
    body["anyway"] = True  # the rows are made up: a plan that protects nobody may be tried out
    body["schema"] = client.add_schema(schema)["hash"]
    plan = client.plan(body)
    prices = ", ".join(f"{party} {price}" for party, price in plan["price"].items())
    _say(f"\na plan with method {wanted['method']} and these prices in epsilon: {prices}; nothing is spent yet")
    started = perf_counter()
    name = client.create_run(body, idempotency_key=wanted["method"])["run"]
    if wishes.ask:
        _say_where_to_look(wishes, programs, url)
    ended = _watched(client, name, programs)
    if ended["state"] != "finished":
        raise ProgramFailed(f"{describe_run(ended)}; the logs are in {programs.logs}")
    seconds = perf_counter() - started
    result = wishes.folder / "results" / wanted["method"]
    result.mkdir(parents=True)
    for file in ("manifest.json", "table.csv", "network.json", "tables.json", "report.json", "report.html"):
        client.download(name, file, result / file)
    manifest = verify_manifest((result / "manifest.json").read_bytes(), {})
    _, of_pairs = errors_against(data / "all.csv", result / "table.csv", Schema.parse(schema))
    return DemoRun(wanted["method"], result, manifest, seconds, of_pairs)


def _spent(wishes: DemoOptions, name: str) -> Fraction:
    """Return what a hospital's own ledger says that it has spent."""
    found = json.loads(run([installed("subn-party"), "ledger", "--home", wishes.folder / name, "--json"]))
    return sum((Fraction(account["spent"]) for account in found["accounts"].values()), Fraction(0))


def _say_where_to_look(wishes: DemoOptions, programs: Programs, url: str) -> None:
    """Print the addresses of the pages and the key that opens them: made-up data, on this machine only."""
    own = next(program for program in programs.started if program.name == wishes.hospitals[0])
    own.wait_for("listening")
    page = json.loads(run([installed("subn-party"), "page", "--home", wishes.folder / own.name, "--json"]))
    _say(f"\nnow it is your turn; {own.name} waits for your decision:")
    _say(f"  its data owner's pages (this address opens once): {page['address']}")
    _say(f"  the operator's pages: {url}/sign-in")
    _say(f"  the operator's key: {(wishes.folder / 'operator.key').read_text(encoding='utf-8').strip()}\n")


def _watched(client: CuratorClient, name: str, programs: Programs) -> dict[str, Any]:
    """Show the run until it has ended, and return it. A program that dies meanwhile ends this at once."""
    screen = Screen(sys.stdout)
    while True:
        for program in programs.started:
            program.require_alive()
        found = client.run(name)
        screen.show(found)
        if found["state"] in ENDS:
            return found
        sleep(_LOOK_SECONDS)


def _say_where_results_are(runs: Sequence[DemoRun]) -> None:
    for one in runs:
        _say(f"\n{one.method}: table, report and manifest are in {one.result}")
        _say(f"  check them: subn verify {one.result / 'manifest.json'}")


def _say_what_stays(programs: Programs, url: str, key_file: Path, ca_file: Path) -> None:
    numbers = " ".join(str(program.process.pid) for program in programs.started)
    _say("\nstill running:")
    for program in programs.started:
        _say(f"  {program.name:12} {program.wait_for('listening')['url']}")
    settings = f"SUBN_URL={url} SUBN_KEY_FILE={key_file} SUBN_CA_FILE={ca_file}"
    _say(f"ask the curator: {settings} {installed('subn')} parties list")
    _say(f"its interface: {url}/openapi.json")
    _say(f"stop everything: kill {numbers}")


def _say(text: str) -> None:
    print(printable(text, keep="\n"), flush=True)
