"""Answers that have been accepted, and the receipt that comes with each: a signed statement of the answer's cost.

It does not know how runs advance.
"""

from fractions import Fraction

from crypto.errors import CryptoError
from crypto.signing import verify
from curator.errors import Forbidden, OtherBytes
from curator.store import run_records as records
from curator.store.store import Store
from protocol.errors import MalformedMessage
from protocol.messages.signatures import RECEIPT, receipt_text
from protocol.messages.tasks import Refusal, decode
from protocol.plan.step import Step
from protocol.plan.terms import Terms

Amounts = tuple[Fraction, Fraction]  # of epsilon and delta


def is_accepted(store: Store, run: str, step: str, party: str, digest: str) -> bool:
    """Whether this answer has been accepted. Raise OtherBytes if another one was."""
    with store.reading() as db:
        found = records.find_reply(db, run, step, party)
    if found is not None and found.digest != digest:
        raise OtherBytes(
            f"{party} has answered {step!r} with other bytes: SHA-256 {found.digest} was accepted, this is {digest}"
        )
    return found is not None


def cost_of(step: Step, number: int, party: str, body: bytes) -> Amounts:
    """Return the cost of an answer to its party. A refusal costs nothing."""
    cost = step.charge(number), step.delta(number)
    try:
        return (Fraction(0), Fraction(0)) if isinstance(decode(body, party), Refusal) else cost
    except MalformedMessage:
        return cost


def check_receipt(terms: Terms, number: int, step: Step, cost: Amounts, body: bytes, receipt: bytes) -> None:
    member, (charge, delta) = terms.plan.members[number], cost
    text = receipt_text(terms.plan_hash, step.name, charge, body, delta)
    try:
        verify(member.signing_key, RECEIPT, text, receipt)
    except CryptoError as error:
        raise Forbidden(
            f"{member.name}'s receipt for {step.name!r} does not fit: expected its signature under these bytes and the "
            f"charge {charge}{f' with delta {delta}' if delta else ''}: {error}"
        ) from error
