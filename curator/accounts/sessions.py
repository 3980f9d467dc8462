"""Sessions of operators in browsers: after one use of a key, a random token in a cookie replaces it for some hours.

It does not know HTTP or cookies.
"""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from crypto.randomness import Stream
from curator.accounts.registry import hashed
from curator.clock import Clock
from curator.errors import NotAuthenticated
from curator.store.store import Store
from curator.store.tables import operator_keys, sessions

LIFE_SECONDS = 12 * 3600
_TOKEN_BYTES = 32


@dataclass(frozen=True)
class Session:
    label: str  # label of the operator's key
    form_token: str  # every form that changes something must contain this token


@dataclass(frozen=True)
class Sessions:
    """All sessions, of which only hashes are kept. A session ends with its key, after 12 hours, or by signing out."""

    store: Store
    clock: Clock

    def begin(self, key: str, stream: Stream) -> str:
        """Begin a session and return its token. Refuse a key that is not an operator's key."""
        token, now = stream.take(_TOKEN_BYTES).hex(), self.clock()
        with self.store.writing() as db:
            found = select(operator_keys.c.hash).where(operator_keys.c.hash == hashed(key))
            if db.execute(found).scalar_one_or_none() is None:
                raise NotAuthenticated(
                    "this operator's key is not valid here: create one with `subn-curator operator-key add`"
                )
            db.execute(delete(sessions).where(sessions.c.expires <= now))
            expires = now + LIFE_SECONDS * 1000
            db.execute(insert(sessions).values(hash=hashed(token), operator_key=hashed(key), expires=expires))
        return token

    def find(self, token: str) -> Session:
        joined = select(operator_keys.c.label).join(sessions, sessions.c.operator_key == operator_keys.c.hash)
        wanted = (sessions.c.hash == hashed(token)) & (sessions.c.expires > self.clock())
        with self.store.reading() as db:
            label = db.execute(joined.where(wanted)).scalar_one_or_none()
        if label is None:
            raise NotAuthenticated("you are not signed in, or your session has ended: sign in with an operator's key")
        return Session(str(label), hashed(f"form of {token}"))

    def end(self, token: str) -> None:
        with self.store.writing() as db:
            db.execute(delete(sessions).where(sessions.c.hash == hashed(token)))
