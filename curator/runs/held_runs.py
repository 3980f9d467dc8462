"""Stored runs that this version of the program cannot rebuild: they stay as they are until somebody decides.

It does not know why a run cannot be rebuilt.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from curator.clock import Clock
from curator.errors import Busy
from curator.runs.live_run import Ending, said
from curator.runs.transitions import write_end
from curator.store import run_records as records
from curator.store.store import Store


@dataclass
class HeldRuns:
    store: Store
    clock: Clock
    reasons: dict[str, str] = field(default_factory=dict)  # by run

    def hold(self, run: str, reason: str) -> None:
        """Keep everything of the run: the version that began it can go on with it."""
        self.reasons[run] = (
            f"held, and nothing of it has changed: this version cannot continue it ({reason}); go back to the version "
            "that began it (docs/operating.md, “Backups and new versions”), or cancel the run"
        )

    def check(self, run: str) -> None:
        """Raise Busy if the run is held, so that its parties ask again later."""
        if run in self.reasons:
            raise Busy(f"run {run} is {self.reasons[run]}")

    def of(self, party: str) -> Collection[str]:
        with self.store.reading() as db:
            return self.reasons.keys() & set(records.active_runs_with(db, party))

    def end(self, run: str, ending: Ending) -> bool:
        """Store the end of a run if it is held. Return whether it was."""
        if run not in self.reasons:
            return False
        with self.store.writing() as db:
            write_end(db, run, ending, self.clock())
        del self.reasons[run]
        said(run, "ended", **vars(ending))
        return True
