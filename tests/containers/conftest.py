"""One engine and one image for all tests of containers, even when several processes run them."""

import fcntl
import tempfile
from pathlib import Path

import pytest

from tests.containers.machinery import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    with (Path(tempfile.gettempdir()) / "dp-subn-containers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = Engine.prepared()
        found.build()
    return found
