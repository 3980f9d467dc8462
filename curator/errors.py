"""What the curator's service refuses, by what the caller can do about it, as one tree.

CuratorError
├── NotAuthenticated    nobody that this curator knows signed this request
│   ├── WrongClock      it is signed, but at a time that is not now
│   └── Replayed        it is signed, but has been here before
├── WrongVersion        the caller speaks another version of the protocol
├── Forbidden           the caller is known and may not do this
├── NotFound            there is no such run, party, schema or file
├── Conflict            it contradicts what is already so
│   ├── OtherBytes      another answer to the same step has been accepted
│   ├── NotAsked        the step does not wait for this party
│   └── RunEnded        the run is over
├── SettingsError       the service cannot start like this
└── StoreUnavailable    the store or a disk does not take what was given: nothing is lost, try again
    └── Displaced       another curator serves the database now: this one must end

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


class Conflict(CuratorError):
    pass


class OtherBytes(Conflict):
    pass


class NotAsked(Conflict):
    pass


class RunEnded(Conflict):
    pass


class SettingsError(CuratorError):
    pass


class StoreUnavailable(CuratorError):
    pass


class Displaced(StoreUnavailable):
    pass


class CuratorUnreachable(SubnError):
    """The curator does not answer its operator, or not like a curator: outside the tree, as no service raises it."""
