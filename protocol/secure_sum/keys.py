"""Secrets that the parties of a run share without the curator: pair keys and the group key.

It does not know rows, steps or noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from crypto.errors import CryptoError
from crypto.masking import pair_key
from crypto.randomness import derive_key
from crypto.sealing import ExchangeKey, info_for, open_sealed, seal
from protocol.errors import CURATOR, FailedCheck
from protocol.identity import Identity
from protocol.messages.tasks import Keys
from protocol.plan.terms import Terms

SHARE_BYTES = 32


@dataclass(frozen=True)
class PairKeys:
    """Callable that returns, for a context, the key that this party shares with each other party.

    Privacy: every key needs two secrets, of the party's lasting exchange key and of the exchange key that the party
    made for this run and destroys at its end. Whoever reads a party's disk or backup later cannot compute the masks.
    """

    terms: Terms = field(repr=False)
    me: int
    identity: Identity = field(repr=False)
    run_key: ExchangeKey = field(repr=False)
    run_keys: tuple[bytes, ...] = field(repr=False)  # of all members, public halves

    def __call__(self, context: bytes) -> Mapping[int, bytes]:
        bound = b"|".join((self.terms.plan_hash.encode(), b"".join(self.run_keys), context))
        return {peer: pair_key(secret, bound) for peer, secret in self._secrets.items()}

    @cached_property
    def _secrets(self) -> Mapping[int, bytes]:
        """The two secrets shared with each other party, worked out for the first pass and kept as long as `run_key`."""
        return {
            peer: self.identity.exchange.agree(member.exchange_key) + self.run_key.agree(run_key)
            for peer, (member, run_key) in enumerate(zip(self.terms.plan.members, self.run_keys, strict=True))
            if peer != self.me
        }


def group_contributions(terms: Terms, me: int, share: bytes) -> tuple[bytes, ...]:
    """This party's share of the group key, sealed for each other party; the curator only forwards the shares.

    Privacy: the share is sealed before anybody's key of this run is known. Whoever opens a share later learns places in
    the indicator, which every party of the run knows. The masks do not follow from the share.
    """
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
    if any(len(one) != SHARE_BYTES for one in shares):  # the curator has refused seals of another length
        raise FailedCheck(CURATOR, f"forwarded a share of the group key that is not {SHARE_BYTES} bytes long")
    return derive_key(b"".join(shares), b"group key " + terms.plan_hash.encode())
