"""Errors of the curator's service, as one tree, grouped by the caller's possible reactions.

CuratorError
├── NotAuthenticated    the request is not signed by a known caller
│   ├── WrongClock      the request is signed, but its time is too far from the curator's
│   └── Replayed        the request is signed, but has already been received
├── WrongVersion        the caller speaks another version of the protocol
├── Forbidden           the caller is known and may not do this
├── NotFound            there is no such run, party, schema or file
├── TooLarge            the body is larger than anything that is expected here
├── Conflict            the request contradicts the present state
│   ├── OtherBytes      another answer to the same step has been accepted
│   ├── NotAsked        the step does not wait for this party
│   └── RunEnded        the run is over
├── Abandoned           nobody waits for the answer any more
├── Busy                others keep the service busy with the same: try again
│   └── TooManyOpen     the party itself has too many requests open: try again when they are answered
├── SettingsError       the service cannot start with these settings
└── StoreUnavailable    the store or a disk cannot save anything now: what was confirmed is stored, try again
    └── Displaced       another curator serves the database now: this process must end

It does not know HTTP: `curator.http.problems` maps this tree, and `protocol.errors`, in one place.
"""

from protocol.errors import SubnError


class CuratorError(SubnError):
    pass


class NotAuthenticated(CuratorError):
    pass


class WrongClock(NotAuthenticated):
    pass


class Replayed(NotAuthenticated):
    pass


class WrongVersion(CuratorError):
    pass


class Forbidden(CuratorError):
    pass


class NotFound(CuratorError):
    pass


class TooLarge(CuratorError):
    pass


class Conflict(CuratorError):
    pass


class OtherBytes(Conflict):
    pass


class NotAsked(Conflict):
    pass


class RunEnded(Conflict):
    pass


class Abandoned(CuratorError):
    pass


class Busy(CuratorError):
    pass


class TooManyOpen(Busy):
    pass


class SettingsError(CuratorError):
    pass


class StoreUnavailable(CuratorError):
    pass


class Displaced(StoreUnavailable):
    pass


class CuratorUnreachable(SubnError):
    """No curator answers the operator's program. It stands outside the tree, because no service raises it."""
