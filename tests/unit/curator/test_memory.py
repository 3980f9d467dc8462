"""Memory that is free goes back to the system, and a C library that knows nothing of it is no error."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curator.memory import give_back, share_arenas


def test_the_c_library_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []
    library = SimpleNamespace(
        mallopt=lambda *what: asked.append(("mallopt", what)),
        malloc_trim=lambda *what: asked.append(("malloc_trim", what)),
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    share_arenas()
    give_back()
    assert asked == [("mallopt", (-8, 2)), ("malloc_trim", (0,))]


@pytest.mark.parametrize("library", [object, Path("/nowhere").stat])
def test_another_c_library_is_asked_and_keeps_its_ways(monkeypatch: pytest.MonkeyPatch, library: Any) -> None:
    asked: list[None] = []

    def other(name: None) -> Any:
        asked.append(name)
        return library()

    monkeypatch.setattr(ctypes, "CDLL", other)
    share_arenas()
    give_back()
    assert asked == [None, None]


def test_arrow_is_asked_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[bool] = []
    pool = SimpleNamespace(release_unused=lambda: released.append(True))
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(default_memory_pool=lambda: pool))
    give_back()
    assert released == [True]
    monkeypatch.delitem(sys.modules, "pyarrow")
    give_back()
