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
        views = RunViews(store)
        found = views.run(run)
        assert found.state == "finished", found
        terms = views.terms(run)
        with store.reading() as db:
            replies = records.replies_of_run(db, run)
            assert records.find_recovery(db, run).secret is None
    finally:
        store.close()
    for number, member in enumerate(terms.plan.members):
        own = [reply for reply in replies if reply.party == member.name]
        check_party(homes[member.name], terms, number, own, sent)
        if settled:
            check_settled(homes[member.name], terms)
    _check_publication(curator, run, smallest_key)


def check_party(home: Home, terms: Terms, number: int, replies: Sequence[ReplyRecord], sent: Deliveries) -> None:
    run, name = terms.plan.run, terms.plan.members[number].name
    ledger = Ledger.open(home.ledger)
    try:
        entries, request = ledger.entries(run=run), ledger.request(run)
        everything, noted = ledger.entries(), ledger.log_head()
    finally:
        ledger.close()
    steps = [step for step in terms.steps if number in step.parties]
    assert [entry.step for entry in entries] == [step.name for step in steps]
    assert [entry.charge for entry in entries] == [step.charge(number) for step in steps]
    assert sum((entry.charge for entry in entries), Fraction(0)) == terms.price(number)
    assert [(r.step, r.digest, Fraction(r.charge)) for r in replies] == [
        (entry.step, entry.reply_digest, entry.charge) for entry in entries
    ]
    for entry in entries:
        assert sent[run, entry.step, name] == {entry.reply_digest}
    assert request is not None
    assert request.reserved == 0
    assert noted is not None
    assert audit.verify(home.audit, noted) == []
    assert unlogged(home.audit, everything) == []
    assert forgotten(home.audit, everything) == []
    assert {"asked", "judged", "answered"} <= _told(home, run)


def check_settled(home: Home, terms: Terms) -> None:
    run = terms.plan.run
    ledger = Ledger.open(home.ledger)
    try:
        request, kept = ledger.request(run), ledger.kept(run)
    finally:
        ledger.close()
    assert request is not None
    assert (request.state, request.outcome, kept) == ("ended", "finished", None)
    assert not list(home.rows.glob(f"{terms.plan_hash}*"))
    assert "settled" in _told(home, run)


def _told(home: Home, run: str) -> set[str]:
    return {entry["event"] for entry in audit.entries(home.audit) if entry.get("run") == run}


def _check_publication(curator: Path, run: str, smallest_key: int) -> None:
    folder = curator / "runs" / run
    assert not list(folder.glob("*.part"))
    digests = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.name != MANIFEST}
    key = CuratorKeys.load(curator).signing.public
    manifest = verify_manifest((folder / MANIFEST).read_bytes(), digests, key, smallest_key)
    assert set(digests) == set(manifest.outputs)
