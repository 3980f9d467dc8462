"""Metrics for the data owner's own Prometheus: the account, the answers and the health of a party.

It does not know who may read them (`party.app`). It does not know any value or count of a table: labels are accounts,
stages and kinds of errors. Privacy: the time that counting takes might tell something about the rows, so it is not
measured here.
"""

from collections import Counter as Count
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from party.books.ledger import REFUSAL, Entry, State
from party.books.ledger_tables import RECOVERED
from party.errors import LedgerError
from party.home.home import OpenHome
from party.logs import Log
from party.operations.health import Health
from protocol.errors import CURATOR
from protocol.services.clock_watch import ClockWatch

PREFIX = "subn_party_"
Number = float | Fraction
Labels = tuple[str, ...]
_KINDS = ("Unreachable", "Untrusted", "Declined", "DiskFull")


class Metrics:
    def __init__(self, health: Health) -> None:
        self.registry = CollectorRegistry()
        self._task_bytes = self._counter("task_bytes", "Bytes of tasks received")
        self._ciphertexts = self._counter("ciphertexts", "Ciphertexts that this process made")
        self._failures = self._counter("failures", "Failures that kept the party from working", "kind")
        for kind in _KINDS:  # from 0, so that the first failure of a kind shows as a change
            self._failures.labels(kind)
        self.registry.register(_Standing(health))
        ProcessCollector(namespace="subn_party", registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def watching(self, log: Log) -> Log:
        """Return a log that counts each event and passes it on to `log`."""

        def watched(event: str, **fields: Any) -> None:
            log(event, **fields)
            if event == "task":
                self._task_bytes.inc(fields["bytes"])
            elif event == "answered":
                self._ciphertexts.inc(fields["ciphertexts"])
            elif event == "cannot go on":
                self._failures.labels(fields["kind"]).inc()

        return watched

    def text(self) -> bytes:
        return generate_latest(self.registry)


def stage_of(step: str) -> str:
    return step.partition("/")[0]


class _Standing:
    """Collector that reads the ledger at every scrape."""

    def __init__(self, health: Health) -> None:
        self._health, self._opened = health, health.opened

    def describe(self) -> Iterator[Metric]:
        """Describe nothing: registering must not read the ledger."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        name = self._opened.settings.curator.name if self._opened.settings.curator else ""
        yield _gauge("info", "The version that runs, and the party's name", ["version", "party"], _info(name))
        yield from self._of_health()
        try:
            yield from _of_money(self._opened)
            yield from _of_requests(self._opened, self._health.clock())
            yield from _of_answers(self._opened.ledger.entries())
        except LedgerError:
            return  # the metric `ready` reports it

    def _of_health(self) -> Iterator[Metric]:
        health = self._health
        watch: ClockWatch = health.watch
        checks = {(name,): float(trouble is None) for name, trouble in health.checks().items()}
        yield _gauge("ready", "1 where a check of /readyz holds", ["check"], checks)
        yield _gauge("disk_free_bytes", "Free bytes on the disk of the home", [], {(): health.free_bytes()})
        yield _counter("clock_jumps", "Times that this machine's clock jumped", [], {(): watch.jumps})
        theirs = watch.differences(health.steady()).get(CURATOR)
        apart = {} if theirs is None else {(): theirs / 1000}
        yield _gauge("clock_difference_seconds", "The curator's signed time less this clock's", [], apart)


def _of_money(opened: OpenHome) -> Iterator[Metric]:
    budgets = {(one.name, ", ".join(one.datasets)): opened.budget(one) for one in opened.accounts_ever()}
    for part, text in (
        ("total", "What all runs together may ever spend"),
        ("spent", "What was spent"),
        ("reserved", "What is set aside for runs under way"),
        ("left", "What may still be spent"),
    ):
        epsilons = {name: getattr(budget, part) for name, budget in budgets.items()}
        deltas = {name: getattr(budget, f"delta_{part}") for name, budget in budgets.items()}
        yield _gauge(f"epsilon_{part}", text, ["account", "datasets"], epsilons)
        yield _gauge(f"delta_{part}", f"{text}, of delta", ["account", "datasets"], deltas)


def _of_requests(opened: OpenHome, now: int) -> Iterator[Metric]:
    found = opened.ledger.requests()
    counted = Count(request.state for request in found)
    yield _gauge("requests", "Runs by state", ["state"], {(state,): counted[state] for state in get_args(State)})
    waiting = [datetime.fromisoformat(request.at) for request in found if request.state == "asked"]
    age = max(0.0, (datetime.fromtimestamp(now / 1000, UTC) - min(waiting)).total_seconds()) if waiting else 0.0
    yield _gauge("request_waiting_seconds", "Age of the oldest run that waits for the data owner", [], {(): age})


def _of_answers(entries: list[Entry]) -> Iterator[Metric]:
    given = [entry for entry in entries if entry.mechanism not in (REFUSAL, RECOVERED)]
    sizes: Count[Labels] = Count()
    for entry in given:
        sizes[stage_of(entry.step),] += entry.reply_bytes
    yield _counter("answers", "Answers given", ["stage"], Count((stage_of(entry.step),) for entry in given))
    yield _counter("answer_bytes", "Bytes of answers given", ["stage"], sizes)
    refused = sum(entry.mechanism == REFUSAL for entry in entries)
    yield _counter("refusals", "Answers that refused a task", [], {(): refused})


def _info(name: str) -> Mapping[Labels, Number]:
    return {(version("dp-subn"), name): 1}


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
