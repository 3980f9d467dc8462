"""Strangers who send much, or half, to real programs: neither a curator nor a party grows or stops."""

import json
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from curator.commands.main import main as curator_command
from tests.end_to_end.cluster import wait
from tests.support.programs import Process, start_script
from tests.support.raw_http import connected, head, status_of

BODY = 48 << 20  # of each of so many strangers
STRANGERS = 8
MOST_GROWTH = 48 << 20  # bytes of memory, for all of them together
ROOM = 1 << 30  # bytes of addresses beyond those that the program has when it is ready


@dataclass
class Service:
    url: str
    process: Process

    @property
    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def peak(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))

    def is_well(self) -> bool:
        return httpx.get(f"{self.url}/healthz").status_code == 200


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("curator")
    home, log = folder / "home", folder / "log"
    assert curator_command(["init", "--home", str(home)]) == 0
    with log.open("wb") as output:
        words = ("serve", "--home", home, "--port", 0, "--plain-http")
        process = start_script("subn-curator", *words, output=output)
    try:
        yield _bounded(Service(str(wait(lambda: _listening(log), "the curator")), process))
        assert process.poll() is None
    finally:
        process.terminate()  # type: ignore[attr-defined]
        process.wait(20)


def _listening(log: Path) -> str | None:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return next((line["url"] for line in lines if line.get("event") == "listening"), None)


def _bounded(service: Service) -> Service:
    """The service, with so much room for addresses that it cannot harm this machine, whatever it does."""
    assert service.is_well()
    most = psutil.Process(service.process.pid).memory_info().vms + ROOM
    resource.prlimit(service.process.pid, resource.RLIMIT_AS, (most, most))
    return service


def flood(url: str, method: str, target: str, headers: dict[str, str]) -> int | None:
    """Send a large body until the other side hangs up; the status of its answer, if that could be heard."""
    with connected(url) as line:
        line.sendall(head(method, target, headers, BODY))
        with suppress(ConnectionError):
            for _ in range(BODY >> 20):
                line.sendall(bytes(1 << 20))
        try:
            return status_of(line)[0]
        except (ConnectionError, OSError):
            return None


CURATORS_DOORS = [
    ("PUT", "/v1/runs/run/outbox/joining"),
    ("PUT", "/v1/offers/rows"),
    ("POST", "/v1/enrolments"),
    ("POST", "/v1/schemas"),
    ("POST", "/sign-in"),
]


@pytest.mark.parametrize(("method", "target"), CURATORS_DOORS)
def test_large_bodies_of_strangers_cost_a_curator_no_memory(curator: Service, method: str, target: str) -> None:
    """Eight at once ended a curator with 2 GB: each body was read into memory before anybody looked who sent it."""
    before = curator.memory
    with ThreadPoolExecutor(STRANGERS) as threads:
        found = [threads.submit(flood, curator.url, method, target, {}) for _ in range(STRANGERS)]
        assert {one.result(60) for one in found} <= {401, 413, None}
    assert curator.peak() - before < MOST_GROWTH
    assert curator.is_well()


def test_many_halves_of_bodies_cost_a_curator_no_memory(curator: Service) -> None:
    before = curator.memory
    with ExitStack() as lines:
        for number in range(200):
            line: socket.socket = lines.enter_context(connected(curator.url))
            method, target = CURATORS_DOORS[number % len(CURATORS_DOORS)]
            line.sendall(head(method, target, {}, BODY))
            with suppress(BlockingIOError, ConnectionError):
                line.setblocking(False)
                line.send(bytes(1 << 19))
        assert curator.is_well()
        assert curator.peak() - before < MOST_GROWTH
