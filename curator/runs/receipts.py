"""Answers that have been accepted, and the receipt that comes with each: a signed statement of the answer's cost.

It does not know how runs advance.
"""

from fractions import Fraction

from crypto.errors import CryptoError
from crypto.signing import verify
from curator.errors import Forbidden, OtherBytes
from curator.store import run_records as records
from curator.store.run_records import ClaimRecord, ReplyRecord
from curator.store.store import Store
from protocol.errors import MalformedMessage
from protocol.messages.signatures import RECEIPT, REFUSAL_RECEIPT, receipt_text_of_digest
from protocol.messages.tasks import Refusal, decode
from protocol.plan.step import Step
from protocol.plan.terms import Terms

Amounts = tuple[Fraction, Fraction]  # of epsilon and delta


def is_accepted(store: Store, run: str, step: str, party: str, digest: str) -> bool:
    """Whether this answer has been accepted. Raise OtherBytes if another one was accepted or promised."""
    return isinstance(_known(store, run, step, party, digest), ReplyRecord)


def is_known(store: Store, run: str, step: str, party: str, digest: str) -> bool:
    """Whether this answer has been accepted or promised. Raise OtherBytes if another one was."""
    return _known(store, run, step, party, digest) is not None


def accepted(terms: Terms, number: int, step: Step, body: bytes, digest: str, receipt: bytes, now: int) -> ReplyRecord:
    """Return the record of an answer whose receipt fits. Raise Forbidden if it does not."""
    refuses = _is_refusal(name := terms.plan.members[number].name, body)
    charge, delta = _checked_cost(terms, number, step, refuses, digest, receipt)
    return ReplyRecord(terms.plan.run, step.name, name, digest, len(body), str(charge), receipt, now, str(delta))


def promised(terms: Terms, number: int, step: Step, digest: str, receipt: bytes, now: int) -> ClaimRecord:
    """Return the record of an answer that is promised, as an answer or as a refusal. Raise Forbidden likewise."""
    name, refuses = terms.plan.members[number].name, _is_receipt(terms, number, step, True, digest, receipt)
    charge, delta = _checked_cost(terms, number, step, refuses, digest, receipt)
    return ClaimRecord(terms.plan.run, step.name, name, digest, str(charge), receipt, now, str(delta))


def _is_refusal(party: str, body: bytes) -> bool:
    try:
        return isinstance(decode(body, party), Refusal)
    except MalformedMessage:
        return False


def _cost_of(step: Step, number: int, refuses: bool) -> Amounts:
    """Return the cost of an answer to its party. A refusal costs nothing."""
    return (Fraction(0), Fraction(0)) if refuses else (step.charge(number), step.delta(number))


def _checked_cost(terms: Terms, number: int, step: Step, refuses: bool, digest: str, receipt: bytes) -> Amounts:
    charge, delta = _cost_of(step, number, refuses)
    if not _is_receipt(terms, number, step, refuses, digest, receipt):
        raise Forbidden(
            f"{terms.plan.members[number].name}'s receipt for {step.name!r} does not fit: expected its signature under "
            f"these bytes and the charge {charge}{f' with delta {delta}' if delta else ''}"
        )
    return charge, delta


def _is_receipt(terms: Terms, number: int, step: Step, refuses: bool, digest: str, receipt: bytes) -> bool:
    charge, delta = _cost_of(step, number, refuses)
    text = receipt_text_of_digest(terms.plan_hash, step.name, charge, digest, delta)
    try:
        verify(terms.plan.members[number].signing_key, REFUSAL_RECEIPT if refuses else RECEIPT, text, receipt)
    except CryptoError:
        return False
    return True


def agrees(found: ReplyRecord | ClaimRecord | None, step: str, party: str, digest: str) -> bool:
    """Whether this answer was accepted or promised. Raise OtherBytes if another one was."""
    if found is not None and found.digest != digest:
        raise OtherBytes(
            f"{party} has answered {step!r} with other bytes: SHA-256 {found.digest} was accepted, this is {digest}"
        )
    return found is not None


def _known(store: Store, run: str, step: str, party: str, digest: str) -> ReplyRecord | ClaimRecord | None:
    with store.reading() as db:
        found = records.find_reply(db, run, step, party) or records.find_claim(db, run, step, party)
    return found if agrees(found, step, party, digest) else None
