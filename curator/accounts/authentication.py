"""Authentication: find the party that signed a request, or the operator whose key it carries.

It does not know HTTP. The caller passes the headers as text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from crypto.errors import CryptoError
from crypto.signing import verify
from curator.accounts.registry import hashed
from curator.clock import Clock
from curator.errors import Forbidden, NotAuthenticated, Replayed, StoreUnavailable, WrongClock
from curator.store.store import Store
from curator.store.tables import nonces, operator_keys, parties
from protocol.messages.signatures import LARGEST_CLOCK_DIFFERENCE_MS, REQUEST, request_text

_NONCE = re.compile(r"[0-9A-Za-z_-]{16,64}", re.ASCII)
_TIME = re.compile(r"[0-9]{1,15}", re.ASCII)
_LONGEST_ECHO = 100  # characters, as many as a name may have
# Built once: building a statement takes longer than executing it, and every request of a party needs all of these.
_KEY_OF = select(parties.c.signing_key, parties.c.revoked, parties.c.last_seen).where(
    parties.c.name == bindparam("sender")
)
_FORGET = delete(nonces).where(nonces.c.at < bindparam("before"))
_USE = insert(nonces).values(sender=bindparam("sender"), nonce=bindparam("nonce"), at=bindparam("now"))
_SEEN = update(parties).where(parties.c.name == bindparam("sender")).values(last_seen=bindparam("now"))
_SEEN = _SEEN.values(software=bindparam("software"))


@dataclass(frozen=True)
class SignedRequest:
    """A request and everything that its signature covers. `time_ms` and `signature` (hexadecimal) are unparsed text."""

    method: str
    target: str  # path and query as sent
    body_digest: str  # of the body that the sender announces, which may not have been read yet
    sender: str
    time_ms: str
    nonce: str
    signature: str
    version: str = ""  # of the protocol, as the sender says it; empty where it says none
    software: str | None = None  # the version that the sender claims to run; not signed, only displayed


@dataclass(frozen=True)
class Sender:
    """The party that signed a request."""

    name: str
    is_revoked: bool
    last_seen: int | None  # when its newest request was admitted, by the curator's clock

    def is_news(self, time_ms: int) -> bool:
        """Whether a request of this time cannot be a repetition of one that was admitted.

        Retry safety: a nonce is forgotten after some minutes, but no time that was admitted is further ahead of the
        moment of its admission than clocks may differ.
        """
        return self.last_seen is None or time_ms > self.last_seen + LARGEST_CLOCK_DIFFERENCE_MS


@dataclass(frozen=True)
class Authentication:
    store: Store
    clock: Clock
    on_failure: Callable[[StoreUnavailable], None] = lambda _error: None  # called when the store cannot save a nonce
    heard: Callable[[str, int], None] = lambda _party, _time_ms: None  # called with signed times that are no old ones

    def sender(self, request: SignedRequest) -> Sender:
        """Return the enrolled party that signed this request, which may be old or repeated."""
        with self.store.reading() as db:
            row = db.execute(_KEY_OF, {"sender": request.sender}).one_or_none()
        if row is None:
            raise NotAuthenticated(
                f"no party {request.sender[:_LONGEST_ECHO]!r} is enrolled here: ask the operator for a one-time "
                "code and enrol with it"
            )
        self._check_signature(request, row.signing_key)
        return Sender(request.sender, row.revoked is not None, row.last_seen)

    def admit(self, sender: Sender, request: SignedRequest) -> None:
        """Take a request of its proven sender, once. Refuse a revoked sender, a stale request and a repeated one."""
        if sender.is_revoked:
            raise Forbidden(
                f"{sender.name} was revoked by the operator: to take part again, it has to enrol with new keys and "
                "a new code"
            )
        try:
            self._check_time(request)
        except WrongClock:
            if sender.is_news(int(request.time_ms)):
                self.heard(sender.name, int(request.time_ms))
            raise
        try:
            self.store.write(lambda db: self._use_nonce(db, request))
        except IntegrityError:
            raise Replayed(
                "this request has already been received: sign every attempt anew, with a new nonce"
            ) from None
        except StoreUnavailable as error:
            self.on_failure(error)
            raise
        self.heard(sender.name, int(request.time_ms))

    def newcomer(self, request: SignedRequest, signing_key: bytes) -> None:
        """Check that a newcomer holds the key with which it enrols; `signing_key` is the key in the request.

        Retry safety: the code works only once, so no nonce is stored. Otherwise anybody could fill the store with
        nonces.
        """
        self._check_signature(request, signing_key)
        self._check_time(request)

    def operator(self, key: str) -> str:
        """Return the label of an operator's key."""
        with self.store.reading() as db:
            # Timing: hashes are compared, so an attacker cannot guess the key digit by digit.
            found = select(operator_keys.c.label).where(operator_keys.c.hash == hashed(key))
            label = db.execute(found).scalar_one_or_none()
        if label is None:
            raise NotAuthenticated(
                "this operator's key is not valid here: create one with `subn-curator operator-key add`"
            )
        return str(label)

    def _check_signature(self, request: SignedRequest, key: bytes) -> None:
        if not _TIME.fullmatch(request.time_ms) or not _NONCE.fullmatch(request.nonce):
            raise NotAuthenticated(
                "the request's time must be milliseconds since 1970 and its nonce 16 to 64 letters, digits, - or _"
            )
        time_ms = int(request.time_ms)
        said = request.method, request.target, request.body_digest, request.sender
        text = request_text(*said, time_ms, request.nonce, request.version)
        try:
            verify(key, REQUEST, text, bytes.fromhex(request.signature))
        except (CryptoError, ValueError):
            raise NotAuthenticated(f"the request is not signed with the key of {request.sender!r}") from None

    def _check_time(self, request: SignedRequest) -> None:
        now, time_ms = self.clock(), int(request.time_ms)
        if abs(now - time_ms) > LARGEST_CLOCK_DIFFERENCE_MS:
            raise WrongClock(
                f"your clock says {_clock_text(time_ms)}, the curator's says {_clock_text(now)}: they may differ by "
                f"{LARGEST_CLOCK_DIFFERENCE_MS // 60_000} minutes at most. Correct the clock that is wrong"
            )

    def _use_nonce(self, db: Connection, request: SignedRequest) -> None:
        """Note the nonce and its sender's sign of life. Raise IntegrityError if the nonce was used before."""
        now, sender = self.clock(), request.sender
        # Retry safety: a nonce is deleted only when the time of every request that used it is too old to be accepted.
        db.execute(_FORGET, {"before": now - 2 * LARGEST_CLOCK_DIFFERENCE_MS})
        db.execute(_USE, {"sender": sender, "nonce": request.nonce, "now": now})
        db.execute(_SEEN, {"sender": sender, "now": now, "software": request.software})


def _clock_text(time_ms: int) -> str:
    """Write a time in UTC, to the second. Times outside the calendar are given in milliseconds."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms after 1970"
