"""Mutants: the product with one mistake in it, which the simulation has to catch.

It does not know how a mistake shows. Every mutant names a schedule that catches it; `tests/simulation/test_mutants.py`
tries that one, and `python -m tests.simulation.mutants` counts how many drawn schedules it takes.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import numpy as np

from party import files
from party.errors import PolicyRefusal, Unreachable
from tests.simulation.homes import VALUES
from tests.simulation.schedules import CURATOR, Death, Lost, Rules, Schedule, Spoilt, Twice, drawn
from tests.simulation.trial import Failed, judge, usual
from tests.simulation.world import staged

_PATIENCE = 400  # schedules of a kind of run that are drawn before a mutant counts as not caught


@dataclass(frozen=True)
class Mutant:
    """Functions of the product by their names, what stands in their places, and a schedule that tells the difference.

    `says` is a part of the failure.
    """

    changes: Mapping[str, Callable[[Any], Any]]  # from the real function to the broken one
    schedule: Schedule
    says: str

    @contextmanager
    def broken(self) -> Iterator[None]:
        with ExitStack() as patches:
            for name, change in self.changes.items():
                patches.enter_context(patch(name, change(resolve_name(name))))
            yield


def _never(_real: Any) -> Any:
    return lambda *_arguments, **_named: None


def _charged_later(real: Any) -> Any:
    def record(self: Any, run: str, step: str, **what: Any) -> Any:
        asyncio.get_running_loop().call_later(1, partial(real, self, run, step, **what))
        return what["reply"]

    return record


def _state_stays(real: Any) -> Any:
    def record(self: Any, run: str, step: str, **what: Any) -> Any:
        return real(self, run, step, **(what | {"kept": what["kept"] and (self.kept(run) or what["kept"])}))

    return record


def _answered_anew(real: Any) -> Any:
    def handle(self: Any, run: str, data: bytes) -> Any:
        if self.__dict__.get("last") == data and self.before is not None:
            self._joined[run] = self.before
            with self._ledger.database.transaction() as db:
                db.execute("DROP TRIGGER IF EXISTS answers_refuse_DELETE")
                db.execute("DELETE FROM answers WHERE rowid = (SELECT max(rowid) FROM answers)")
        self.last, self.before = data, self._joined.get(run)
        return real(self, run, data)

    return handle


def _without_the_last(real: Any) -> Any:
    return lambda state, answers, *more: real(state, list(answers)[:-1], *more)


def _not_synced(_real: Any) -> Any:
    @contextmanager
    def whole_file(path: Path) -> Iterator[Any]:
        draft = path.with_name(path.name + files.UNFINISHED)
        with open(files.os.open(draft, files.os.O_WRONLY | files.os.O_CREAT | files.os.O_EXCL, 0o600), "wb") as file:
            yield file
        files.move(draft, path)

    return whole_file


def _read_again(_real: Any) -> Any:
    def thaw(folder: Path, _plan_hash: str, schema: Any) -> Any:
        lines = (folder.parent / "patients.csv").read_text().splitlines()[1:]
        rows = [[VALUES.index(value) for value in line.split(",")[: len(schema.attributes)]] for line in lines]
        return [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]

    return thaw


def _given_up(real: Any) -> Any:
    async def deliver(self: Any, outgoing: Any) -> None:
        try:
            await real(self, outgoing)
        except Unreachable as error:
            if " says 5" not in str(error):
                raise
            self._answering.settle(outgoing.run, "failed", "the curator does not work")

    return deliver


def _seen_only(real: Any) -> Any:
    return lambda self, db, request: real(self, db, _Renamed(request))


class _Renamed:
    """A request whose nonce was never used."""

    _numbers = count()

    def __init__(self, request: Any) -> None:
        self._request, self.nonce = request, f"{next(self._numbers):032x}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


def _one_context(real: Any) -> Any:
    return lambda self, layout, values, _context, stream: real(self, layout, values, b"", stream)


def _told(real: Any) -> Any:
    def loaded(opened: Any, *more: Any) -> Any:
        try:
            return real(opened, *more)
        except PolicyRefusal:
            raise PolicyRefusal(f"it does not fit: {(opened.home.path / 'patients.csv').read_text()[:50]}") from None

    return loaded


def _to_the_end(_real: Any) -> Any:
    def end_of_whole_lines(file: int) -> int:
        return files.os.fstat(file).st_size

    return end_of_whole_lines


MUTANTS: Mapping[str, Mutant] = {
    "bytes leave before their charge": Mutant(
        {"party.books.ledger.Ledger.record": _charged_later},
        Schedule("parameters alone"),
        "left without a charge",
    ),
    "a charge is kept without the state that belongs to it": Mutant(
        {"party.books.ledger.Ledger.record": _state_stays},
        Schedule("joint, selected", (Death("party-2", "commit", 8, "after", 0, 0.5),)),
        "failed by party-2",
    ),
    "a repeated question is answered anew": Mutant(
        {"party.answering.answering.Answering.handle": _answered_anew},
        Schedule("joint, local", (Lost("party-1", 9, "request", False),)),
        "party-1 stopped by itself",
    ),
    "the outbox is lost": Mutant(
        {"party.books.ledger.find_reply": _never},
        Schedule("joint, local", (Lost("party-1", 9, "request", False),)),
        "timed_out by party-1",
    ),
    "an answer is not logged after a kill": Mutant(
        {"party.answering.audit_trail.AuditTrail.catch_up": _never},
        Schedule("parameters alone", (Death("party-1", "commit", 5, "after", 0, 0.5),)),
        "left before they were logged",
    ),
    "a torn line of the audit log is written on": Mutant(
        {"party.books.log_file.end_of_whole_lines": _to_the_end},
        Schedule("joint, local", (Death("party-2", "append", 2, "torn", 0.3, 0.5),)),
        "party-2 stopped by itself",
    ),
    "rows are frozen without being synced": Mutant(
        {"party.answering.frozen_rows.whole_file": _not_synced},
        Schedule("parameters alone", (Death("party-1", "ask", 6, "before", 0, 0.5, True),)),
        "failed by party-1",
    ),
    "a renamed file is not synced": Mutant(
        {"party.files.sync_folder": _never},
        Schedule("parameters alone", (Death("party-1", "ask", 6, "before", 0, 0.5, True),)),
        "failed by party-1",
    ),
    "rows are read again in mid-run": Mutant(
        {"party.answering.frozen_rows.thaw": _read_again},
        Schedule("joint, local", (Rules("party-1", 9, "values", "accept"),)),
        "rows changed in mid-run",
    ),
    "frozen rows stay after the end": Mutant(
        {"party.answering.frozen_rows.forget": _never},
        Schedule("parameters alone"),
        "rows.glob",
    ),
    "one mask serves every step": Mutant(
        {"protocol.secure_sum.plain.PlainSums.contribute": _one_context},
        Schedule("joint, local"),
        "one mask for",
    ),
    "a refusal tells of a row": Mutant(
        {"party.answering.invitation.loaded": _told},
        Schedule("parameters alone", (Rules("party-1", 3, "bad row", "accept"),)),
        "a value in",
    ),
    "a 5xx answer ends the run": Mutant(
        {"party.worker.Worker._deliver": _given_up},
        Schedule("parameters alone", (Spoilt("party-1", 8, "bad gateway"),)),
        "request.outcome in outcomes",
    ),
    "an answer is forgotten at a restart": Mutant(
        {"curator.runs.recovery.replayed": _without_the_last},
        Schedule("parameters alone", (Death(CURATOR, "serve", 12, "after", 0, 0.5),)),
        "no answer to .joining.",
    ),
    "a request may be repeated": Mutant(
        {"curator.accounts.authentication.Authentication._use_nonce": _seen_only},
        Schedule("accumulate, selected", (Twice("party-2", 9, 0.5),)),
        "was taken twice",
    ),
    "an order may be repeated": Mutant(
        {"curator.runs.orchestrator.run_of_key": _never},
        Schedule("parameters alone", (Death(CURATOR, "serve", 9, "after", 0, 0.5),)),
        "the curator says 500",
    ),
}


def main() -> int:
    """Print for every mutant how many drawn schedules it takes until one catches it."""
    missed = 0
    with staged():
        for name, mutant in MUTANTS.items():
            found = _caught_by(mutant)
            missed += found is None
            print(f"| {name} | {found or 'not caught'} |", flush=True)
    return 1 if missed else 0


def _caught_by(mutant: Mutant) -> int | None:
    way = mutant.schedule.way
    for number in range(_PATIENCE):
        try:
            judge(drawn(way, number, usual(way)), mutant.broken)
        except Failed:
            return number + 1
    return None


if __name__ == "__main__":
    sys.exit(main())
