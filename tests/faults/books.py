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
from party.books.ledger import REFUSAL, Ledger
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
    store: Store, homes: Mapping[str, Home], run: str, sent: Deliveries, *, settled: bool = True
) -> Sequence[ReplyRecord]:
    """A run that is over, however it ended: paid for once by everybody who answered, and the same on both sides."""
    views = RunViews(store)
    terms, state = views.terms(run), views.record(run).state
    with store.reading() as db:
        replies = records.replies_of_run(db, run)
        assert records.find_recovery(db, run).secret is None
        assert not [body for _, body in records.bodies_of_run(db, run) if body is not None]
    for number, member in enumerate(terms.plan.members):
        own = [reply for reply in replies if reply.party == member.name]
        check_party(homes[member.name], terms, number, own, sent, state)
        if settled:
            check_settled(homes[member.name], terms, state)
    return replies


def check_party(
    home: Home, terms: Terms, number: int, replies: Sequence[ReplyRecord], sent: Deliveries, state: str = "finished"
) -> None:
    """A party's ledger and log. A run that did not finish may lack the last answers, or their delivery."""
    run, name = terms.plan.run, terms.plan.members[number].name
    ledger = Ledger.open(home.ledger)
    try:
        entries, request = ledger.entries(run=run), ledger.request(run)
        everything = ledger.entries()
        stored = {entry.step: ledger.answered(run, entry.step) for entry in entries}
    finally:
        ledger.close()
    steps = [step for step in terms.steps if number in step.parties]
    answers = [entry for entry in entries if entry.mechanism != REFUSAL]
    due = steps if state == "finished" else steps[: len(answers)]
    assert [entry.step for entry in answers] == [step.name for step in due]
    assert [entry.charge for entry in answers] == [step.charge(number) for step in due]
    spent = sum((entry.charge for entry in entries), Fraction(0))
    assert spent == terms.price(number) if state == "finished" else spent <= terms.price(number)
    delivered = [(r.step, r.digest, Fraction(r.charge)) for r in replies]
    charged = [(entry.step, entry.reply_digest, entry.charge) for entry in entries]
    assert delivered == charged if state == "finished" else set(delivered) <= set(charged)
    for entry in entries:
        reply = stored[entry.step]
        assert reply is not None
        assert sha256(reply.reply).hexdigest() == entry.reply_digest
        assert sent.get((run, entry.step, name), set()) <= {entry.reply_digest}
        assert sent.get((run, entry.step, name)) or state != "finished"
    assert audit.verify(home.audit) == []
    assert audit.unlogged(home.audit, everything) == []
    if request is not None:
        assert request.reserved == 0 or request.state == "active"
        assert {"asked", "judged"} <= _told(home, run)


def check_settled(home: Home, terms: Terms, state: str = "finished") -> None:
    """The party knows that the run is over, and has put away what was its."""
    run = terms.plan.run
    ledger = Ledger.open(home.ledger)
    try:
        request, kept = ledger.request(run), ledger.kept(run)
    finally:
        ledger.close()
    assert not list(home.rows.glob(f"{terms.plan_hash}*"))
    if request is None:  # the run ended before this party heard of it
        assert state != "finished"
        return
    outcomes = {state, "refused"} if state != "finished" else {state}
    assert (request.state, request.outcome in outcomes, kept, request.reserved) == ("ended", True, None, 0)
    assert "settled" in _told(home, run) or request.outcome == "refused"


def _told(home: Home, run: str) -> set[str]:
    return {entry["event"] for entry in audit.entries(home.audit) if entry.get("run") == run}


def check_publication(curator: Path, run: str, smallest_key: int) -> None:
    folder = curator / "runs" / run
    assert not list(folder.glob("*.part"))
    digests = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.name != MANIFEST}
    key = CuratorKeys.load(curator).signing.public
    manifest = verify_manifest((folder / MANIFEST).read_bytes(), digests, key, smallest_key)
    assert set(digests) == set(manifest.outputs)
