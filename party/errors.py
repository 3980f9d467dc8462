"""Errors of a party, as branches of `protocol.errors`.

SubnError
├── OperatorError
│   └── SettingsError        party.toml, or a file that it names, cannot be used
├── PolicyRefusal            the data owner's rules do not allow what is asked
│   └── BudgetExhausted      (also a LedgerError) a run or step costs more than is left
├── TalkError                the curator gives no usable answer
│   ├── Unreachable          no server answers, or the server says "later": worth another try
│   ├── Untrusted            no TLS with the pinned CA, or an answer without the signature of the pinned curator
│   └── Declined             the curator refuses, with a reason (its problem+json)
└── LedgerError              the ledger or the audit log cannot be used
    ├── BudgetExhausted
    ├── AnsweredOtherwise    (also a PeerError) a second, different request for an answered step
    ├── RolledBack           the books were set back, or another copy of this home answers; nothing may be served
    ├── HomeInUse            another process serves this home
    ├── DiskFull             nothing was written: the disk is full
    └── Unreadable           a file of the home is damaged, or not of this version

It does not know exit codes or HTTP: the shell maps the tree in one place.
"""

from protocol.errors import OperatorError, PeerError, SubnError


class SettingsError(OperatorError):
    pass


class PolicyRefusal(SubnError):
    pass


class TalkError(SubnError):
    pass


class Unreachable(TalkError):
    pass


class Untrusted(TalkError):
    pass


class Declined(TalkError):
    def __init__(self, status: int, text: str, culprit: str | None = None, kind: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.culprit = culprit
        self.kind = kind  # of the problem, as the curator names it


class LedgerError(SubnError):
    pass


class BudgetExhausted(LedgerError, PolicyRefusal):
    pass


class AnsweredOtherwise(LedgerError, PeerError):
    pass


class RolledBack(LedgerError):
    pass


class HomeInUse(LedgerError):
    pass


class DiskFull(LedgerError):
    pass


class Unreadable(LedgerError):
    pass
