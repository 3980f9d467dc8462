"""What can go wrong in a run, by who is at fault, as one tree.

SubnError
├── OperatorError            what the operator or data owner wrote cannot work
│   ├── SchemaError          the schema contradicts itself
│   ├── DataError            a table does not fit its schema
│   └── PlanError            the plan cannot be run, paid for or understood
│       └── PriceError       it costs somebody more than epsilon
├── ManifestError            a published result does not prove what it claims
└── PeerError                a message that this side must refuse; carries `culprit`
    ├── MalformedMessage     it is not a message of this protocol version
    ├── OutOfTurn            it is a message, but not one that is expected now
    └── FailedCheck          it is expected, but its content fails a check

It does not know exit codes or HTTP: the shells map the tree, each in one place.
"""

CURATOR = "curator"  # how errors name the curator; no party may be called so


class SubnError(Exception):
    """Base of the tree. Its text is one clear sentence: what was found, what was expected, what to do."""


class OperatorError(SubnError):
    pass


class SchemaError(OperatorError):
    pass


class DataError(OperatorError):
    pass


class PlanError(OperatorError):
    pass


class PriceError(PlanError):
    pass


class ManifestError(SubnError):
    pass


class PeerError(SubnError):
    """`culprit` names the party, or "curator"."""

    def __init__(self, culprit: str, what: str) -> None:
        super().__init__(f"{culprit}: {what}")
        self.culprit = culprit


class MalformedMessage(PeerError):
    pass


class OutOfTurn(PeerError):
    pass


class FailedCheck(PeerError):
    pass
