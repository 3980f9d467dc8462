"""Bytes that may leave, each with this party's signed receipt.

It does not know how an answer is made or how it travels.
"""

from dataclasses import dataclass, field
from typing import Literal

from crypto.signing import SigningKey, sign
from party.books.budget import NOTHING, Amounts
from protocol.messages.signatures import RECEIPT, REFUSAL_RECEIPT, receipt_text


@dataclass(frozen=True)
class Outgoing:
    """An answer that the ledger holds, or a refusal."""

    run: str
    step: str
    reply: bytes = field(repr=False)
    receipt: bytes = field(repr=False)
    ciphertexts: int = 0  # that were made for it just now
    kind: Literal["answer", "repeat", "refusal"] = field(default="answer", compare=False)


def answer_of(key: SigningKey, run: str, plan_hash: str, step: str, charged: Amounts, reply: bytes) -> Outgoing:
    text = receipt_text(plan_hash, step, charged[0], reply, charged[1])
    return Outgoing(run, step, reply, sign(key, RECEIPT, text))


def refusal_of(key: SigningKey, run: str, plan_hash: str, step: str, reply: bytes) -> Outgoing:
    """A refusal. Its receipt says that it is one, so that nobody takes it for an answer that the ledger has lost."""
    text = receipt_text(plan_hash, step, NOTHING[0], reply)
    return Outgoing(run, step, reply, sign(key, REFUSAL_RECEIPT, text), kind="refusal")
