"""What all tests share: small keys, and a check that no process outlives the tests."""

import logging
import os
from collections.abc import Iterator

import psutil
import pytest

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from tests.support.effort import register_profiles
from tests.support.programs import FORKS

SMALL_BITS = 512  # keys that the product refuses, because big ones are slow to draw
_MARK = "SUBN_TESTS"
_SHARED = "aardvark-dns"  # of podman: whoever is first starts it, and it serves the networks of all until the last ends

register_profiles()


@pytest.fixture(scope="session")
def small_secret() -> SecretKey:
    return SecretKey.generate(SMALL_BITS)


@pytest.fixture(autouse=True)
def logs_go_where_they_went() -> Iterator[None]:
    """A command that runs in this process sets handlers, whose stream is gone after its test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Every process that tests start inherits a mark, by which those that are left are found."""
    mark = Stream.system().take(8).hex()
    os.environ[_MARK] = mark
    yield
    FORKS.end()
    del os.environ[_MARK]
    marked = [one for one in psutil.process_iter(["name"]) if _environment(one).get(_MARK) == mark]
    marked = [one for one in marked if one.info["name"] != _SHARED]
    _, left = psutil.wait_procs(marked, timeout=30)  # what was told to end may be ending
    assert not left, [_command(process) for process in left]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        found: dict[str, str] = process.environ()
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return {}
    return {} if process.pid == os.getpid() else found


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return [str(process)]
