"""What other runs tell of a sum that failed and named nobody: who was in all such runs, and in none that finished.

It does not know why sums fail (`protocol.secure_sum.blame`). This proves nothing against a party, and every further run
costs all its parties their price; so it is said to people, and nothing follows from it.
"""

from collections.abc import Collection

from curator.runs.live_run import Ending, Standing
from curator.store import run_records as records
from curator.store.store import Store
from protocol.errors import PARTIES


def with_suspects(store: Store, names: Collection[str], outcome: Standing | Ending) -> Standing | Ending:
    """The outcome of a step of these parties; if it ends the run so, with what the runs before it tell."""
    if isinstance(outcome, Standing) or outcome.culprit != PARTIES:
        return outcome
    with store.reading() as db:
        failed = [*records.rosters(db, culprit=PARTIES), set(names)]
        finished: set[str] = set().union(*records.rosters(db, state="finished"))
    if len(failed) == 1:
        return outcome
    return Ending(outcome.state, outcome.culprit, f"{outcome.reason}; {_told(failed, finished)}")


def _told(failed: list[set[str]], finished: set[str]) -> str:
    in_all = set.intersection(*failed)
    if not in_all:
        return f"no party was in all {len(failed)} runs that failed so"
    if in_all <= finished:
        return f"of the parties in all {len(failed)} runs that failed so, every one has also finished a run"
    return (
        f"in all {len(failed)} runs that failed so, and in none that finished: {', '.join(sorted(in_all - finished))}"
    )
