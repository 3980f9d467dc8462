"""The receipt that comes with every answer: what the answer costs its party, in the party's own signed words.

It does not know runs or what an answer says.
"""

from fractions import Fraction

from crypto.errors import CryptoError
from crypto.signing import verify
from curator.errors import Forbidden
from protocol.authentication import RECEIPT, receipt_text
from protocol.errors import MalformedMessage
from protocol.messages import Refusal, decode
from protocol.schedule import Step
from protocol.terms import Terms


def charge_of(step: Step, number: int, party: str, body: bytes) -> Fraction:
    """What the answer costs its party: a refusal nothing."""
    try:
        return Fraction(0) if isinstance(decode(body, party), Refusal) else step.charge(number)
    except MalformedMessage:
        return step.charge(number)


def check_receipt(terms: Terms, number: int, step: Step, charge: Fraction, body: bytes, receipt: bytes) -> None:
    member = terms.plan.members[number]
    text = receipt_text(terms.plan_hash, step.name, charge, body)
    try:
        verify(member.signing_key, RECEIPT, text, receipt)
    except CryptoError as error:
        raise Forbidden(
            f"{member.name}'s receipt for {step.name!r} does not fit: expected its signature under these bytes and the "
            f"charge {charge}: {error}"
        ) from error
