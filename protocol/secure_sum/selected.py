"""Secure sums under Paillier: an encrypted indicator selects, unknown to everybody, the parties whose noise is kept.

It does not know what the cells count, and it cannot decrypt: the curator passes a function that does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gmpy2 import mpz

from crypto.errors import CryptoError
from crypto.masking import mask_residues
from crypto.paillier.blinding import Blinder, Rerandomisers
from crypto.paillier.indicator import Indicator, check_indicator, hidden_permutation
from crypto.paillier.modulus import check_modulus
from crypto.paillier.public import PublicKey, ciphertexts_from_bytes, ciphertexts_to_bytes, multiply
from crypto.randomness import Stream, derive_key
from protocol.errors import CURATOR, FailedCheck
from protocol.exact import canonical_json
from protocol.messages.tasks import Keys
from protocol.plan.plan import Plan
from protocol.privacy.layout import Layout, Vector, joined
from protocol.privacy.noise_modes import NoiseMode, Selected
from protocol.secure_sum.keys import PairKeys, group_key
from protocol.secure_sum.sums import Contributed, tags_of

# Of a whole run, roughly: sets the size of the re-randomisers' tables. With few the tables are dear, and with many they
# pay: a run of Adult has 20, and for 200 tables of this size are as good as larger ones.
_EXPECTED_CIPHERTEXTS = 64


def proven_for(plan: Plan) -> bytes:
    """Name plan, run and shares of noise, for which the curator proves its key and its indicator."""
    return canonical_json([plan.hash(), plan.run, plan.noise_shares])


def selected_sums(pairs: PairKeys, share: bytes, keys: Keys, stream: Stream) -> "SelectedSums":
    """Check the keys that the curator sent before the first sum, and find this party's place in the indicator."""
    plan, me = pairs.terms.plan, pairs.me
    try:
        public = PublicKey.from_bytes(keys.public_key, smallest_bits=plan.key_bits)
        indicator = Indicator.from_bytes(public, keys.indicator, plan.parties)
        context = proven_for(plan)
        check_modulus(public, keys.modulus_proof, context)
        check_indicator(public, indicator, plan.noise_shares, context)
    except CryptoError as error:
        raise FailedCheck(CURATOR, f"sent keys that this party does not accept: {error}") from error
    if public.bits != plan.key_bits:
        raise FailedCheck(CURATOR, f"sent a key of {public.bits} bits, expected the plan's {plan.key_bits}")
    shared = group_key(pairs.terms, me, pairs.identity, share, keys)
    places = hidden_permutation(shared, plan.parties)
    bit = indicator.ciphertexts[places[me]]
    # Privacy: parties that were sent different indicators would keep too little noise together. So would parties
    # that were sent forged shares of the group key (seals do not authenticate their sender) and therefore stand at
    # different places. Their masks depend on the group key and the indicator, so that such a sum does not cancel.
    binding = derive_key(shared, b"masks " + indicator.digest(public))
    rerandomisers = Rerandomisers(public, bit, stream.child("re-randomisers"), _EXPECTED_CIPHERTEXTS)
    mode = plan.noise_mode
    assert isinstance(mode, Selected)
    return SelectedSums(mode, pairs, me, public, binding, rerandomisers)


@dataclass(frozen=True)
class SelectedSums:
    """The party's half in noise mode `selected`: packed Paillier, masks modulo n, noise kept if the hidden bit is 1."""

    mode: Selected
    pair_keys: PairKeys
    me: int
    public: PublicKey = field(repr=False)
    binding: bytes = field(repr=False)  # binds the masks to the group key and the indicator
    rerandomisers: Rerandomisers = field(repr=False)  # of this party's encrypted bit

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> Contributed:
        keys = self.pair_keys(context + self.binding)
        if not layout.size:
            return Contributed(b"", tags_of(keys))
        slots = self.mode.packing(layout)
        count = slots.ciphertexts(layout.size)
        bound = max(self.mode.definition.bound(rate) for rate in set(layout.rates))
        blinder = Blinder(self.public, slots, bound, count, self.rerandomisers)
        noise = blinder.blind(self.mode.own_noise(layout, stream))
        masks = mask_residues(keys, self.me, count, self.public.n)
        return Contributed(ciphertexts_to_bytes(self.public, blinder.contribution(values, noise, masks)), tags_of(keys))


@dataclass(frozen=True)
class SelectedOpening:
    """The curator's half in noise mode `selected`; only the curator can `decrypt`."""

    mode: NoiseMode
    public: PublicKey
    decrypt: Callable[[Sequence[mpz]], list[mpz]]

    def contribution_bytes(self, layout: Layout) -> int:
        return self.mode.ciphertexts(layout) * self.public.ciphertext_bytes

    def check(self, layout: Layout, blob: bytes) -> None:
        ciphertexts_from_bytes(self.public, blob, self.mode.ciphertexts(layout))

    def add(self, total: bytes, blob: bytes) -> bytes:
        count = len(blob) // self.public.ciphertext_bytes
        both = [ciphertexts_from_bytes(self.public, one, count) for one in (total, blob)]
        return ciphertexts_to_bytes(self.public, multiply(self.public, both))

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector:
        count = self.mode.ciphertexts(layout)
        if not count:
            return joined(())
        assert isinstance(self.mode, Selected)
        contributions = [ciphertexts_from_bytes(self.public, blob, count) for blob in blobs]
        return self.mode.packing(layout).unpack(self.decrypt(multiply(self.public, contributions)), layout.size)
