"""What can go wrong at a party, as branches of `protocol.errors`.

SubnError
├── OperatorError
│   └── SettingsError        party.toml, or a file that it names, cannot be used
├── PolicyRefusal            the data owner's rules do not allow what is asked
│   └── BudgetExhausted      (also a LedgerError) it costs more than is left
├── TalkError                no answer of the curator can be used
│   ├── Unreachable          nobody answers, or whoever answers says "later": worth another try
│   ├── Untrusted            no TLS with the pinned CA, or an answer without the signature of the pinned curator
│   └── Declined             the curator says no, and why (its problem+json)
└── LedgerError              the ledger, or the audit log, must not or cannot go on
    ├── BudgetExhausted
    ├── AnsweredOtherwise    (also a PeerError) a step is asked for again, but with another request
    ├── RolledBack           this party signed answers that its ledger does not know
    ├── HomeInUse            another process serves this home
    ├── DiskFull             nothing was written; there is no room
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
    def __init__(self, status: int, text: str, culprit: str | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.culprit = culprit


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
