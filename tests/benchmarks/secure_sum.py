"""Secure sum of 20,000 cells with hidden selection: what the paper's way costs and what ours costs.

Key generation is left out everywhere. The paper's way is measured on a sample of cells and scaled. Everything is
measured in turn, several times over, in processor seconds; the least of each counts, for both sides alike.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from phe.paillier import EncryptedNumber, PaillierPrivateKey, PaillierPublicKey

from crypto.masking import mask_residues, pair_key
from crypto.paillier.indicator import Indicator, check_indicator, hidden_permutation, make_indicator
from crypto.paillier.modulus import check_modulus, prove_modulus
from crypto.paillier.packing import Packing
from crypto.paillier.public import PublicKey, ciphertexts_from_bytes, ciphertexts_to_bytes, multiply
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, laplace_bound
from tests.benchmarks.ratio import Ratio
from tests.support.blinders import blinder_of

CELLS = 20_000
TOTAL_BOUND = 45_222
ALPHA = Fraction(1, 20)  # epsilon 0.1, sensitivity 2
SHARES = 2
CONTEXT = b"a plan, its run and its shares"
ROUNDS = 3
SAMPLE = {2048: 24, 3072: 12}  # cells per round


@dataclass
class Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def _data(parties: int, cells: int, stream: Stream) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    counts = np.random.default_rng(1).multinomial(TOTAL_BOUND, np.full(cells, 1 / cells)).astype(np.int64)
    values = [counts // parties] * parties
    return values, [discrete_laplace(ALPHA, cells, stream) for _ in range(parties)]


def _phe_seconds(secret: SecretKey, parties: int, units: int, read: Callable[[int, int], tuple[int, int]]) -> float:
    """Enc(u)^noise * Enc(value) by every party, product and decryption, on phe objects."""
    public = PaillierPublicKey(int(secret.public.n))
    factors = secret.to_bytes()
    half = len(factors) // 2
    private = PaillierPrivateKey(public, int.from_bytes(factors[:half]), int.from_bytes(factors[half:]))
    bits = [public.encrypt(int(party < SHARES)) for party in range(parties)]
    start = time.process_time()
    for unit in range(units):
        total: EncryptedNumber | int = 0
        for party in range(parties):
            value, noise = read(party, unit)
            total = total + (bits[party] * noise + public.encrypt(value))
        private.decrypt(total)
    return time.process_time() - start


def naive_seconds(secret: SecretKey, parties: int) -> float:
    sample = SAMPLE[secret.public.bits]
    values, noises = _data(parties, CELLS, Stream.system())
    seconds = _phe_seconds(secret, parties, sample, lambda k, j: (int(values[k][j]), int(noises[k][j])))
    return seconds * CELLS / sample


def packed_phe_seconds(secret: SecretKey, parties: int) -> float:
    packing = _packing(secret.public.bits)
    sample = SAMPLE[secret.public.bits] // 4
    cells = sample * packing.slots
    values, noises = _data(parties, cells, Stream.system())
    packed = [[[int(p) for p in packing.pack(v)] for v in source] for source in (values, noises)]
    seconds = _phe_seconds(secret, parties, sample, lambda k, j: (packed[0][k][j], packed[1][k][j]))
    return seconds * CELLS / cells


def _packing(bits: int) -> Packing:
    return Packing.fit(bits, TOTAL_BOUND, SHARES * laplace_bound(ALPHA))


def fast_seconds(secret: SecretKey, parties: int, cells: int = CELLS) -> tuple[dict[str, float], int]:
    """Seconds of every part, all roles one after the other, and the bytes that one party sends."""
    key, stream, clock = secret.public, Stream.system(), Clock()
    packing, bound = _packing(key.bits), laplace_bound(ALPHA)
    count = packing.ciphertexts(cells)
    values, _ = _data(parties, cells, stream)
    pairs = _pair_keys(parties, stream)
    with clock.of("curator: indicator"):
        sent = make_indicator(key, parties, SHARES, stream, CONTEXT).to_bytes(key)
    with clock.of("curator: proof of the modulus"):
        proof = prove_modulus(key, CONTEXT, secret.roots)
    places = hidden_permutation(stream.take(32), parties)
    received, noises = [], []
    for party in range(parties):
        with clock.of("party: check key and indicator"):
            public = PublicKey.from_bytes(key.to_bytes())
            check_modulus(public, proof, CONTEXT)
            indicator = Indicator.from_bytes(public, sent, parties)
            check_indicator(public, indicator, SHARES, CONTEXT)
        with clock.of("party: tables"):
            blinder = blinder_of(public, indicator.ciphertexts[places[party]], packing, bound, count, stream)
        with clock.of("party: noise"):
            noise = discrete_laplace(ALPHA, cells, stream)
            blinded = blinder.blind(noise)
        noises.append(noise)
        with clock.of("party: masks and values"):
            masks = mask_residues(pairs[party], party, count, key.n)
            data = ciphertexts_to_bytes(key, blinder.contribution(values[party], blinded, masks))
        received.append(data)
    with clock.of("curator: check and multiply"):
        product = multiply(key, [ciphertexts_from_bytes(key, data, count) for data in received])
    with clock.of("curator: decrypt and unpack"):
        total = packing.unpack(secret.decrypt(product), cells)
    bits = secret.decrypt(indicator.ciphertexts[place] for place in places)
    kept = [noise for noise, bit in zip(noises, bits, strict=True) if bit]
    if len(kept) != SHARES or not np.array_equal(total, sum(values) + sum(kept)):
        raise AssertionError("the fast path does not give the sum")
    return clock.seconds, len(data)


def _pair_keys(parties: int, stream: Stream) -> list[dict[int, bytes]]:
    keys: list[dict[int, bytes]] = [{} for _ in range(parties)]
    for one in range(parties):
        for other in range(one + 1, parties):
            keys[one][other] = keys[other][one] = pair_key(stream.take(32), b"run 1, step 1")
    return keys


PREPARED = ("curator: indicator", "party: check key and indicator", "party: tables", "party: re-randomisers")


def report(bits: int, parties: int, secret: SecretKey) -> None:
    naive, packed, everything, online, ready = [float("inf")] * 5
    for _ in range(ROUNDS):
        naive, packed = min(naive, naive_seconds(secret, parties)), min(packed, packed_phe_seconds(secret, parties))
        fresh, size = fast_seconds(secret, parties)
        if sum(fresh.values()) < everything:
            parts, everything = fresh, sum(fresh.values())
        fresh_online = sum(seconds for name, seconds in fresh.items() if name not in PREPARED)
        online, ready = min(online, fresh_online), min(ready, fresh_online - fresh["party: noise"])
    print(f"\n{bits} bits, {parties} parties, {_packing(bits).slot_bits}-bit slots, {size / CELLS:.2f} bytes per cell")
    rows = [
        (f"naive phe per cell ({SAMPLE[bits]} cells measured {ROUNDS} times)", naive),
        (f"packed phe objects ({SAMPLE[bits] // 4} plaintexts measured {ROUNDS} times)", packed),
        ("fast path, all roles, nothing prepared", everything),
        ("fast path online: tables and re-randomisers ready", online),
        ("fast path online: blinded noise ready as well", ready),
    ]
    for name, seconds in rows:
        print(f"  {name:<58} {seconds:9.2f} s {CELLS / seconds:10,.0f} cells/s {naive / seconds:7,.0f} x")
    for name, seconds in parts.items():
        print(f"      {name:<54} {seconds:9.3f} s")


def ratios() -> Iterator[Ratio]:
    secret, parties = SecretKey.generate(2048), 3
    ours, naive = sum(fast_seconds(secret, parties)[0].values()), naive_seconds(secret, parties)
    yield Ratio(f"secure sum of {CELLS:,} cells", f"phe, a ciphertext per cell ({SAMPLE[2048]} measured)", ours, naive)


def main() -> None:
    print(f"Secure sum of {CELLS:,} cells, {SHARES} shares of noise kept, all roles in sequence on one core")
    for bits in (2048, 3072):
        secret = SecretKey.generate(bits)
        for parties in (3, 10):
            report(bits, parties, secret)


if __name__ == "__main__":
    sys.exit(main())
