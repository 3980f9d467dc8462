"""The rows of a run from its joining to its end: frozen here as codes, or as a table of codes in their engine.

It does not know how rows are read, coded or counted.

Privacy: all steps of a run count the rows that it began with (`party.answering.frozen_rows`). In an engine these are a
table of the run's own, which holds codes and nothing else.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from crypto.randomness import Stream
from party.answering import frozen_rows
from party.errors import PolicyRefusal, Unreadable
from party.files import move, write_file
from party.home.home import OpenHome
from protocol.errors import DataError
from protocol.exact import canonical_json
from protocol.plan.terms import Terms
from protocol.tables.any_rows import AnyRows
from protocol.tables.counting import Rows
from protocol.tables.domain import Codes

if TYPE_CHECKING:
    from party.engines.table import EngineTable

Loaded: TypeAlias = Union[Sequence[Codes], "EngineTable"]  # engines are imported when they are needed


@dataclass(frozen=True)
class _Note:
    """A note in the home that leads to a run's table in an engine."""

    dataset: str
    table: str
    rows: int


def begin(opened: OpenHome, dataset: str, terms: Terms, table: Loaded) -> AnyRows:
    """Freeze the rows of a data set for a run that is joined now."""
    folder, plan = opened.home.rows, terms.plan_hash
    if isinstance(table, Sequence):
        frozen_rows.freeze(folder, plan, terms.agreed, table)
        return Rows(terms.finest.domain, terms.finest.encode(list(table)))
    # The note comes first: whatever a kill leaves in the engine is found by it, and removed.
    note = _Note(dataset, _new_name(), table.rows)
    folder.mkdir(mode=0o700, exist_ok=True)
    _set_aside(opened, plan)
    write_file(_note(opened, plan), canonical_json(asdict(note)))
    rows = table.frozen(note.table)
    if rows != table.rows:
        raise PolicyRefusal("the rows of this data set changed while it was read: offer it again, for a new plan")
    return resume(opened, terms)


def resume(opened: OpenHome, terms: Terms) -> AnyRows:
    """The rows of a run that was joined, as they were then."""
    if not _note(opened, terms.plan_hash).exists():
        codes = frozen_rows.thaw(opened.home.rows, terms.plan_hash, terms.agreed)
        return Rows(terms.finest.domain, terms.finest.encode(codes))
    from party.engines.rows import EngineRows, Frozen

    note = _read(_note(opened, terms.plan_hash))
    dataset = opened.settings.datasets.get(note.dataset)
    if dataset is None or not dataset.engine:
        raise Unreadable(f"the data set {note.dataset!r} is no longer in an engine; the run cannot go on")
    return EngineRows.of(Frozen(dataset, terms.agreed, note.table, note.rows), terms.finest)


def forget(opened: OpenHome, plan: str) -> None:
    """Remove the rows of a run that is over.

    A table in an engine that does not answer keeps its note, and is removed at the next start.
    """
    frozen_rows.forget(opened.home.rows, plan)
    note = _note(opened, plan)
    if not note.exists():
        return
    try:
        found = _read(note)
        dataset = opened.settings.datasets.get(found.dataset)
        if dataset is None or not dataset.engine:
            return
        from party.engines.table import engine_of

        with engine_of(dataset) as engine:
            engine.drop(found.table)
    except (DataError, Unreadable):
        return
    note.unlink(missing_ok=True)


def tidy(opened: OpenHome, active: Collection[str]) -> None:
    """Remove what is left of runs other than the active ones."""
    for file in opened.home.rows.glob("*"):
        if file.suffix == ".engine":
            if file.stem not in active:
                forget(opened, file.stem)
        elif file.suffix != ".rows" or file.stem not in active:  # a draft was left by a kill
            file.unlink()


def left_behind(opened: OpenHome) -> list[tuple[str, str]]:
    """Data set and table of the runs that are over, but whose table could not be removed from its engine."""
    active = {request.plan_hash for request in opened.ledger.requests("active")}
    notes = (_read(file) for file in opened.home.rows.glob("*.engine") if file.stem not in active)
    return [(note.dataset, note.table) for note in notes]


def _new_name() -> str:
    """Draw a name for a run's table. Parties of one run may share an engine, so the plan does not name the table."""
    return f"subn_run_{Stream.system().take(16).hex()}"


def _set_aside(opened: OpenHome, plan: str) -> None:
    """Keep the note of an attempt to join that was interrupted under its table's name, and remove that table.

    What cannot be removed now is removed at the next start, like every table whose run is not active.
    """
    if _note(opened, plan).exists():
        earlier = _read(_note(opened, plan)).table
        move(_note(opened, plan), _note(opened, earlier))
        forget(opened, earlier)


def _note(opened: OpenHome, plan: str) -> Path:
    return opened.home.rows / f"{plan}.engine"


def _read(path: Path) -> _Note:
    try:
        found = json.loads(path.read_bytes())
        return _Note(str(found["dataset"]), str(found["table"]), int(found["rows"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{path}: not as this program writes it; the run cannot go on") from None
