"""What a run at a curator in this process looks like, and answers to it, also forged ones.

It does not know any expected value.
"""

from fractions import Fraction

from sqlalchemy import select

from crypto.signing import sign
from curator.errors import StoreUnavailable
from curator.store.tables import runs
from protocol.messages.signatures import RECEIPT, receipt_text
from tests.support.curator import Desk, Outgoing

PLAIN = {"noise": "distributed", "epsilon": "50"}
DAY = 24 * 3600


def column(desk: Desk, run: str, name: str):
    with desk.store.reading() as db:
        return db.execute(select(runs.c[name]).where(runs.c.id == run)).scalar_one()


def state(desk: Desk, run: str) -> tuple[str, str | None]:
    seen = desk.views.run(run)
    return seen.state, seen.culprit


def kinds(desk: Desk, run: str) -> list[str]:
    return [event.kind for event in desk.views.events(run)]


def outgoing(desk: Desk, number: int, skip: tuple[str, ...] = ()) -> Outgoing:
    """The answer that a party would send now; it is not sent."""
    found = desk.orchestrator.inbox(desk.parties[number].name, skip)
    assert found is not None
    return desk.parties[number].handle(*found)


def signed(
    desk: Desk, number: int, sent: Outgoing, body: bytes, charge: Fraction | int = 0, role: bytes = RECEIPT
) -> Outgoing:
    """The same with other bytes and a receipt that fits them."""
    text = receipt_text(desk.views.record(sent.run).plan_hash, sent.step, Fraction(charge), body)
    return Outgoing(sent.run, sent.step, body, sign(desk.parties[number].identity.signing, role, text))


def without_room(desk: Desk, monkeypatch) -> None:
    """No transaction that writes succeeds any more."""

    def full(*_change):
        raise StoreUnavailable("database or disk is full")

    for way in ("writing", "write"):
        monkeypatch.setattr(desk.store, way, full)
