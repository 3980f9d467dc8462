"""Detection of a ledger that was set back: it lacks answers that this party has signed.

It does not know how receipts come from the curator.
"""

from collections.abc import Sequence

from crypto.errors import CryptoError
from crypto.signing import verify
from party.errors import RolledBack
from party.home.home import OpenHome
from protocol.messages.http import SentReceipt
from protocol.messages.signatures import RECEIPT, receipt_text_of_digest


def lost(opened: OpenHome, receipts: Sequence[SentReceipt]) -> list[SentReceipt]:
    """Receipts of answers that this party has signed and that its ledger lacks."""
    return opened.ledger.check_against([receipt for receipt in receipts if _is_own(opened, receipt)])


def check_not_rolled_back(opened: OpenHome, receipts: Sequence[SentReceipt]) -> None:
    """Raise RolledBack if the ledger was set back.

    Privacy: a party that goes on with an old ledger spends a second time what the ledger has forgotten.
    """
    missing = lost(opened, receipts)
    if missing:
        opened.audit.append("rolled back", answers=len(missing))
        raise RolledBack(
            f"this party has signed {len(missing)} answers that {opened.home.ledger} does not know: the ledger was set "
            "back, or belongs to another party; put the newest one in its place, or charge what is missing with "
            "`subn-party ledger acknowledge`"
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
