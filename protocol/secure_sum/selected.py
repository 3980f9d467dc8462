"""What the parties of a run share with each other and not with the curator: pair keys, group key, hidden places.

It does not know rows or steps' meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gmpy2 import mpz

from crypto.errors import CryptoError
from crypto.masking import agree, mask_residues, pair_key
from crypto.paillier.blinding import Blinder, RerandomiserPool
from crypto.paillier.indicator import Indicator, check_indicator, hidden_permutation
from crypto.paillier.public import PublicKey, ciphertexts_to_bytes
from crypto.randomness import Stream, derive_key
from crypto.sealing import info_for, open_sealed, seal
from protocol.errors import CURATOR, FailedCheck
from protocol.identity import Identity
from protocol.messages.tasks import Keys
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout, Vector
from protocol.secure_sum.plain import full_noise, packing

SHARE_BYTES = 32
_EXPECTED_CIPHERTEXTS = 256  # of a whole run, about: it sets the size of the re-randomisers' tables


@dataclass(frozen=True)
class PairKeys:
    """Called with a context, the key that this party has in common with each other party for it."""

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
    """This party's share of the group key, sealed for every other party; the curator only carries it."""
    names = [member.name for member in terms.plan.members]
    return tuple(
        b""
        if peer == me
        else seal(member.exchange_key, info_for(terms.plan_hash, "group key", names[me], member.name), share)
        for peer, member in enumerate(terms.plan.members)
    )


def selected_sums(
    terms: Terms, me: int, identity: Identity, share: bytes, keys: Keys, stream: Stream
) -> "SelectedSums":
    """Check what the curator sent before the first sum, and find this party's place in the indicator."""
    plan = terms.plan
    try:
        public = PublicKey.from_bytes(keys.public_key, smallest_bits=plan.key_bits)
        indicator = Indicator.from_bytes(public, keys.indicator, plan.parties)
        check_indicator(public, indicator, plan.noise_shares)
    except CryptoError as error:
        raise FailedCheck(CURATOR, f"sent keys that this party does not accept: {error}") from error
    if public.bits != plan.key_bits:
        raise FailedCheck(CURATOR, f"sent a key of {public.bits} bits, the plan says {plan.key_bits}")
    group_key = _group_key(terms, me, identity, share, keys)
    places = hidden_permutation(group_key, plan.parties)
    bit = indicator.ciphertexts[places[me]]
    # Parties that were sent different indicators, or forged shares of the group key (seals do not say who made them)
    # and so stand at places of their own, cannot be summed: too little noise would be kept.
    binding = derive_key(group_key, b"masks " + indicator.digest(public))
    pool = RerandomiserPool(public, bit, stream.child("re-randomisers"), _EXPECTED_CIPHERTEXTS)
    return SelectedSums(terms, PairKeys(terms, me, identity), me, public, bit, binding, pool)


def _group_key(terms: Terms, me: int, identity: Identity, share: bytes, keys: Keys) -> bytes:
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


@dataclass(frozen=True)
class SelectedSums:
    """Noise mode `selected` at a party: packed Paillier, masks modulo n, noise kept where the hidden bit is 1."""

    terms: Terms = field(repr=False)
    pair_keys: PairKeys
    me: int
    public: PublicKey = field(repr=False)
    bit: mpz = field(repr=False)  # Enc(u'_me)
    binding: bytes = field(repr=False)  # of the masks to the group key and the indicator
    pool: RerandomiserPool = field(repr=False)

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> bytes:
        if not layout.size:
            return b""
        slots = packing(self.terms.plan, layout)
        count = slots.ciphertexts(layout.size)
        bound = max(self.terms.plan.law.bound(rate) for rate in set(layout.rates))
        blinder = Blinder(self.public, self.bit, slots, bound, count, stream, pool=self.pool)
        noise = blinder.blind(full_noise(self.terms.plan, layout, stream))
        masks = mask_residues(self.pair_keys(context + self.binding), self.me, count, self.public.n)
        return ciphertexts_to_bytes(self.public, blinder.contribution(values, noise, masks))
