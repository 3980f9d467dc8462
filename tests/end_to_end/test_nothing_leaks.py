"""No log, metric, error, event or trace holds a value or a count from a table, whatever happens.

Real processes over tables with canaries: values that no schema lists, keys of persons, a secret in a database's
password, and counts of rows that nothing public tells. Runs finish, are refused, fail at bad rows and are killed;
then every byte that curator and parties have said, and all that the curator has on its disk, is searched.

A count is found by chance with a probability below 1e-4: it is looked for as a number of five digits that stands
alone, and the only numbers of that size in logs that are not the same in every run are those of processes.
"""

import csv
import json
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import create_engine, text

from protocol.tables.schema import Schema
from tests.end_to_end.cluster import Cluster, Program, Site, cluster, wait
from tests.support.effort import mostly_exhaustive
from tests.support.postgres import postgres_server

SCHEMA = Schema.parse(
    json.dumps(
        {
            "title": "Canaries",
            "attributes": [
                {"name": "sick", "kind": "categorical", "values": ["yes", "no"]},
                {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
                {"name": "amount", "kind": "integer", "min": 0, "max": 10**15, "bins": 4},
            ],
        }
    )
)
# By party: rows with sick = yes, and of these with sex = f. Rows in all are public; these are not.
COUNTS = {"Nord": (31_293, 17_917), "Süd": (28_479, 19_683), "Bad": (23_897, 12_741)}
ROWS = 40_000
AMOUNT = 734_911_552_203_417  # with the row's number added: in every row another amount that is in no other text
PERSON, NOTE, WRONG, PASSWORD = "CANARYPERSON", "CANARYNOTE", "CANARYWRONG", "CANARYPASSWORD"
VALUES = (PERSON, NOTE, WRONG, PASSWORD, str(AMOUNT)[:9])


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres_server() as url:
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        with engine.connect() as db:
            db.execute(text("CREATE TABLE patients (sick text, sex text, amount text)"))
            db.execute(text(f"INSERT INTO patients VALUES ('yes', 'f', '{WRONG}')"))
        engine.dispose()
        yield url.replace("postgresql://postgres@", f"postgresql+psycopg://postgres:{PASSWORD}@")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("canaries"), SCHEMA) as found:
        names = list(COUNTS)
        found.add(*names, rows=1, rules={"methods": ["dp-subn", "guided", "dp-ccbn"]})
        found.enrol(*names)
        for name in names:
            write_table(found.sites[name])
            _keyed(found.sites[name])
            found.sites[name].cli("offer")
        found.acquaint(*names)
        found.serve(*names)
        yield found


def _keyed(site: Site) -> None:
    settings = site.home / "party.toml"
    settings.write_text(settings.read_text().replace("epsilon_total", 'person_key = "person"\nepsilon_total'))


