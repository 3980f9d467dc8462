"""Whole runs between real processes over sockets: every method, noise and update, and what is published."""

import csv
import io
import json
from fractions import Fraction
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from curator.results.publication import PUBLISHED
from protocol.run.agreement import agree
from protocol.run.manifest import Manifest, verify_manifest
from protocol.tables.counting import Rows
from tests.end_to_end.cluster import Cluster, cluster, wait
from tests.end_to_end.conftest import PARTIES
from tests.support.effort import mostly_exhaustive
from tests.support.small_runs import pooled

THREE = PARTIES[:3]
FILES = PUBLISHED


def check_books(home: Cluster, run: str) -> Manifest:
    """What is published proves itself, and is what every party has in its own ledger."""
    digests = {name: sha256(home.get(run, name)).hexdigest() for name in FILES}
    manifest = verify_manifest(home.get(run, "manifest.json"), digests, bytes.fromhex(home.public))
    terms = agree(manifest.plan, home.schema)
    for number, record in enumerate(manifest.parties):
        assert record.spent == terms.price(number) <= manifest.plan.epsilon
        assert record.delta == terms.delta(number) == manifest.plan.delta
        entries = [entry for entry in home.sites[record.name].cli("ledger")["entries"] if entry["run"] == run]
        own = [(one["step"], Fraction(one["charge"]), Fraction(one["delta"]), one["reply"]) for one in entries]
        assert own == [(receipt.step, receipt.charge, receipt.delta, receipt.reply) for receipt in record.receipts]
    header, *rows = csv.reader(io.StringIO(home.get(run, "table.csv").decode()))
    assert tuple(header) == home.schema.names
    assert len(rows) == manifest.plan.rows
    return manifest


METHODS = [*product(("dp-subn", "dp-ccbn", "independent", "privbayes", "privabn", "jtree", "guided"), (2, 3, 4))]
MODES = [
    (noise, update) for noise in ("selected", "distributed", "local") for update in ("accumulate", "replace", "joint")
]
ONE_IN_EACH_ROW_AND_COLUMN = {0, 4, 8}


@pytest.mark.parametrize(
    ("method", "parties"), mostly_exhaustive(METHODS, {*ONE_IN_EACH_ROW_AND_COLUMN, 10, 13, 16, 19})
)
def test_every_method(home: Cluster, method: str, parties: int) -> None:
    manifest = check_books(home, home.finished(*PARTIES[:parties], method=method))
    assert manifest.plan.parties == parties


@pytest.mark.parametrize(("noise", "update"), mostly_exhaustive(MODES, ONE_IN_EACH_ROW_AND_COLUMN))
def test_every_noise_and_update(home: Cluster, noise: str, update: str) -> None:
    insiders = 0 if update == "replace" else 1
    run = home.finished(*THREE, noise=noise, update=update, insiders=insiders, key_bits=2048)
    manifest = check_books(home, run)
    assert any(phase.ciphertexts for phase in manifest.phases) == (noise == "selected")


@pytest.mark.parametrize(
    ("method", "noise"),
    mostly_exhaustive(
        [("dp-subn", "distributed"), ("dp-subn", "selected"), ("dp-ccbn", "local"), ("independent", "local")], {0, 2}
    ),
)
def test_zcdp(home: Cluster, method: str, noise: str) -> None:
    before = home.sites["Nord"].account()
    wishes = {"privacy": "zcdp", "delta": "1e-9", "method": method, "noise": noise, "epsilon": "4/5", "key_bits": 2048}
    planned = home.http.post("/v1/plans", json=home.body(*THREE, **wishes)).json()
    assert planned["delta"] == dict.fromkeys(THREE, "1/1000000000")
    run = home.finished(*THREE, **wishes)
    manifest = check_books(home, run)
    assert max(record.spent for record in manifest.parties) == Fraction(4, 5)
    assert planned["price"] == {record.name: str(record.spent) for record in manifest.parties}
    after = home.sites["Nord"].account()
    assert Fraction(after["delta_spent"]) - Fraction(before["delta_spent"]) == Fraction(1, 10**9)
    report = json.loads(home.get(run, "report.json"))
    assert (report["privacy"], report["epsilon"], report["delta"]) == ("zcdp", "4/5", "1/1000000000")
    assert {party["delta"] for party in report["parties"]} == {"1/1000000000"}


@pytest.mark.parametrize("noise", ["selected", "distributed"])
@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_what_is_released_are_the_pooled_counts_where_noise_is_nothing(home: Cluster, method: str, noise: str) -> None:
    run = home.finished(*THREE, method=method, noise=noise, update="joint", epsilon="1000000", key_bits=2048)
    manifest = check_books(home, run)
    terms = agree(manifest.plan, home.schema)
    codes = pooled(home.schema, [home.sites[name].codes for name in THREE])
    rows = Rows(terms.domain, terms.encoding.encode(codes))
    released = json.loads(home.get(run, "tables.json"))["tables"]
    assert released
    for table in released:
        assert table["counts"] == rows.table(tuple(table["variables"])).ravel().tolist()


def test_two_runs_at_once(home: Cluster) -> None:
    first = home.begin(*THREE, update="joint", rounds=3)
    second = home.begin(*PARTIES, method="dp-ccbn")
    home.until(second, "finished")
    home.until(first, "finished")
    check_books(home, first)
    check_books(home, second)


