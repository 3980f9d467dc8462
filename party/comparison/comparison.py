"""Comparison of a published table with this party's own rows: computed, kept and shown on this machine.

It does not know the curator, the log or pages.

Privacy: all findings depend on rows and no epsilon was spent on them. They are written to one folder of the home, for
its owner alone, and to no log, no answer and no error text.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from party import source
from party.books.ledger import Request
from party.comparison.classifier import Scores, scores
from party.errors import PolicyRefusal
from party.files import write_file
from party.home.home import OpenHome
from party.home.settings import Dataset
from protocol.errors import DataError
from protocol.tables.distance import average_distance, distances
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

VERSION = 1
_WORST = 5
# Settings for reading the published table like a data set of this party; nothing is ever spent on it.
_AS_A_TABLE = Dataset.model_validate({"source": "table.csv", "schema": "schema.json", "epsilon_total": "1"})


class CannotCompare(PolicyRefusal):
    pass


@dataclass(frozen=True)
class Own:
    """Paths of a run's comparison, named by the plan's hash: the curator chooses the run's name, so no file has it."""

    folder: Path
    plan: str

    @property
    def table(self) -> Path:
        return self.folder / f"{self.plan}.csv"

    @property
    def findings(self) -> Path:
        return self.folder / f"{self.plan}.json"


def place_of(opened: OpenHome, request: Request) -> Own:
    return Own(opened.home.comparisons, request.plan_hash)


def kept(opened: OpenHome, request: Request) -> dict[str, Any] | None:
    """The findings of an earlier comparison, or None."""
    path = place_of(opened, request).findings
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("version") == VERSION else None


def keep_table(opened: OpenHome, request: Request, table: bytes) -> None:
    """Keep the published table as the curator signed it: the only input from outside, and public."""
    opened.home.comparisons.mkdir(mode=0o700, exist_ok=True)
    write_file(place_of(opened, request).table, table.decode("utf-8"))


def compare(opened: OpenHome, request: Request, target: str | None = None) -> dict[str, Any]:
    """Compare the tables, keep the findings, and log that it was done, but not what was found."""
    schema = Schema.parse(request.schema_text)
    if target is not None and target not in schema.names:
        raise CannotCompare(f"there is no column {target!r} in this schema")
    own, synthetic = _own_rows(opened, request, schema), _synthetic_rows(opened, request, schema)
    try:
        found = {"version": VERSION, "run": request.run, "plan": request.plan_hash, "dataset": request.dataset}
        found |= findings(schema, own, synthetic) | {"classifier": _classified(schema, own, synthetic, target)}
    except Exception as error:  # Privacy: a library's error text may quote values.
        raise CannotCompare(f"the comparison could not be worked out ({type(error).__name__})") from None
    write_file(place_of(opened, request).findings, json.dumps(found, ensure_ascii=False))
    opened.audit.append("compared", run=request.run)
    return found


def findings(schema: Schema, own: Sequence[Codes], synthetic: Sequence[Codes]) -> dict[str, Any]:
    """Distances of single columns and of pairs, and those between two halves of the own rows."""
    names, sizes = schema.names, schema.sizes
    halves = [column[0::2] for column in own], [column[1::2] for column in own]
    places = list(combinations(range(len(names)), 2))
    single = distances(own, synthetic, sizes, [(i,) for i in range(len(names))])
    double = distances(own, synthetic, sizes, places)
    has_halves = len(own[0]) > 1
    return {
        "rows": len(own[0]),
        "synthetic_rows": len(synthetic[0]),
        "columns": [{"name": name, "distance": found} for name, found in zip(names, single, strict=True)],
        "pairs": [
            {"columns": [names[i], names[j]], "distance": found} for (i, j), found in zip(places, double, strict=True)
        ],
        "one_way": fmean(single),
        "two_way": fmean(double) if double else None,
        "halves_one_way": average_distance(*halves, sizes, 1) if has_halves else None,
        "halves_two_way": average_distance(*halves, sizes, 2) if has_halves and double else None,
    }


def targets(schema: Schema) -> list[str]:
    """Columns that a classifier can be asked to guess."""
    return [attribute.name for attribute in schema.attributes if 2 <= attribute.size <= 50]


def can_classify() -> bool:
    """Whether scikit-learn, an extra, is installed."""
    return find_spec("sklearn") is not None


def _classified(
    schema: Schema, own: Sequence[Codes], synthetic: Sequence[Codes], target: str | None
) -> dict[str, Any] | None:
    chosen = target or next(iter(reversed(targets(schema))), None)
    if chosen is None or len(schema.names) < 2 or not can_classify():
        return None
    found: Scores | None = scores(own, synthetic, schema.sizes, schema.names.index(chosen))
    return None if found is None else {"column": chosen, **found}


def _own_rows(opened: OpenHome, request: Request, schema: Schema) -> list[Codes]:
    dataset = opened.settings.datasets.get(request.dataset or "")
    if dataset is None:
        raise CannotCompare(f"this party no longer has the data set {request.dataset!r}")
    return source.load(opened.home.path, dataset, schema, opened.keys.choosing)


def _synthetic_rows(opened: OpenHome, request: Request, schema: Schema) -> list[Codes]:
    path = place_of(opened, request).table
    if not path.exists():
        raise CannotCompare("the published table is not here yet: fetch it from the curator first")
    try:
        return source.load(path.parent, _AS_A_TABLE.model_copy(update={"source": path.name}), schema)
    except DataError as error:
        raise CannotCompare(f"the published table does not fit the schema: {error}") from None


def in_words(found: dict[str, Any]) -> Iterator[str]:
    """Describe the findings for the data owner's command line."""
    yield f"{found['rows']:,} rows of your own, {found['synthetic_rows']:,} synthetic rows"
    yield "do not share these numbers: they are not protected"
    yield f"single columns: {_percent(found['one_way'])} apart on average{_halves(found['halves_one_way'])}"
    if found["two_way"] is not None:
        yield f"pairs:          {_percent(found['two_way'])} apart on average{_halves(found['halves_two_way'])}"
    for pair in sorted(found["pairs"], key=lambda one: -one["distance"])[:_WORST]:
        yield f"  {_percent(pair['distance']):>8}  {pair['columns'][0]} and {pair['columns'][1]}"
    guessed = found["classifier"]
    if guessed is not None:
        yield (
            f"{guessed['column']} is predicted correctly in {_percent(guessed['from_synthetic'])} of your rows by a "
            f"model trained on the synthetic table, {_percent(guessed['from_own'])} by one trained on your own, "
            f"{_percent(guessed['most_frequent'])} by always predicting the most frequent value"
        )


def _halves(distance: float | None) -> str:
    return "" if distance is None else f" (two halves of your own rows: {_percent(distance)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
