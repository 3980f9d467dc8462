"""What Prometheus scrapes after runs of real processes: the manifests' figures exactly, to those alone who may know."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from curator.home.tls import client_context
from protocol.run.agreement import agree
from protocol.run.manifest import Manifest, verify_manifest
from tests.end_to_end.cluster import Cluster, Site, cluster, wait

ROOT = Path(__file__).parents[2]
PARTIES = ("Nord", "Süd Klinik")
Sample = tuple[str, frozenset[tuple[str, str]]]
RUNS: list[Mapping[str, Any]] = [
    {"noise": "selected", "key_bits": 2048, "update": "joint"},
    {"noise": "distributed", "method": "dp-ccbn"},
    {"method": "independent", "epsilon": "1/3"},
]

ACCOUNT = {"account": "patients", "datasets": "patients"}


@contextmanager
def at_work(folder: Path) -> Iterator[Cluster]:
    with cluster(folder) as found:
        found.add(*PARTIES)
        found.enrol(*PARTIES)
        found.acquaint(*PARTIES)
        found.serve(*PARTIES)
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with at_work(tmp_path_factory.mktemp("metrics")) as found:
        yield found


def _manifest(home: Cluster, run: str) -> Manifest:
    return verify_manifest(home.get(run, "manifest.json"), {}, bytes.fromhex(home.public))


def token(folder: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {(folder / 'metrics-token').read_text().strip()}"}


def parsed(answer: httpx.Response) -> dict[Sample, float]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def of_curator(home: Cluster) -> dict[Sample, float]:
    return parsed(home.http.get("/metrics", headers=token(home.folder / "curator")))


def of_party(site: Site) -> dict[Sample, float]:
    url = site.running.wait_for("listening")["url"]
    return parsed(httpx.get(f"{url}/metrics", headers=token(site.home)))


def value(found: Mapping[Sample, float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def total(found: Mapping[Sample, float], name: str, **labels: str) -> float:
    return sum(v for (n, have), v in found.items() if n == name and frozenset(labels.items()) <= have)


def settled(home: Cluster) -> None:
    """Parties know that their runs are over, and have nothing set aside."""
    for site in home.sites.values():
        wait(lambda site=site: _has_ended_all(site), "the end to be known", site.running)


def _has_ended_all(site: Site) -> bool:
    return all(request["state"] == "ended" for request in site.cli("requests", "--all"))


def test_the_metrics_are_the_manifests_figures(tmp_path: Path) -> None:
    """Of one run, then of all runs added up, where there were no others."""
    manifests: list[Manifest] = []
    with at_work(tmp_path / "figures") as home:
        for wishes in RUNS:
            manifests.append(_manifest(home, home.finished(*PARTIES, **wishes)))
            settled(home)
            _check_curator(home, manifests)
            _check_parties(home, manifests)


def _check_curator(home: Cluster, manifests: list[Manifest]) -> None:
    found = of_curator(home)
    expected: dict[Sample, float] = defaultdict(float)
    for manifest in manifests:
        for cost in manifest.phases:
            place = frozenset({"method": manifest.plan.method, "stage": cost.name}.items())
            assert found["subn_curator_stage_seconds_total", place] > 0
            expected["subn_curator_stage_cells_total", place] += cost.cells
            expected["subn_curator_stage_ciphertexts_total", place] += cost.ciphertexts
            both = [found["subn_curator_bytes_total", place | {("direction", way)}] for way in ("in", "out")]
            assert sum(both) == cost.bytes
            assert min(both) > 0
    told = {sample: v for sample, v in found.items() if sample[0].startswith("subn_curator_stage_")}
    told = {sample: v for sample, v in told.items() if sample[0] != "subn_curator_stage_seconds_total"}
    assert told == expected
    for number, name in enumerate(PARTIES):
        records = [manifest.parties[number] for manifest in manifests]
        exact = sum((record.spent for record in records), Fraction(0))
        schema = home.schema.hash[:12]
        assert value(found, "subn_curator_epsilon_spent_total", party=name, schema=schema) == float(exact)
        assert value(found, "subn_curator_delta_spent_total", party=name, schema=schema) == 0
        answers = sum(len(record.receipts) for record in records)
        assert total(found, "subn_curator_answers_total", party=name) == answers
    assert value(found, "subn_curator_runs", state="finished") == len(manifests)
    assert total(found, "subn_curator_runs") == len(manifests)
    opened = sum(cost.ciphertexts for m in manifests for cost in m.phases) / len(PARTIES)
    assert value(found, "subn_curator_opened_ciphertexts_total") == opened


def _check_parties(home: Cluster, manifests: list[Manifest]) -> None:
    scraped = {name: of_party(home.sites[name]) for name in PARTIES}
    curators = of_curator(home)
    for number, (name, found) in enumerate(scraped.items()):
        records = [manifest.parties[number] for manifest in manifests]
        exact = sum((record.spent for record in records), Fraction(0))
        assert value(found, "subn_party_epsilon_spent", **ACCOUNT) == float(exact)
        assert value(found, "subn_party_epsilon_left", **ACCOUNT) == float(100000000 - exact)
        assert value(found, "subn_party_epsilon_reserved", **ACCOUNT) == 0
        assert value(found, "subn_party_delta_spent", **ACCOUNT) == 0
        assert total(found, "subn_party_answers_total") == sum(len(record.receipts) for record in records)
        assert value(found, "subn_party_requests", state="ended") == len(manifests)
        assert value(found, "subn_party_info", version="0.1.0", party=name) == 1
    ways = {"in": "subn_party_answer_bytes_total", "out": "subn_party_task_bytes_total"}
    for way, name in ways.items():
        theirs = sum(total(found, name) for found in scraped.values())
        assert theirs == total(curators, "subn_curator_bytes_total", direction=way)
    made = sum(value(found, "subn_party_ciphertexts_total") for found in scraped.values())
    assert made == sum(cost.ciphertexts for manifest in manifests for cost in manifest.phases)


def test_who_may_scrape(home: Cluster) -> None:
    """The metrics' token opens this door and no other; an operator's key opens it too, nothing else does."""
    scrape, own = token(home.folder / "curator"), {"Authorization": f"Bearer {home.key}"}
    with httpx.Client(base_url=home.url, verify=client_context(home.ca_file.read_text())) as line:
        assert line.get("/metrics", headers=own).status_code == 200
        assert line.get("/metrics").status_code == 401
        assert line.get("/metrics", headers={"Authorization": "Bearer " + "0" * 64}).status_code == 401
        assert line.get("/v1/runs", headers=scrape).status_code == 401
    site = home.sites["Nord"]
    with httpx.Client(base_url=site.running.wait_for("listening")["url"]) as line:
        assert line.get("/metrics", headers=token(site.home)).status_code == 200
        local = {"Authorization": f"Bearer {(site.home / 'local-token').read_text().strip()}"}
        assert line.get("/metrics", headers=local).status_code == 200
        assert line.get("/metrics").status_code == 401
        assert line.get("/v1/ledger", headers=token(site.home)).status_code == 401
    for folder in (home.folder / "curator", site.home):
        assert (folder / "metrics-token").stat().st_mode & 0o777 == 0o600


def test_both_sides_say_how_they_are(home: Cluster) -> None:
    found = of_curator(home)
    assert {value(found, "subn_curator_ready", check=name) for name in ("store", "disk", "clock")} == {1}
    assert value(found, "subn_curator_clock_jumps_total") == 0
    for name in PARTIES:
        assert abs(value(found, "subn_curator_party_clock_difference_seconds", party=name)) < 30
        own = of_party(home.sites[name])
        assert {value(own, "subn_party_ready", check=one) for one in ("ledger", "disk", "clock", "curator")} == {1}
        assert abs(value(own, "subn_party_clock_difference_seconds")) < 30
        assert value(own, "subn_party_request_waiting_seconds") == 0
    home.http.get("/v1/runs/no-such-run")
    home.http.request("BREW", "/no/such/../place")
    after = of_curator(home)
    lost = {"method": "GET", "route": "/v1/runs/{run}", "status": "404"}
    assert value(after, "subn_curator_http_requests_total", **lost) >= 1
    strange = {"method": "other", "route": "none", "status": "404"}
    assert value(after, "subn_curator_http_requests_total", **strange) == 1
    assert value(after, "subn_curator_http_request_seconds_count", route="/v1/runs/{run}") >= 1


def test_logs_are_json_and_name_run_and_step(home: Cluster) -> None:
    run = home.finished(*PARTIES)
    settled(home)
    curator = [line for line in home.curator.lines() if line.get("run") == run]
    steps = [line["step"] for line in curator if line["event"] == "step"]
    assert set(steps) - {""} == {step.name for step in agree(_manifest(home, run).plan, home.schema).steps}
    answered = {(line["party"], line["step"]) for line in curator if line["event"] == "answered"}
    received = {(p.name, r.step) for p in _manifest(home, run).parties for r in p.receipts}
    assert answered == received
    assert [line["state"] for line in curator if line["event"] == "ended"] == ["finished"]
    puts = {(line["party"], line["step"]) for line in curator if line.get("method") == "PUT"}
    assert puts == received
    for name in PARTIES:
        own = [line for line in home.sites[name].running.lines() if line.get("run") == run]
        mine = {step for party, step in received if party == name}
        assert {line["step"] for line in own if line["event"] == "answered"} == mine
        assert {line["step"] for line in own if line["event"] == "delivered"} == mine
    for program in home.programs:
        for line in program.log.read_text().splitlines():
            assert {"time", "event"} <= json.loads(line).keys()


# What the ready dashboards and alert rules are built on

_NAME = re.compile(r"\bsubn_(?:curator|party)_[a-z_]+")
_SELECTOR = re.compile(r"(subn_(?:curator|party)_[a-z_]+)\{([^}]*)\}")
_GROUPING = re.compile(r"(?:by|without|ignoring) \(([^)]*)\)")


def expressions(side: str) -> list[str]:
    folder = ROOT / side / "monitoring"
    dashboard = json.loads((folder / "dashboard.json").read_text())
    rules = yaml.safe_load((folder / "alerts.yml").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return shown + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("side", ["curator", "party"])
def test_every_metric_and_label_of_dashboard_and_alerts_exists(home: Cluster, side: str) -> None:
    home.finished(*PARTIES)
    settled(home)
    url = home.sites["Nord"].running.wait_for("listening")["url"]
    httpx.get(f"{url}/readyz")
    found = of_curator(home) if side == "curator" else of_party(home.sites["Nord"])
    labels: dict[str, set[str]] = defaultdict(set)
    for name, pairs in found:
        labels[name] |= {key for key, _ in pairs}
    used: set[str] = set()
    for expression in expressions(side):
        names = set(_NAME.findall(expression))
        used |= names
        allowed = set().union(*(labels[name] for name in names)) if names else {"job"}
        for group in _GROUPING.findall(expression):
            assert {label.strip() for label in group.split(",")} <= allowed, expression
        for name, selector in _SELECTOR.findall(expression):
            assert set(re.findall(r"(\w+)=", selector)) <= labels[name], expression
        assert expression.count("(") == expression.count(")")
    assert used <= set(labels), used - set(labels)
    assert {name for name in labels if name.startswith(f"subn_{side}_ready")} <= used


@pytest.mark.parametrize("side", ["curator", "party"])
def test_dashboards_and_alerts_are_well_formed(side: str) -> None:
    folder = ROOT / side / "monitoring"
    dashboard = json.loads((folder / "dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells))  # no panel covers another
    for group in yaml.safe_load((folder / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
            assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["alert"])
            assert re.fullmatch(r"\d+m", rule.get("for", "1m"))
            assert rule["labels"]["severity"] in ("critical", "warning")
            assert rule["annotations"]["summary"].endswith(".")
