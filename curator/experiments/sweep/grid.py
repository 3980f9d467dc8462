"""The grid of a sweep, read from a TOML file: its runs, tables and seeds.

It does not know how runs are made. The options of a run are those of `subn simulate`, so that a grid can use every
option of a plan.
"""

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from curator.experiments.classification import CLASSIFIERS
from curator.experiments.division_options import add_division_options
from curator.experiments.simulate import ExperimentSettings, settings_of
from curator.experiments.view_study import DESIGNS
from curator.operator.plan_options import add_plan_options, wishes
from protocol.errors import OperatorError
from protocol.exact import canonical_json, digest, exact
from protocol.options import EncodingName

LEVERS = "levers"  # fields of the plan that are no options, for ablations: levers = { merging = false }
Options = tuple[tuple[str, str], ...]  # names and values of options, sorted


@dataclass(frozen=True)
class SweepTarget:
    """The target of a classifier, as in `subn evaluate --classify`, and the attributes that it must not see."""

    name: str
    values: tuple[str, ...]
    without: tuple[str, ...]
    classifier: str = CLASSIFIERS[0]

    @property
    def said(self) -> str:
        return self.name if self.classifier == CLASSIFIERS[0] else f"{self.name} by {self.classifier}"


@dataclass(frozen=True)
class Source:
    """A table, and the measurements to make on its synthetic copies."""

    name: str
    table: Path
    schema: Path
    ways: tuple[int, ...]
    ways_of_bits: tuple[int, ...]  # marginals over the bits of all attributes, as the DP-SUBN paper measures
    targets: tuple[SweepTarget, ...]


@dataclass(frozen=True)
class ViewStudy:
    """A study of all pairs of attributes from noisy views (phase 1 alone)."""

    design: str
    epsilon: Fraction
    encoding: EncodingName


@dataclass(frozen=True)
class Cell:
    """One run of the sweep."""

    data: str
    options: Options
    label: str
    seed: int

    @property
    def settings(self) -> ExperimentSettings:
        return _settings_of(self.options)

    @property
    def views(self) -> "ViewStudy | None":
        """The study of views, if this run is one."""
        return _views_of(self.options) if "design" in dict(self.options) else None


@dataclass(frozen=True)
class Grid:
    sources: Mapping[str, Source]
    cells: tuple[Cell, ...]

    def key(self, cell: Cell) -> str:
        """Return the identity of a run: a digest of its settings, seed and measurements, and of the tables' content."""
        return digest(canonical_json([*self._contents[cell.data], cell.options, cell.seed]))

    @cached_property
    def _contents(self) -> dict[str, Any]:
        return {
            name: [
                [digest(path.read_bytes()) for path in (source.table, source.schema)],
                [
                    source.ways,
                    *([source.ways_of_bits] if source.ways_of_bits else []),  # results made without it stay good
                    [[one.said, one.values, one.without] for one in source.targets],
                ],
            ]
            for name, source in self.sources.items()
        }


def read_grid(path: Path) -> Grid:
    """Read a grid. All errors in the file are found here, before any run."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)  # 0.8 stays exactly 0.8
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path}: not TOML that can be read: {error}") from None
    try:
        return _grid(raw, path.parent)
    except _Mistake as mistake:
        raise OperatorError(f"{path}: {mistake}") from None


class _Mistake(Exception):
    """An error in the grid, to be reported after the file's name."""


def _grid(raw: Mapping[str, Any], folder: Path) -> Grid:
    _only(raw, ("seeds", "data", "runs", "views"), "the grid")
    sources = {name: _source(name, one, folder) for name, one in _need(raw, "data", dict, "the grid").items()}
    seeds = _seeds(raw.get("seeds", 1))
    wanted = [(_settings_of, one) for one in _tables(raw, "runs")] + [(_views_of, one) for one in _tables(raw, "views")]
    cells = [cell for check, one in wanted for cell in _cells(one, sources, seeds, check)]
    if not cells:
        raise _Mistake("the grid needs 'runs' or 'views'")
    return Grid(sources, tuple(dict.fromkeys(cells)))


