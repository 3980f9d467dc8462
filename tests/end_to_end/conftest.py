"""The cluster that most tests share, one in each worker of the test run, and a check that no process outlives it."""

import os
from collections.abc import Iterator

import psutil
import pytest

from crypto.randomness import Stream
from tests.end_to_end.cluster import Cluster, cluster

_MARK = "SUBN_TESTS"
PARTIES = ("Nord", "Süd Klinik", "party-3", "party-4")
GUESTS = ("asks", "strict")  # known to all from the beginning, at work when a test needs them


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Every process that tests start inherits a mark, by which those that are left are found."""
    mark = Stream.system().take(8).hex()
    os.environ[_MARK] = mark
    yield
    del os.environ[_MARK]
    left = [process for process in psutil.process_iter() if _environment(process).get(_MARK) == mark]
    assert not left, left


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        found: dict[str, str] = process.environ()
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return {}
    return {} if process.pid == os.getpid() else found


@pytest.fixture(scope="session")
def home(no_process_is_left: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four parties at work that trust each other and accept what their rules allow."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        found.add(*PARTIES)
        found.add("asks", rules={"accept": "ask"})
        found.add("strict", rules={"methods": ["dp-subn"], "epsilon_per_run": "2"}, total="3")
        found.acquaint(*PARTIES, *GUESTS)
        found.enrol(*PARTIES)
        found.serve(*PARTIES)
        yield found


@pytest.fixture
def asking(home: Cluster) -> str:
    return _guest(home, "asks")


@pytest.fixture
def strict(home: Cluster) -> str:
    return _guest(home, "strict")


def _guest(home: Cluster, name: str) -> str:
    if home.sites[name].program is None:
        home.enrol(name)
        home.serve(name)
    return name
