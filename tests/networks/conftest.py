"""A curator and three parties, each in network namespaces of its own, on a wire that the tests bend and cut.

Run by `make networks`, which gives the tests namespaces of their own: nothing of the machine's network is touched.
"""

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from tests.end_to_end.cluster import Cluster, cluster
from tests.networks.inside import names_from
from tests.networks.names import NAME, NameServer
from tests.networks.wire import Wire
from tests.support.programs import SCRIPTS, Process

HERE, CURATOR = "10.77.0.254", "10.77.0.1"
PARTIES = {"party-1": "10.77.0.11", "party-2": "10.77.0.12", "party-3": "10.77.0.13"}
RULES = {"accept": "auto", "epsilon_per_run": "1000", "updates": ["turns"]}


@pytest.fixture(scope="session")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    assert [name for _, name in socket.if_nameindex()] == ["lo"], "run these tests by `make networks`, as root"
    found = Wire(tmp_path_factory.mktemp("wire"))
    found.resolv.write_text(f"nameserver {HERE}\noptions timeout:1 attempts:1\n")
    names_from(str(found.resolv))
    found.attach(HERE)
    yield found
    found.close()


@pytest.fixture(scope="session")
def name_server(wire: Wire) -> Iterator[NameServer]:
    found = NameServer(HERE, CURATOR)
    yield found
    found.close()


@pytest.fixture(scope="session")
def parted(wire: Wire, name_server: NameServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Everybody at work; parties reach their curator by its name."""
    addresses = {"curator": CURATOR, **PARTIES}

    def begin(program: str, *arguments: object, output: IO[bytes], env: Mapping[str, str] | None = None) -> Process:
        home = Path(str(arguments[list(arguments).index("--home") + 1])).name
        command = [str(SCRIPTS / program), *map(str, arguments)]
        return wire.start(addresses[home], command, output, env or {})

    with cluster(tmp_path_factory.mktemp("cluster"), begin_process=begin, host=CURATOR, names=(CURATOR, NAME)) as found:
        by_address, found.url = found.url, found.url.replace(CURATOR, NAME)
        found.add(*PARTIES, rules=RULES)
        found.acquaint(*PARTIES)
        found.enrol(*PARTIES)
        found.url = by_address
        found.serve(*PARTIES)
        yield found


@pytest.fixture
def sound(wire: Wire, name_server: NameServer, parted: Cluster) -> Cluster:
    """The cluster on a wire without faults."""
    name_server.mood = "answers"
    wire.set()
    for address in wire.lines:
        wire.mend(address)
    return parted