def _tables(raw: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = raw.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _Mistake(f"{name} must be tables, each under a line [[{name}]]")
    return found


def _source(name: str, raw: Any, folder: Path) -> Source:
    place = f"data.{name}"
    if not isinstance(raw, dict):
        raise _Mistake(f"{place} must be a table with `table` and `schema`")
    _only(raw, ("table", "schema", "ways", "ways_of_bits", "classify"), place)
    table, schema = (folder / _need(raw, field, str, place) for field in ("table", "schema"))
    ways = _ways(raw, "ways", place) or (2,)
    targets = tuple(_target(one, place) for one in raw.get("classify", ()))
    return Source(name, table, schema, ways, _ways(raw, "ways_of_bits", place), targets)


def _ways(raw: Mapping[str, Any], field: str, place: str) -> tuple[int, ...]:
    """Return the list of a field; it is empty only where there is no such field."""
    ways = raw.get(field)
    if ways is None:
        return ()
    if not isinstance(ways, list) or not ways or not all(isinstance(way, int) and way > 0 for way in ways):
        raise _Mistake(f"{place}: {field} must list how many attributes a marginal has, as [2, 3]")
    return tuple(ways)


def _target(raw: Any, place: str) -> SweepTarget:
    if not isinstance(raw, dict):
        raise _Mistake(f"{place}: classify must list tables, as [{{attribute = 'income'}}]")
    _only(raw, ("attribute", "values", "without", "classifier"), f"{place}.classify")
    name, classifier = _need(raw, "attribute", str, f"{place}.classify"), raw.get("classifier", CLASSIFIERS[0])
    if classifier not in CLASSIFIERS:
        raise _Mistake(f"{place}.classify: classifier is {classifier!r}, which is none of {', '.join(CLASSIFIERS)}")
    return SweepTarget(name, tuple(raw.get("values", ())), tuple(raw.get("without", ())), classifier)


def _seeds(raw: Any) -> tuple[int, ...]:
    if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0:
        return tuple(range(1, raw + 1))
    if isinstance(raw, list) and raw and all(isinstance(seed, int) and seed >= 0 for seed in raw):
        return tuple(raw)
    raise _Mistake("seeds must be the number of runs of each setting, or a list of whole numbers")


def _cells(
    raw: Mapping[str, Any], sources: Mapping[str, Source], seeds: Sequence[int], check: Callable[[Options], object]
) -> Iterator[Cell]:
    """Yield every combination of the values that the entry lists."""
    given = dict(raw)
    names = _listed(given.pop("data", list(sources)))
    label = given.pop("label", "")
    seeds = _seeds(given.pop("seeds")) if "seeds" in given else seeds
    if LEVERS in given:
        given[LEVERS] = json.dumps(given[LEVERS], sort_keys=True)
    if unknown := [name for name in names if name not in sources]:
        raise _Mistake(f"runs on {unknown[0]!r}, but the grid has no section [data.{unknown[0]}]")
    for values in product(*(_listed(value) for value in given.values())):
        options = tuple(sorted(zip(given, map(_text, values), strict=True)))
        check(options)
        for name, seed in product(names, seeds):
            yield Cell(name, options, label, seed)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Mistake(f"runs: {message}")


def _settings_of(options: Options) -> ExperimentSettings:
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_plan_options(parser)
    add_division_options(parser)
    words, levers = [], {}
    for name, value in options:
        if name == LEVERS:
            levers = json.loads(value)
            continue
        option = f"--{name.replace('_', '-')}"
        if value not in ("true", "false"):
            words.append(f"{option}={value}")
        elif value == "true":
            words.append(option)
    chosen = parser.parse_args(words)
    settings = settings_of(chosen, wishes(chosen))
    return replace(settings, wishes=settings.wishes | levers)


def _views_of(options: Options) -> ViewStudy:
    given = {"encoding": "native"} | dict(options)
    _only(given, ("design", "epsilon", "encoding"), "views")
    design, encoding = given.get("design", ""), given["encoding"]
    if design not in DESIGNS:
        raise _Mistake(f"views: design is {design!r}; known are {', '.join(DESIGNS)}")
    if encoding not in get_args(EncodingName):
        raise _Mistake(f"views: encoding is {encoding!r}; known are {', '.join(get_args(EncodingName))}")
    try:
        epsilon = exact(given.get("epsilon", ""))
    except ValueError as error:
        raise _Mistake(f"views: epsilon: {error}") from None
    if epsilon <= 0:
        raise _Mistake(f"views: epsilon is {epsilon}: it must be positive")
    return ViewStudy(design, epsilon, cast(EncodingName, encoding))


def _only(raw: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    if unknown := [name for name in raw if name not in known]:
        raise _Mistake(f"{place} has {unknown[0]!r}; known are {', '.join(known)}")


def _need(raw: Mapping[str, Any], field: str, kind: type, place: str) -> Any:
    if not isinstance(raw.get(field), kind) or not raw[field]:
        raise _Mistake(f"{place} needs {field!r}")
    return raw[field]
