"""Errors of a run as one tree, by the side that is at fault.

SubnError
├── OperatorError            the operator's or data owner's input cannot work
│   ├── SchemaError          the schema contradicts itself
│   ├── DataError            a table does not fit its schema
│   └── PlanError            the plan cannot be run, paid for or understood
│       ├── PriceError       the plan costs somebody more than epsilon
│       └── AdvisedAgainst   the plan protects nobody or makes a useless table; the operator may insist
├── ManifestError            a published result does not prove its claims
└── PeerError                this side must refuse a message; carries `culprit`
    ├── MalformedMessage     the bytes are not a message of this protocol version
    ├── OutOfTurn            the message is not expected now
    └── FailedCheck          the message is expected, but its content fails a check

It does not know exit codes or HTTP: the shells map the tree, each in one place.
"""

CURATOR = "curator"  # the curator's name in errors; no party may have this name
PARTIES = "the parties"  # the culprit where one party is at fault and nothing tells which


class SubnError(Exception):
    """Base of the tree. The text is one clear sentence: what was found, what was expected, what to do."""


class OperatorError(SubnError):
    pass


class SchemaError(OperatorError):
    """Problems of a schema, all at once: `problems` holds a sentence for each, and the text has a line for each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DataError(OperatorError):
    pass


class PlanError(OperatorError):
    pass


class PriceError(PlanError):
    pass


class AdvisedAgainst(PlanError):
    pass


class ManifestError(SubnError):
    pass


class PeerError(SubnError):
    """Refusal of a message; `culprit` names the sender: a party, or "curator"."""

    def __init__(self, culprit: str, what: str) -> None:
        super().__init__(f"{culprit}: {what}")
        self.culprit = culprit


class MalformedMessage(PeerError):
    pass


class OutOfTurn(PeerError):
    pass


class FailedCheck(PeerError):
    pass
