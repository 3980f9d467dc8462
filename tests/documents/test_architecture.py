"""docs/architecture.md is true: its packages are those of the tree in the order of the layers, its path leads on."""

import re
import tomllib
from importlib import import_module
from itertools import groupby, pairwise
from typing import Any

import pytest

from tests.support.documents import ROOT, document, marked

PAGE = document("docs/architecture.md")
MOST_STOPS = 15


def listed() -> list[str]:
    return re.findall(r"^\| `([a-z_.]+)` \|", marked(PAGE, "packages"), re.M)


def packages() -> set[str]:
    tops = [ROOT / top for top in ("crypto", "protocol", "party", "curator")]
    found = (file.parent.relative_to(ROOT) for top in tops for file in top.rglob("__init__.py"))
    return {".".join(folder.parts) for folder in found}


def layers() -> list[list[list[str]]]:
    """The full names in every layers contract, layer by layer, from the lowest up."""
    contracts = tomllib.loads(document("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    return [
        [
            [f"{inside}.{name}".lstrip(".") for name in re.split(r"\s*[|:]\s*", layer)]
            for layer in contract["layers"][::-1]
        ]
        for contract in contracts
        if contract["type"] == "layers"
        for inside in contract.get("containers", [""])
    ]


def test_every_package_has_its_line() -> None:
    assert sorted(listed()) == sorted(packages())


def test_packages_stand_in_the_order_of_their_imports() -> None:
    places = {package: place for place, package in enumerate(listed())}
    for contract in layers():
        levels = [[places[name] for name in layer if name in places] for layer in contract]
        levels = [level for level in levels if level]
        assert levels, contract
        for lower, upper in pairwise(levels):
            assert max(lower) < min(upper), contract


def stops() -> list[str]:
    lines = re.findall(r"^(\d+)\. `([\w.]+)` ", marked(PAGE, "path"), re.M)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    return [name for _, name in lines]


def named(stop: str) -> tuple[str, Any]:
    """The module of a stop, and what the rest of the name stands for."""
    parts = stop.split(".")
    module = ".".join(parts[: next(place for place, part in enumerate(parts) if is_no_module(parts[: place + 1]))])
    found: Any = import_module(module)
    for part in parts[len(module.split(".")) :]:
        found = getattr(found, part)
    return module, found


def is_no_module(parts: list[str]) -> bool:
    place = ROOT.joinpath(*parts)
    return not (place.is_dir() or place.with_suffix(".py").is_file())


def test_every_stop_of_the_path_is_a_function() -> None:
    assert 10 <= len(stops()) <= MOST_STOPS
    for stop in stops():
        assert callable(named(stop)[1]), stop


def test_no_package_is_entered_twice() -> None:
    rooms = [named(stop)[0].rpartition(".")[0] for stop in stops()]
    entered = [room for room, _ in groupby(rooms)]
    assert len(entered) == len(set(entered)), entered
    assert set(rooms) <= packages()


def test_a_stop_that_is_not_there_would_be_missed() -> None:
    with pytest.raises(AttributeError):
        named("party.source.read_minds")
