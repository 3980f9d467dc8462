"""Metrics for Prometheus: counters of this process, and totals computed from the store at each scrape.

It does not know who may read them (`curator.http.health_routes`), or any value of a table: labels are names of
parties, methods, stages and routes.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from curator.errors import StoreUnavailable
from curator.operations.health import Health
from curator.operations.run_totals import RunFigures
from curator.runs.orchestrator import Orchestrator

PREFIX = "subn_curator_"
Number = float | Fraction
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0, 60.0, 300.0)  # a long poll takes up to 30


class Metrics:
    def __init__(self, orchestrator: Orchestrator, health: Health) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            PREFIX + "http_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._request_seconds = Histogram(
            PREFIX + "http_request_seconds",
            "Time until a request was answered; the inbox holds requests on purpose",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._opened = Counter(
            PREFIX + "opened_ciphertexts", "Ciphertexts of sums that this process opened", registry=self.registry
        )
        self._opening_seconds = Counter(
            PREFIX + "opening_seconds", "Time that working out complete steps took", registry=self.registry
        )
        orchestrator.worked_out = self._worked_out
        self.registry.register(_Standing(orchestrator, health))
        ProcessCollector(namespace="subn_curator", registry=self.registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is the path's pattern, so that strangers cannot create ever new labels."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def _worked_out(self, ciphertexts: int, seconds: float) -> None:
        self._opened.inc(ciphertexts)
        self._opening_seconds.inc(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Standing:
    """A collector that computes its metrics at every scrape."""

    def __init__(self, orchestrator: Orchestrator, health: Health) -> None:
        self._orchestrator, self._health = orchestrator, health
        self._figures = RunFigures(orchestrator.views.store)

    def describe(self) -> Iterator[Metric]:
        """Describe nothing: registering must not read the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield _gauge("info", "The version that runs", ["version"], {(version("dp-subn"),): 1})
        yield from self._of_health()
        yield from self._of_waiting()
        try:
            yield from self._of_runs()
        except StoreUnavailable:
            return  # `ready` says so

    def _of_health(self) -> Iterator[Metric]:
        health = self._health
        checks = {(name,): float(trouble is None) for name, trouble in health.checks().items()}
        yield _gauge("ready", "1 where a check of /readyz holds", ["check"], checks)
        yield _gauge("disk_free_bytes", "Room where the home is", [], {(): health.free_bytes()})
        yield _counter("clock_jumps", "Times that this machine's clock jumped", [], {(): health.watch.jumps})
        apart = {(party,): by / 1000 for party, by in health.watch.differences(health.steady()).items()}
        yield _gauge("party_clock_difference_seconds", "A party's signed time less this clock's", ["party"], apart)

    def _of_waiting(self) -> Iterator[Metric]:
        orchestrator, now = self._orchestrator, self._health.clock()
        waiting = {(party,): (now - since) / 1000 for party, since in orchestrator.waiting().items()}
        yield _gauge("party_waiting_seconds", "Age of the oldest task a party has not answered", ["party"], waiting)
        yield _gauge("runs_paused", "Runs held up by store or disk", [], {(): orchestrator.paused()})

    def _of_runs(self) -> Iterator[Metric]:
        found = self._figures.read(self._health.clock())
        stage = ["method", "stage"]
        yield _gauge("runs", "Runs by state", ["state"], found.states)
        yield _counter("stage_seconds", "Time that stages of runs took", stage, found.seconds)
        yield _counter("stage_cells", "Cells counted", stage, found.cells)
        yield _counter("stage_ciphertexts", "Ciphertexts asked of parties", stage, found.ciphertexts)
        yield _counter("bytes", "Tasks out, answers in", ["direction", *stage], found.bytes)
        yield _counter("answers", "Answers taken", ["party", "stage"], found.answers)
        yield _counter("epsilon_spent", "Sum of receipts' charges", ["party", "schema"], found.charges)
        yield _counter("delta_spent", "Sum of receipts' charges of delta", ["party", "schema"], found.deltas)
        seen = {(party,): at / 1000 for party, at in found.last_seen.items()}
        yield _gauge("party_last_seen_timestamp_seconds", "When a party last called", ["party"], seen)


def _gauge(name: str, text: str, labels: list[str], values: Mapping[Any, Number]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for label, value in values.items():
        family.add_metric(label, float(value))
    return family


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, Number]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for label, value in values.items():
        family.add_metric(label, float(value))
    return family
