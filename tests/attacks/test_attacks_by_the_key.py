"""A curator that makes its Paillier modulus with bad primes reads every party's noise, unless n is proven."""

from collections.abc import Sequence
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum, WrongProof
from crypto.masking import mask_residues, pair_key
from crypto.paillier import indicator
from crypto.paillier.indicator import BitProof, Indicator, check_indicator, prove_indicator
from crypto.paillier.modulus import check_modulus, prove_modulus
from crypto.paillier.packing import Packing
from crypto.paillier.public import PublicKey, encrypt, multiply, random_unit
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, laplace_bound
from tests.support.bad_modulus import BadModulus, bad_modulus
from tests.support.blinders import blinder_of

ALPHA = Fraction(1, 20)
BOUND = laplace_bound(ALPHA)
PACKING = Packing.fit(2048, 1000, 2 * BOUND)
CELLS = 32
BITS = (1, 1, 0)
CONTEXT = b"a plan, its run and its shares"
VALUES = np.random.default_rng(5).integers(0, 300, size=(3, CELLS))


@pytest.fixture(scope="module")
def bad() -> BadModulus:
    return bad_modulus(2048, 38)


def read_noise(bad: BadModulus, places: Sequence[mpz], contribution: mpz) -> tuple[int, NDArray[np.int64]]:
    """The place and the noise of one contribution, from its factor modulo Q, where no plaintext and no mask is."""
    found = []
    for place, encrypted_bit in enumerate(places):
        try:
            noise = PACKING.unpack([bad.read_power(encrypted_bit, contribution)], CELLS)
        except BrokenSum:
            continue
        found.append((int(np.abs(noise).max()), place, noise))
    _, place, noise = min(found, key=lambda one: one[0])
    return place, noise


def test_without_the_proof_a_bad_modulus_reads_the_noise_of_all(bad: BadModulus) -> None:
    stream = Stream.system()
    key = PublicKey.from_bytes(bad.key.to_bytes())  # every check of a key alone is passed
    shown = prove_indicator(key, BITS, stream, CONTEXT)
    check_indicator(key, shown, 2, CONTEXT)
    noise = discrete_laplace(ALPHA, VALUES.size, stream).reshape(VALUES.shape)
    sent = []
    for me, bit in enumerate(shown.ciphertexts):
        pairs = {peer: pair_key(bytes([min(me, peer), max(me, peer)]), b"step") for peer in range(3) if peer != me}
        blinder = blinder_of(key, bit, PACKING, BOUND, 1, stream)
        sent += blinder.contribution(VALUES[me], blinder.blind(noise[me]), mask_residues(pairs, me, 1, key.n))
    read = [read_noise(bad, shown.ciphertexts, contribution) for contribution in sent]
    assert [place for place, _ in read] == [0, 1, 2]
    assert np.array_equal([own for _, own in read], noise)
    total = PACKING.unpack([bad.decrypt(product) for product in multiply(key, [[one] for one in sent])], CELLS)
    kept = sum(own for place, own in read if BITS[place])
    assert np.array_equal(total - kept, VALUES.sum(axis=0))


def test_a_bad_modulus_is_refused(bad: BadModulus) -> None:
    asked: list[mpz] = []

    def roots(numbers: Sequence[mpz]) -> list[mpz]:
        asked.extend(numbers)
        return bad.roots(numbers)

    proof = prove_modulus(bad.key, CONTEXT, roots)
    assert [bad.has_root(number) for number in asked] == [False] * 8  # whoever took them
    with pytest.raises(WrongProof, match="free of bad factors"):
        check_modulus(bad.key, proof, CONTEXT)


def test_its_maker_takes_roots_where_there_are_any(bad: BadModulus) -> None:
    n = bad.key.n
    powers = [pow(mpz(number), n * n, n) for number in range(2, 10)]
    assert all(bad.has_root(power) for power in powers)
    assert [pow(root, n, n) for root in bad.roots(powers)] == powers


@pytest.mark.parametrize("context", [b"", b"another plan", CONTEXT + b"\0"])
def test_the_proof_of_one_run_does_not_serve_another(small_secret: SecretKey, context: bytes) -> None:
    proof = prove_modulus(small_secret.public, CONTEXT, small_secret.roots)
    check_modulus(small_secret.public, proof, CONTEXT)
    with pytest.raises(WrongProof):
        check_modulus(small_secret.public, proof, context)


class TestPlacesThatDifferModuloAFactor:
    """With a prime factor of 17 bits, long challenges are guessed modulo it: bits are then bits modulo each factor.

    The total modulo one factor keeps the noise of other parties than modulo the other: two releases for one price.
    """

    SMALL, LARGE = mpz(65537), gmpy2.next_prime(mpz(3) << 494)
    # Modulo the small factor the first and second noise are kept, modulo the large one the second and third.
    VALUES = (LARGE * gmpy2.invert(LARGE, SMALL), mpz(1), SMALL * gmpy2.invert(SMALL, LARGE))

    def forged(self, key: PublicKey, tries: int) -> Indicator:
        stream = Stream.keyed(b"forger")
        randomness = [random_unit(key, stream) for _ in self.VALUES]
        ciphertexts = [encrypt(key, value, r) for value, r in zip(self.VALUES, randomness, strict=True)]
        nonces = [[random_unit(key, stream) for _ in "01"] for _ in self.VALUES * indicator.REPETITIONS]
        commitments = [tuple(encrypt(key, 0, nonce) for nonce in pair) for pair in nonces]
        step = encrypt(key, 0, mpz(2))
        for _ in range(tries):
            challenges = indicator.challenges_of(key, CONTEXT, ciphertexts, commitments)
            if not any(challenge % self.SMALL for challenge in challenges):
                break
            nonces[0][0] = nonces[0][0] * 2 % key.n
            commitments[0] = (commitments[0][0] * step % key.n_squared, commitments[0][1])
        proofs = []
        for place, challenge in enumerate(challenges):
            bit, r = int(self.VALUES[place % 3] % self.LARGE), randomness[place % 3]
            nonces[place][bit] = nonces[place][bit] * gmpy2.powmod(r, challenge, key.n) % key.n
            proofs.append(BitProof(commitments[place], tuple(nonces[place]), 0 if bit else challenge))
        opening = randomness[0] * randomness[1] * randomness[2] % key.n
        return Indicator(tuple(ciphertexts), opening, tuple(proofs))

    def test_one_long_challenge_is_guessed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (("_CHALLENGES", 1 << 128), ("_CHALLENGE_BITS", 128), ("_CHALLENGE_BYTES", 16)):
            monkeypatch.setattr(indicator, name, value)
        monkeypatch.setattr(indicator, "REPETITIONS", 1)
        secret = SecretKey(self.SMALL, self.LARGE)
        check_modulus(secret.public, prove_modulus(secret.public, CONTEXT, secret.roots), CONTEXT)
        forged = self.forged(secret.public, 1 << 20)
        check_indicator(secret.public, forged, 2, CONTEXT)
        places = secret.decrypt(forged.ciphertexts)
        assert [place % self.SMALL for place in places] == [1, 1, 0]
        assert [place % self.LARGE for place in places] == [0, 1, 1]

    def test_eight_short_ones_are_not(self) -> None:
        key = SecretKey(self.SMALL, self.LARGE).public
        with pytest.raises(WrongProof, match="something other than zeros and ones"):
            check_indicator(key, self.forged(key, 10_000), 2, CONTEXT)