def test_the_same_key_gives_the_same_run(home: Cluster) -> None:
    run = home.begin(*THREE, key="twice")
    headers = {"Idempotency-Key": "twice"}
    again = home.http.post("/v1/runs", json=home.body(*THREE), headers=headers)
    assert (again.status_code, again.json()["run"]) == (200, run)
    other = home.http.post("/v1/runs", json=home.body(*THREE, epsilon="1"), headers=headers)
    assert other.status_code == 409
    home.until(run, "finished")


def test_a_plan_costs_nothing_and_says_what_the_run_will_cost(home: Cluster) -> None:
    before = home.sites["Nord"].account()
    answer = home.http.post("/v1/plans", json=home.body(*THREE, epsilon="4/5"))
    assert answer.status_code == 200
    assert home.sites["Nord"].account() == before
    manifest = check_books(home, home.finished(*THREE, epsilon="4/5"))
    assert answer.json()["price"] == {record.name: str(record.spent) for record in manifest.parties}


@pytest.mark.exhaustive
def test_a_finished_run_frees_what_was_set_aside(home: Cluster) -> None:
    run = home.finished(*THREE)
    site = home.sites["Nord"]

    def ended() -> Any:
        return [one for one in site.cli("requests", "--all") if one["run"] == run and one["state"] == "ended"]

    (request,) = wait(ended, "the party to settle", site.running)
    assert (request["outcome"], request["reserved"]) == ("finished", "0")
    assert site.cli("audit", "verify")["problems"] == []
    assert not list((site.home / "rows").glob("*"))


# Results


@pytest.fixture(scope="module")
def done(home: Cluster) -> str:
    return home.finished(*THREE)


def test_new_tables_of_any_length_are_streamed(home: Cluster, done: str) -> None:
    rows = 200_000
    chunks, lines = 0, 0
    with home.http.stream("GET", f"/v1/runs/{done}/table.csv", params={"rows": rows}) as response:
        assert response.headers["transfer-encoding"] == "chunked"
        for chunk in response.iter_raw():
            chunks += 1
            lines += chunk.count(b"\n")
    assert lines == rows + 1
    assert chunks > 3


def test_the_published_table_is_also_parquet(home: Cluster, done: str, tmp_path: Path) -> None:
    for query in ({}, {"rows": 1234}):
        (tmp_path / "table.parquet").write_bytes(home.get(done, "table.parquet", **query))
        with duckdb.connect() as database:
            table = database.sql(f"SELECT * FROM '{tmp_path}/table.parquet'").fetchnumpy()
        assert tuple(table) == home.schema.names
        assert np.issubdtype(table["age"].dtype, np.integer)
        assert np.issubdtype(table["bmi"].dtype, np.floating)
        assert len(table["age"]) == query.get("rows", 180)


def test_the_operator_gets_all_results_by_command(home: Cluster, done: str, tmp_path: Path) -> None:
    got = home.subn("get", done, "--out", tmp_path, "--json")
    assert got.returncode == 0, got.stderr
    assert {Path(file).name for file in json.loads(got.stdout)["files"]} == {*FILES, "manifest.json"}
    verified = home.subn("verify", tmp_path / "manifest.json", "--curator-key", home.public, "--json")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["files"] == sorted(FILES)


def events(home: Cluster, run: str, after: int = 0, most: int | None = None) -> list[dict[str, Any]]:
    """The run's events as sent; broken off after `most`."""
    found: list[dict[str, Any]] = []
    with home.http.stream("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": str(after)}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        sent: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if name:
                sent[name] = value.strip()
            elif "data" in sent:
                found.append(json.loads(sent["data"]))
                assert (sent["id"], sent["event"]) == (str(found[-1]["seq"]), found[-1]["kind"])
                sent = {}
            if most is not None and len(found) == most:
                return found
    return found


def test_the_event_stream_is_taken_up_where_it_broke(home: Cluster) -> None:
    run = home.begin(*THREE)
    first = events(home, run, most=4)
    rest = events(home, run, after=first[-1]["seq"])
    whole = events(home, run)
    assert first + rest == whole
    assert [event["seq"] for event in whole] == list(range(whole[0]["seq"], whole[0]["seq"] + len(whole)))
    assert whole[0]["kind"] == "created"
    assert whole[-1]["kind"] == "ended"
    assert whole[-1]["data"]["state"] == "finished"
    watched = home.subn("watch", run, "--json")
    assert watched.returncode == 0, watched.stderr
    assert [json.loads(line) for line in watched.stdout.splitlines()[:-1]] == whole


# Many parties


@pytest.mark.exhaustive
def test_seven_and_ten_parties(tmp_path: Path) -> None:
    names = [f"party-{number}" for number in range(10)]
    with cluster(tmp_path / "many") as many:
        many.add(*names, rows=15)
        many.acquaint(*names)
        many.enrol(*names)
        many.serve(*names)
        seven = many.begin(*names[:7], update="joint", insiders=3)
        ten = many.begin(*names, method="dp-ccbn")
        for run, parties in ((seven, 7), (ten, 10)):
            many.until(run, "finished")
            assert check_books(many, run).plan.parties == parties
