"""What must hold when a run is over, whatever was killed on the way: read from what is on disk at both sides.

It does not know what was killed.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from crypto.paillier.public import SMALLEST_BITS
from curator.home.keys import CuratorKeys
from curator.results.publication import MANIFEST
from curator.runs.views import RunViews
from curator.store import run_records as records
from curator.store.run_records import ReplyRecord
from curator.store.store import Store
from party.books import audit
from party.books.ledger import Ledger
from party.books.ledger_tables import REFUSAL
from party.books.reconciliation import forgotten, unlogged
from party.home.layout import Home
from protocol.plan.terms import Terms
from protocol.run.manifest import verify_manifest

Deliveries = Mapping[tuple[str, str, str], set[str]]  # by run, step and party: SHA-256 of what was sent


def check_books(
    curator: Path,
    homes: Mapping[str, Home],
    run: str,
    sent: Deliveries,
    smallest_key: int = SMALLEST_BITS,
    *,
    settled: bool = True,
) -> None:
    """A finished run: published, verified, paid for once, and the same on both sides.

    `settled`: the parties know that it is over, and have put away what was its.
    """
    store = Store.open(f"sqlite:///{curator / 'curator.db'}")
    try:
        found = RunViews(store).run(run)
        assert found.state == "finished", found
        check_run(store, homes, run, sent, settled=settled)
    finally:
        store.close()
    check_publication(curator, run, smallest_key)


def check_run(
    store: Store,
    homes: Mapping[str, Home],
    run: str,
    sent: Deliveries,
    *,
    settled: bool = True,
    forgotten_end: str | None = None,
) -> Sequence[ReplyRecord]:
    """A run that is over, however it ended: paid for once by everybody who answered, and the same on both sides.

    `forgotten_end`: what parties may have been told before the curator was set back, and knew nothing of it any more.
    """
    views = RunViews(store)
    terms, state = views.terms(run), views.record(run).state
    with store.reading() as db:
        replies = records.replies_of_run(db, run)
        assert records.find_recovery(db, run).secret is None
        assert not [body for _, body in records.bodies_of_run(db, run) if body is not None]
    for number, member in enumerate(terms.plan.members):
        home, own = homes[member.name], [reply for reply in replies if reply.party == member.name]
        ledger = Ledger.open(home.ledger)
        try:
            _check_account(ledger, terms, number, own, sent, state)
            if settled:
                _check_settled(home, ledger, terms, state, forgotten_end)
            _check_log(home, ledger)
        finally:
            ledger.close()
    return replies


def _check_log(home: Home, ledger: Ledger) -> None:
    """Ledger and log tell of the same answers, and the ledger knows where the log ends."""
    noted, everything = ledger.log_head(), ledger.entries()
    assert noted is not None or not everything
    assert audit.verify(home.audit, noted) == []
    assert unlogged(home.audit, everything) == []
    assert forgotten(home.audit, everything) == []


def _check_account(
    ledger: Ledger, terms: Terms, number: int, replies: Sequence[ReplyRecord], sent: Deliveries, state: str
) -> None:
    """A party's account of a run. A run that did not finish may lack the last answers, or their delivery."""
    run, name, is_whole = terms.plan.run, terms.plan.members[number].name, state == "finished"
    entries = ledger.entries(run=run)
    answers = [entry for entry in entries if entry.mechanism != REFUSAL]
    steps = [step for step in terms.steps if number in step.parties]
    due = steps if is_whole else steps[: len(answers)]
    assert [entry.step for entry in answers] == [step.name for step in due]
    assert [entry.charge for entry in answers] == [step.charge(number) for step in due]
    spent = sum((entry.charge for entry in entries), Fraction(0))
    assert spent == terms.price(number) if is_whole else spent <= terms.price(number)
    delivered = [(r.step, r.digest, Fraction(r.charge)) for r in replies]
    charged = [(entry.step, entry.reply_digest, entry.charge) for entry in entries]
    assert delivered == charged if is_whole else set(delivered) <= set(charged)
    for entry in entries:
        stored, left = ledger.answered(run, entry.step), sent.get((run, entry.step, name), set())
        assert stored is not None
        assert sha256(stored.reply).hexdigest() == entry.reply_digest
        assert left == {entry.reply_digest} if is_whole else left <= {entry.reply_digest}


def _check_settled(home: Home, ledger: Ledger, terms: Terms, state: str, forgotten_end: str | None) -> None:
    """The party knows that the run is over, and has put away what was its."""
    run = terms.plan.run
    request = ledger.request(run)
    assert not list(home.rows.glob(f"{terms.plan_hash}*"))
    if request is None:  # the run ended before this party heard of it
        assert state != "finished"
        return
    outcomes = {state, forgotten_end} if state == "finished" else {state, "refused", forgotten_end}
    assert (request.state, request.outcome in outcomes, request.reserved) == ("ended", True, 0)
    assert ledger.kept(run) is None
    told = {entry["event"] for entry in audit.entries(home.audit) if entry.get("run") == run}
    assert {"asked", "judged"} <= told
    assert told & {"answered", "refused"} or state != "finished"
    assert "settled" in told or request.outcome == "refused"


def check_publication(curator: Path, run: str, smallest_key: int) -> None:
    folder = curator / "runs" / run
    assert not list(folder.glob("*.part"))
    digests = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.name != MANIFEST}
    key = CuratorKeys.load(curator).signing.public
    manifest = verify_manifest((folder / MANIFEST).read_bytes(), digests, key, smallest_key)
    assert set(digests) == set(manifest.outputs)
