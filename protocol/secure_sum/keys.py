"""Secrets that the parties of a run share without the curator: pair keys and the group key.

It does not know rows, steps or noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crypto.errors import CryptoError
from crypto.masking import agree, pair_key
from crypto.randomness import derive_key
from crypto.sealing import info_for, open_sealed, seal
from protocol.errors import CURATOR, FailedCheck
from protocol.identity import Identity
from protocol.messages.tasks import Keys
from protocol.plan.terms import Terms

SHARE_BYTES = 32


@dataclass(frozen=True)
class PairKeys:
    """Callable that returns, for a context, the key that this party shares with each other party."""

    terms: Terms = field(repr=False)
    me: int
    identity: Identity = field(repr=False)

    def __call__(self, context: bytes) -> Mapping[int, bytes]:
        private = self.identity.exchange.to_bytes()
        bound = self.terms.plan_hash.encode() + b"|" + context
        return {
            peer: pair_key(agree(private, member.exchange_key), bound)
            for peer, member in enumerate(self.terms.plan.members)
            if peer != self.me
        }


def group_contributions(terms: Terms, me: int, share: bytes) -> tuple[bytes, ...]:
    """This party's share of the group key, sealed for each other party; the curator only forwards the shares."""
    names = [member.name for member in terms.plan.members]
    return tuple(
        b""
        if peer == me
        else seal(member.exchange_key, info_for(terms.plan_hash, "group key", names[me], member.name), share)
        for peer, member in enumerate(terms.plan.members)
    )


def group_key(terms: Terms, me: int, identity: Identity, share: bytes, keys: Keys) -> bytes:
    members = terms.plan.members
    if len(keys.contributions) != len(members):
        raise FailedCheck(CURATOR, f"forwarded {len(keys.contributions)} shares of the group key, not {len(members)}")
    shares = []
    for sender, sealed in enumerate(keys.contributions):
        info = info_for(terms.plan_hash, "group key", members[sender].name, members[me].name)
        try:
            shares.append(share if sender == me else open_sealed(identity.exchange.to_bytes(), info, sealed))
        except CryptoError as error:
            raise FailedCheck(members[sender].name, f"its share of the group key does not open: {error}") from error
    if any(len(one) != SHARE_BYTES for one in shares):
        raise FailedCheck(CURATOR, f"forwarded a share of the group key that is not {SHARE_BYTES} bytes long")
    return derive_key(b"".join(shares), b"group key " + terms.plan_hash.encode())