def write_table(site: Site, *, bad: str = "") -> None:
    """`bad` says what is wrong with row 4,711."""
    sick, both = COUNTS[site.name]
    with (site.home / "patients.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "sick", "sex", "amount", "note"])
        for number in range(ROWS):
            is_bad = bad and number == 4_710
            row = [
                f"{PERSON}{0 if is_bad and bad == 'person' else number}",
                WRONG if is_bad and bad == "value" else "yes" if number < sick else "no",
                "f" if number < both else "m",
                str(AMOUNT + number) if not (is_bad and bad == "amount") else str(-AMOUNT),
                f"{NOTE}{number}",
            ]
            writer.writerow(row[:2] if is_bad and bad == "short" else row)


def said_by(home: Cluster) -> Iterator[tuple[str, bytes]]:
    """Everything that both sides tell anybody: by where it was found."""
    for program in home.programs:
        yield f"log of {program.name}", program.log.read_bytes()
    scrape = {"Authorization": f"Bearer {(home.folder / 'curator/metrics-token').read_text().strip()}"}
    yield "curator's metrics", home.http.get("/metrics", headers=scrape).content
    for path in ("/healthz", "/readyz", "/openapi.json", "/v1/runs", "/v1/parties", "/v1/schemas"):
        yield path, home.http.get(path).content
    for entry in home.http.get("/v1/runs").json()["items"]:
        run = entry["run"]
        yield f"run {run}", home.http.get(f"/v1/runs/{run}").content
        yield f"events of {run}", _events(home, run)
        for name in ("manifest.json", "network.json", "report.json", "nothing.json"):
            yield f"{name} of {run}", home.http.get(f"/v1/runs/{run}/{name}").content
    for site in home.sites.values():
        if site.program is not None and _answers(site):
            yield from _said_by_party(site)
        yield f"audit log of {site.name}", (site.home / "audit.jsonl").read_bytes()


def _answers(site: Site) -> bool:
    return site.running.process.poll() is None and psutil.Process(site.running.process.pid).status() != "stopped"


def _events(home: Cluster, run: str) -> bytes:
    """The stream of a run that goes on has no end: what it has said so far."""
    said = b""
    with (
        suppress(httpx.ReadTimeout),
        home.http.stream("GET", f"/v1/runs/{run}/events", timeout=httpx.Timeout(60, read=1)) as answer,
    ):
        for piece in answer.iter_raw():
            said += piece
    assert b"created" in said
    return said


def _said_by_party(site: Site) -> Iterator[tuple[str, bytes]]:
    url = site.running.wait_for("listening")["url"]
    owner = {"Authorization": f"Bearer {(site.home / 'local-token').read_text().strip()}"}
    with httpx.Client(base_url=url, headers=owner) as line:
        for path in ("/healthz", "/readyz", "/metrics", "/v1/requests", "/v1/ledger", "/v1/audit", "/v1/nothing"):
            answer = line.get(path)
            yield f"{path} of {site.name}", answer.content + str(answer.headers).encode()


def disk_of_curator(home: Cluster) -> Iterator[tuple[str, bytes]]:
    """Also what is published, which was paid for: no value of a row may be in it, whatever its noise says."""
    for file in sorted((home.folder / "curator").rglob("*")):
        if file.is_file():
            yield f"curator's {file.name}", file.read_bytes()


def assert_no_canary(home: Cluster) -> None:
    said = list(said_by(home))
    assert len(said) > 20
    for where, data in [*said, *disk_of_curator(home)]:
        for canary in VALUES:
            assert canary.encode() not in data, f"{canary} in {where}"
    numbers = [str(number) for pair in COUNTS.values() for number in pair]
    numbers += [f"{number[:-3]},{number[-3:]}" for number in numbers]
    counts = re.compile(rb"(?<![\w.,])(" + "|".join(numbers).encode() + rb")(?![\w,]|\.\d)")
    for where, data in said:
        assert (found := counts.search(data)) is None, f"{found and found[0]!r} in {where}"


def test_the_search_finds_what_it_looks_for(home: Cluster, tmp_path: Path) -> None:
    """A log that tells is found out: the search is not blind."""
    log = tmp_path / "log"
    home.programs.append(Program("a tell-tale", home.curator.process, log))
    for told in (f'{{"event": "{NOTE}17"}}\n', '{"count": 31293}\n', "sick: 31,293 rows\n", f'"{AMOUNT + 17}"\n'):
        log.write_bytes(home.curator.log.read_bytes() + told.encode())
        with pytest.raises(AssertionError, match="in log of a tell-tale"):
            assert_no_canary(home)
    home.programs.pop()
    assert_no_canary(home)


@pytest.mark.parametrize(
    "wishes", mostly_exhaustive([{"noise": "selected", "key_bits": 2048}, {"method": "dp-ccbn"}], {0})
)
def test_runs_that_finish_tell_nothing(home: Cluster, wishes: dict[str, object]) -> None:
    run = home.finished("Nord", "Süd", **wishes)
    assert Fraction(home.run(run)["progress"][0]["answered"].count("Nord")) == 1
    assert_no_canary(home)


def test_a_run_with_killed_and_cancelled_sides_tells_nothing(home: Cluster) -> None:
    run = home.begin("Nord", "Süd", update="joint", rounds=3)
    wait(lambda: home.run(run)["step"] not in (None, "joining"), "the run to begin", home.curator)
    home.sites["Süd"].running.send(signal.SIGSTOP)  # so that it is not over when it is looked at
    assert_no_canary(home)  # with answers of a run under way on the curator's disk
    home.sites["Nord"].running.stop(9)
    home.curator.stop(9)
    home.start_curator()
    home.serve("Nord")
    home.http.post(f"/v1/runs/{run}/cancel", json={"reason": "enough"})
    home.until(run, "cancelled")
    home.sites["Süd"].running.send(signal.SIGCONT)
    assert_no_canary(home)


@pytest.mark.parametrize("bad", mostly_exhaustive(["value", "amount", "person", "short"], {0, 2}))
def test_bad_rows_are_nobodys_business(home: Cluster, bad: str) -> None:
    """The table changes after its offer: the run is refused, and the curator learns neither where nor what."""
    site = home.sites["Bad"]
    write_table(site, bad=bad)
    run = home.begin("Nord", "Bad")
    refused = home.until(run, "refused")
    assert refused["culprit"] == "Bad"
    assert "subn-party check" in refused["reason"]
    assert not re.search(r"4.?71[0-2]|row|\bline\b|column|patients\.csv|sick|amount|person", refused["reason"])
    assert_no_canary(home)
    checked = site.shell("check")
    assert checked.returncode == 2
    assert not [canary for canary in VALUES if canary in checked.stdout + checked.stderr]
    assert re.search("line 4,?712", checked.stdout)  # the owner is told where: the header is the file's first line
    write_table(site)


@pytest.mark.exhaustive
def test_files_that_cannot_be_read_are_nobodys_business(home: Cluster) -> None:
    site = home.sites["Bad"]
    table = site.home / "patients.csv"
    for broken in (
        table.read_bytes()[:1_000_000] + f'"{NOTE}'.encode(),
        f"{NOTE},{PERSON}\n".encode(),
        f"person,sick,sex,amount\n{PERSON},\xff{WRONG}".encode("latin-1"),
    ):
        table.write_bytes(broken)
        run = home.begin("Nord", "Bad")
        assert home.until(run, "refused")["culprit"] == "Bad"
        assert_no_canary(home)
    write_table(site)


def test_a_policys_refusal_tells_nothing(home: Cluster) -> None:
    run = home.begin("Nord", "Bad", method="independent")
    assert home.until(run, "refused")["culprit"] in ("Nord", "Bad")
    assert_no_canary(home)


def test_a_databases_complaint_is_not_repeated(home: Cluster, database: str) -> None:
    """PostgreSQL quotes the value that it cannot cast; its driver's message goes nowhere."""
    site = home.sites["Bad"]
    site.running.stop()
    settings = site.home / "party.toml"
    from_a_file = settings.read_text()
    query = "SELECT 'x' AS person, sick, sex, amount::int AS amount FROM patients"
    source = f'source = "{database}"\nquery = "{query}"'
    settings.write_text(from_a_file.replace('source = "patients.csv"', source))
    home.serve("Bad")
    run = home.begin("Nord", "Bad")
    assert home.until(run, "refused")["culprit"] == "Bad"
    checked = site.shell("check")
    assert checked.returncode == 2
    assert not [canary for canary in VALUES if canary in checked.stdout + checked.stderr]
    assert_no_canary(home)
    site.running.stop()
    settings.write_text(from_a_file)
    home.serve("Bad")
