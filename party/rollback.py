"""Detection of books that were set back, and of other copies of this home: then nothing may be served.

It does not know how receipts come from the curator.

The ledger is compared with two witnesses: the party's own audit log, and the receipts that the curator holds. Either
alone is enough to find a ledger that was set back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from crypto.errors import CryptoError
from crypto.signing import verify
from party.books import audit
from party.books.budget import NOTHING, Amounts, added
from party.books.reconciliation import Forgotten, forgotten
from party.errors import RolledBack
from party.home.home import OpenHome
from protocol.messages.http import SentReceipt
from protocol.messages.signatures import RECEIPT, receipt_text_of_digest

WAY_OUT = "`subn-party ledger acknowledge`"
_COPY = f"stop the other copy for good, and then run {WAY_OUT} here"


@dataclass(frozen=True)
class Earlier:
    """What earlier keys of this party's name have signed for and this ledger does not hold; the curator's word."""

    answers: int = 0
    spent: Amounts = NOTHING


def lost(opened: OpenHome, receipts: Sequence[SentReceipt]) -> list[SentReceipt]:
    """Receipts of answers that this party has signed and that its ledger lacks."""
    return [receipt for receipt in opened.ledger.check_against(receipts) if _is_own(opened, receipt)]


def lost_by_log(opened: OpenHome) -> list[Forgotten]:
    """Answers that the audit log tells of and the ledger lacks."""
    return forgotten(opened.home.audit, opened.ledger.entries())


def earlier(opened: OpenHome, receipts: Sequence[SentReceipt]) -> Earlier:
    found = [
        one for one in opened.ledger.check_against(receipts) if (one.charge or one.delta) and not _is_own(opened, one)
    ]
    return Earlier(len(found), added(*((one.charge, one.delta) for one in found)))


def earlier_words(found: Earlier) -> tuple[str, str]:
    """What earlier keys have spent, and what to do about it."""
    epsilon, delta = found.spent
    lines = [f'spent_before = "{exact_text(epsilon)}"'] + (
        [f'delta_spent_before = "{exact_text(delta)}"'] if delta else []
    )
    return (
        f"earlier keys of this name have signed {found.answers} answers that this ledger does not know, for epsilon "
        f"{exact_text(epsilon)}{f' and delta {exact_text(delta)}' if delta else ''}, as the curator says",
        f"if they were about rows of this home, write into the section of these rows: {', '.join(lines)}",
    )


def check_own_books(opened: OpenHome) -> None:
    """Raise RolledBack if the party was stopped, or if its log and its ledger contradict each other."""
    if reason := opened.ledger.stopped():
        raise RolledBack(reason)
    tampered = audit.tampering(opened.home.audit, opened.ledger.log_head())
    if tampered:
        raise RolledBack(
            f"{tampered[0]}; find out who changed it, and keep it as it is under another name; then {WAY_OUT} goes on "
            "with what the ledger knows"
        )
    _refuse_missing(opened, [one.receipt for one in lost_by_log(opened)], "its audit log tells of")


def check_receipts(opened: OpenHome, receipts: Sequence[SentReceipt]) -> None:
    """Raise RolledBack if the ledger was set back, or another copy of this home has answered.

    Privacy: a party that goes on with an old ledger spends a second time what the ledger has forgotten.
    """
    _refuse_missing(opened, lost(opened, receipts), "it has signed")


def stop_for_other_bytes(opened: OpenHome, run: str, step: str) -> NoReturn:
    """Stop for good: a supervisor that starts the party again must not let two copies take turns."""
    reason = f"the curator knows of other bytes for {step!r} of {run!r} than this home has for it"
    opened.ledger.settle(run, "failed", reason)  # its answers must not be sent again
    opened.ledger.stop(f"{reason}: {_COPY}")
    raise RolledBack(f"{reason}: {_COPY}")


def _refuse_missing(opened: OpenHome, missing: Iterable[SentReceipt], known_by: str) -> None:
    count = len(list(missing))
    if count:
        opened.audit.append("rolled back", answers=count)
        raise RolledBack(
            f"this party has signed {count} answers that {opened.home.ledger} does not know ({known_by} them): the "
            "ledger was set back, another copy of this home answers, or the ledger is another party's; put the newest "
            f"one in its place, stop all other copies, or charge what is missing with {WAY_OUT}"
        )


def _is_own(opened: OpenHome, receipt: SentReceipt) -> bool:
    text = receipt_text_of_digest(receipt.plan, receipt.step, receipt.charge, receipt.digest, receipt.delta)
    return any(_has_signed(key, text, receipt.signature) for key in opened.keys.signed_with)


def _has_signed(key: bytes, text: bytes, signature: str) -> bool:
    try:
        verify(key, RECEIPT, text, bytes.fromhex(signature))
    except CryptoError:
        return False
    return True


def exact_text(value: Fraction) -> str:
    """Write an amount as party.toml takes it: a decimal if that is exact and short, otherwise a fraction."""
    decimal = f"{float(value):.12f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == value else str(value)
