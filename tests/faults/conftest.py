"""A curator and two parties as processes, kept for all tests of a module; every test finds all of them at work."""

from collections.abc import Iterator

import pytest

from tests.faults.processes import Cluster


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"), (30, 20))
    try:
        yield found
        found.start_again()
        for run in found.finished:
            found.check_settled(run)
    finally:
        found.close()
    assert found.orphans() == []


@pytest.fixture
def cluster(programs: Cluster) -> Cluster:
    programs.proxy.clear()
    programs.start_again()
    return programs
