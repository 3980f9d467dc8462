"""Whole runs between real processes over sockets: every method, noise and update, and what is published."""

import pytest

from protocol.manifest import verify_manifest
from protocol.schema import Schema
from tests.end_to_end.cluster import Cluster, cluster
from tests.end_to_end.conftest import PARTIES

THREE = PARTIES[:3]


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_parties(home: Cluster, parties: int) -> None:
    home.finished(*PARTIES[:parties])
