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
from party.home.settings import Dataset
from party.logs import json_log
from protocol.errors import DataError
from protocol.exact import canonical_json, digest
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
    where: str  # the engine and its place for tables, as messages name them
    place: str  # a digest of the same and its user, without a password


def begin(opened: OpenHome, dataset: str, terms: Terms, table: Loaded) -> AnyRows:
    """Freeze the rows of a data set for a run that is joined now."""
    folder, plan = opened.home.rows, terms.plan_hash
    if isinstance(table, Sequence):
        frozen_rows.freeze(folder, plan, terms.agreed, table)
        return Rows(terms.finest.domain, terms.finest.encode(list(table)))
    # The note comes first: whatever a kill leaves in the engine is found by it, and removed.
    section = opened.settings.datasets[dataset]
    note = _Note(dataset, _new_name(), table.rows, _where(section), _place(section))
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

    The note of a table stays if its engine does not answer, or if party.toml leads to another place now. The next start
    tries again.
    """
    frozen_rows.forget(opened.home.rows, plan)
    note = _note(opened, plan)
    if not note.exists():
        return
    try:
        found = _read(note)
        is_gone = _removed(opened.settings.datasets.get(found.dataset), found)
    except (DataError, Unreadable) as error:
        json_log("the table of a run that is over could not be removed", note=str(note), reason=str(error))
        return
    if is_gone:
        note.unlink(missing_ok=True)
    else:
        what = "the table of a run that is over may be where its data set no longer leads"
        json_log(what, dataset=found.dataset, table=found.table, where=found.where)


def _removed(dataset: Dataset | None, note: _Note) -> bool:
    """Remove a run's table, and return whether it is gone for certain: it was found, or this is where it was made."""
    if dataset is None or not dataset.engine:
        return False
    from party.engines.table import engine_of

    with engine_of(dataset) as engine:
        was_here = engine.holds(note.table)
        engine.drop(note.table)
    return was_here or _place(dataset) == note.place


def tidy(opened: OpenHome, active: Collection[str]) -> None:
    """Remove what is left of runs other than the active ones."""
    for file in opened.home.rows.glob("*"):
        if file.suffix == ".engine":
            if file.stem not in active:
                forget(opened, file.stem)
        elif file.suffix != ".rows" or file.stem not in active:  # a draft was left by a kill
            file.unlink()


def left_behind(opened: OpenHome) -> list[tuple[str, str]]:
    """Table and place of the runs that are over, but whose table could not be removed from its engine."""
    active = {request.plan_hash for request in opened.ledger.requests("active")}
    notes = (_read(file) for file in opened.home.rows.glob("*.engine") if file.stem not in active)
    return [(note.table, f"{note.where}, of data set {note.dataset}") for note in notes]


def _where(dataset: Dataset) -> str:
    return dataset.engine_shown + (f" ({dataset.snapshots})" if dataset.snapshots else "")


def _place(dataset: Dataset) -> str:
    """Return a digest of the engine's address, its user, who may have a schema of the same name, and of snapshots."""
    scheme, _, rest = dataset.source.partition("://")
    before, _, address = rest.rpartition("@")
    return digest(canonical_json([scheme, before.partition(":")[0], address, dataset.snapshots or ""]))


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
        texts = {name: str(found[name]) for name in ("dataset", "table", "where", "place")}
        return _Note(rows=int(found["rows"]), **texts)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{path}: not as this program writes it; the run cannot go on") from None
