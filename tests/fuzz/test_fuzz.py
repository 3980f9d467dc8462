"""Every decoder of outside bytes accepts or refuses, clearly: what once failed, what is known, and changes of it.

`make fuzz` goes on for as long as it is told, guided by coverage.
"""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.catalogue import TARGETS
from tests.fuzz.mutation import changed
from tests.fuzz.target import CORPUS
from tests.support.effort import examples

ANY = pytest.mark.parametrize("name", TARGETS)


@ANY
def test_what_once_failed_and_what_is_known_is_accepted_or_refused(name: str) -> None:
    target = TARGETS[name]
    for data in (*target.kept(), *target.seeds()):
        target.feed(data)


@ANY
def test_changed_bytes_are_accepted_or_refused(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=examples(200), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changed(target.seeds()))
    def explore(data: bytes) -> None:
        target.feed(data)

    explore()


@ANY
def test_every_decoder_accepts_something(name: str) -> None:
    """Otherwise nothing behind its first check would be reached."""
    target = TARGETS[name]
    assert any(target.feed(data) for data in target.seeds())


def test_the_corpus_is_small_and_belongs_to_targets() -> None:
    assert {folder.name for folder in CORPUS.iterdir() if folder.is_dir()} <= TARGETS.keys()
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1 << 20
