"""Access to the data owner's pages: one-time sign-in addresses, sessions, and the token in every form.

It does not know what the pages show. Sessions are never written to disk: a restart signs everybody out.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic

from crypto.randomness import Stream

TICKET_SECONDS = 600
SESSION_SECONDS = 8 * 3600
_SECRET_BYTES = 32
_MOST_TICKETS = 20
_MOST_SESSIONS = 20


@dataclass(frozen=True)
class Session:
    """A signed-in browser; `form_token` is in every form on its pages, and nowhere else."""

    form_token: str = field(repr=False)
    ends: float


class Door:
    """Tickets and sessions, looked up by the hashes of their secrets so that timing reveals no secret."""

    def __init__(self, stream: Stream | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock = stream or Stream.system(), clock
        self._tickets: dict[bytes, float] = {}
        self._sessions: dict[bytes, Session] = {}

    def ticket(self) -> str:
        """A secret that opens one session, once, within ten minutes."""
        secret = self._secret()
        self._tickets[_hash(secret)] = self._clock() + TICKET_SECONDS
        _keep_newest(self._tickets, _MOST_TICKETS)
        return secret

    def enter(self, ticket: str) -> str | None:
        """Exchange a ticket for the secret of a new session; None if the ticket is used, expired or unknown."""
        ends = self._tickets.pop(_hash(ticket), 0.0)
        if ends <= self._clock():
            return None
        secret = self._secret()
        self._sessions[_hash(secret)] = Session(self._secret(), self._clock() + SESSION_SECONDS)
        _keep_newest(self._sessions, _MOST_SESSIONS)
        return secret

    def session(self, secret: str | None) -> Session | None:
        found = self._sessions.get(_hash(secret or ""))
        return found if found is not None and found.ends > self._clock() else None

    def leave(self, secret: str | None) -> None:
        self._sessions.pop(_hash(secret or ""), None)

    def _secret(self) -> str:
        return self._stream.take(_SECRET_BYTES).hex()


def cookie_name(signing_key: bytes) -> str:
    """The name of a party's cookie. Cookies know no ports: two parties on one machine need two names."""
    return f"subn-party-{signing_key.hex()[:16]}"


def is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _keep_newest(kept: dict[bytes, object] | dict[bytes, float] | dict[bytes, Session], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
