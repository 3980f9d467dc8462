"""Who sends a request: parties by their signature, operators by their key.

It does not know HTTP; the headers are given as texts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select, update
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


@dataclass(frozen=True)
class SignedRequest:
    """A request with what its signature covers; `time_ms` and `signature` (hexadecimal) as they came."""

    method: str
    target: str  # path and query as sent
    body: bytes
    sender: str
    time_ms: str
    nonce: str
    signature: str
    version: str = ""  # of the protocol, as the sender says it; empty where it says none
    software: str | None = None  # what the sender says it runs; not signed, and only shown


@dataclass(frozen=True)
class Authentication:
    store: Store
    clock: Clock
    on_failure: Callable[[StoreUnavailable], None] = lambda _error: None  # told when the store does not take a nonce
    heard: Callable[[str, int], None] = lambda _party, _time_ms: None  # told every time that a party signs

    def party(self, request: SignedRequest) -> str:
        """The name of the enrolled party that has signed this request, now, and for the first time."""
        with self.store.reading() as db:
            found = select(parties.c.signing_key, parties.c.revoked).where(parties.c.name == request.sender)
            row = db.execute(found).one_or_none()
        if row is None:
            raise NotAuthenticated(f"no party {request.sender!r} is enrolled here: enrol with a code of the operator")
        self._check_signature(request, row.signing_key)
        self.heard(request.sender, int(request.time_ms))
        self._check_time(request)
        if row.revoked is not None:
            raise Forbidden(f"{request.sender} was revoked by the operator: it can enrol under another name only")
        try:
            with self.store.writing() as db:
                self._use_nonce(db, request)
                seen = {"last_seen": self.clock(), "software": request.software}
                db.execute(update(parties).where(parties.c.name == request.sender).values(**seen))
        except StoreUnavailable as error:
            self.on_failure(error)
            raise
        return request.sender

    def newcomer(self, request: SignedRequest, signing_key: bytes) -> None:
        """Whoever enrols holds the key that it brings; `signing_key` is the one in the request.

        Retry safety: the code serves once, so that no nonce need be kept, which anybody could have kept without end.
        """
        self._check_signature(request, signing_key)
        self._check_time(request)

    def operator(self, key: str) -> str:
        """The label of an operator's key."""
        with self.store.reading() as db:
            # Timing: what is compared is a hash, which an attacker cannot approach digit by digit.
            found = select(operator_keys.c.label).where(operator_keys.c.hash == hashed(key))
            label = db.execute(found).scalar_one_or_none()
        if label is None:
            raise NotAuthenticated(
                "this is no operator's key of this curator: make one with `subn-curator operator-key`"
            )
        return str(label)

    def _check_signature(self, request: SignedRequest, key: bytes) -> None:
        if not _TIME.fullmatch(request.time_ms) or not _NONCE.fullmatch(request.nonce):
            raise NotAuthenticated(
                "the request's time must be milliseconds since 1970 and its nonce 16 to 64 letters, digits, - or _"
            )
        time_ms = int(request.time_ms)
        said = request.method, request.target, request.body, request.sender
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
                f"{LARGEST_CLOCK_DIFFERENCE_MS // 60_000} minutes at most; set the clock that is wrong"
            )

    def _use_nonce(self, db: Connection, request: SignedRequest) -> None:
        now = self.clock()
        # Retry safety: a nonce taken at the earliest time allowed is refused by its time when it is forgotten.
        db.execute(delete(nonces).where(nonces.c.at < now - 2 * LARGEST_CLOCK_DIFFERENCE_MS))
        try:
            with db.begin_nested():
                db.execute(insert(nonces).values(sender=request.sender, nonce=request.nonce, at=now))
        except IntegrityError:
            raise Replayed(
                "this request has been here before: sign every attempt anew, with a nonce of its own"
            ) from None


def _clock_text(time_ms: int) -> str:
    """UTC, to the second; times that no calendar has are given in milliseconds."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms after 1970"
