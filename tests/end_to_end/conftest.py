"""The cluster that most tests share, one in each worker of the test run."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.cluster import Cluster, cluster

PARTIES = ("Nord", "Süd Klinik", "party-3", "party-4")
GUESTS = ("asks", "strict")  # known to all from the beginning, at work when a test needs them


@pytest.fixture(scope="session")
def home(no_process_is_left: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four parties at work that trust each other and accept what their rules allow."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        found.add(*PARTIES)
        found.add("asks", rules={"accept": "ask"})
        found.add("strict", rules={"methods": ["guided"], "epsilon_per_run": "2"}, total="3")
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
