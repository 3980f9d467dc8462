"""Attacks on the secure sum: each breaks the naive variant written here, and fails against ours."""

from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum, Reused
from crypto.masking import mask_residues, pair_key
from crypto.paillier.blinding import Rerandomisers
from crypto.paillier.indicator import make_indicator
from crypto.paillier.packing import Packing
from crypto.paillier.public import encrypt, multiply, random_unit
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, laplace_bound
from tests.support.blinders import blinder_of

ALPHA = Fraction(1, 20)
CONTEXT = b"a plan, its run and its shares"
BOUND = laplace_bound(ALPHA)
PACKING = Packing.fit(512, 1000, 2 * BOUND)
CELLS = 60
COUNT = PACKING.ciphertexts(CELLS)


def residue_mod(number: mpz, prime: mpz) -> int:
    return int(gmpy2.legendre(number % prime, prime))


def factors(secret: SecretKey) -> tuple[mpz, mpz]:
    data = secret.to_bytes()
    return mpz.from_bytes(data[: len(data) // 2], "big"), mpz.from_bytes(data[len(data) // 2 :], "big")


def contributions(
    secret: SecretKey, values: NDArray[np.int64], masks: list[list[mpz]], bits: list[int]
) -> tuple[list[list[mpz]], NDArray[np.int64]]:
    """What the parties send, one row of `values` each, and the noise of each."""
    key, stream = secret.public, Stream.system()
    sent, noise = [], discrete_laplace(ALPHA, values.size, stream).reshape(values.shape)
    for row, eta, mask, bit in zip(values, noise, masks, bits, strict=True):
        blinder = blinder_of(key, encrypt(key, bit, random_unit(key, stream)), PACKING, BOUND, COUNT, stream)
        sent.append(blinder.contribution(row, blinder.blind(eta), mask))
    return sent, noise


def masks_for(secret: SecretKey, contexts: list[bytes]) -> list[list[mpz]]:
    """Masks of as many parties as there are contexts, each deriving its own from the context that it saw."""
    parties, n = len(contexts), secret.public.n
    return [
        mask_residues(
            {
                peer: pair_key(bytes([min(me, peer), max(me, peer)]), contexts[me])
                for peer in range(parties)
                if peer != me
            },
            me,
            COUNT,
            n,
        )
        for me in range(parties)
    ]


VALUES = np.random.default_rng(5).integers(0, 300, size=(3, CELLS))


class TestCuratorDecryptsSingleContributions:
    def test_without_masks_it_reads_a_party_whose_noise_is_not_kept(self, small_secret: SecretKey) -> None:
        sent, _ = contributions(small_secret, VALUES, [[mpz(0)] * COUNT] * 3, [1, 1, 0])
        assert np.array_equal(PACKING.unpack(small_secret.decrypt(sent[2]), CELLS), VALUES[2])

    def test_with_masks_it_reads_nothing_but_the_total(self, small_secret: SecretKey) -> None:
        sent, noise = contributions(small_secret, VALUES, masks_for(small_secret, [b"same"] * 3), [1, 1, 0])
        for single in sent:
            with pytest.raises(BrokenSum):
                PACKING.unpack(small_secret.decrypt(single), CELLS)
        total = PACKING.unpack(small_secret.decrypt(multiply(small_secret.public, sent)), CELLS)
        assert np.array_equal(total, VALUES.sum(axis=0) + noise[0] + noise[1])

    def test_without_one_party_the_others_remain_masked(self, small_secret: SecretKey) -> None:
        sent, _ = contributions(small_secret, VALUES, masks_for(small_secret, [b"same"] * 3), [1, 1, 0])
        with pytest.raises(BrokenSum):
            PACKING.unpack(small_secret.decrypt(multiply(small_secret.public, sent[:2])), CELLS)

    def test_every_data_set_explains_a_masked_plaintext(self, small_secret: SecretKey) -> None:
        # The mask is uniform modulo n: for other values some mask gives the same plaintext, so it says nothing.
        n = small_secret.public.n
        mask, packed = masks_for(small_secret, [b"same"] * 3)[0][0], [PACKING.pack(row)[0] for row in VALUES]
        others = [(packed[0] + mask - other) % n for other in packed]
        assert [(other + m) % n for other, m in zip(packed, others, strict=True)] == [(packed[0] + mask) % n] * 3


class TestCuratorShowsPartiesDifferentIndicators:
    def test_masks_that_ignore_the_indicator_cancel_all_the_same(self, small_secret: SecretKey) -> None:
        # Parties that were each told "you are not chosen" answer without noise, and the total is exact.
        sent, _ = contributions(small_secret, VALUES, masks_for(small_secret, [b"run 1"] * 3), [0, 0, 0])
        total = PACKING.unpack(small_secret.decrypt(multiply(small_secret.public, sent)), CELLS)
        assert np.array_equal(total, VALUES.sum(axis=0))

    def test_masks_bound_to_the_indicator_do_not_cancel(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        seen = [make_indicator(key, 3, 1, stream, CONTEXT).digest(key) for _ in range(3)]
        sent, _ = contributions(small_secret, VALUES, masks_for(small_secret, seen), [0, 0, 0])
        with pytest.raises(BrokenSum):
            PACKING.unpack(small_secret.decrypt(multiply(key, sent)), CELLS)


class TestBarePowerOfTheEncryptedBit:
    """Enc(u)^eta without fresh randomness: who knows all Enc(u) looks the power up."""

    @staticmethod
    def look_up(secret: SecretKey, bits: list[mpz], sent: list[mpz]) -> list[tuple[int, int] | None]:
        modulus, table = secret.public.n_squared, {}
        for place, bit in enumerate(bits):
            inverse, up, down = gmpy2.invert(bit, modulus), mpz(1), mpz(1)
            for eta in range(BOUND + 1):
                table[up], table[down] = (place, eta), (place, -eta)
                up, down = up * bit % modulus, down * inverse % modulus
        return [table.get(ciphertext) for ciphertext in sent]

    def test_curator_finds_place_and_noise(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        bits = [encrypt(key, bit, random_unit(key, stream)) for bit in (0, 1, 0)]
        noise = [int(eta) for eta in discrete_laplace(ALPHA, 20, stream) if eta]
        sent = [gmpy2.powmod(bits[1], eta, key.n_squared) for eta in noise]
        assert self.look_up(small_secret, bits, sent) == [(1, eta) for eta in noise]

    def test_curator_finds_nothing_behind_a_fresh_factor(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        bits = [encrypt(key, bit, random_unit(key, stream)) for bit in (0, 1, 0)]
        packing = Packing(125, 60)  # one value per ciphertext
        blinder = blinder_of(key, bits[1], packing, BOUND, 20, stream)
        noise = discrete_laplace(ALPHA, 20, stream)
        zeros = np.zeros(20, dtype=np.int64)
        sent = blinder.contribution(zeros, blinder.blind(noise), [mpz(0)] * 20)
        assert small_secret.decrypt(sent) == noise.tolist()
        assert self.look_up(small_secret, bits, sent) == [None] * 20


class TestLegendreSymbolsOfTheRandomness:
    """The curator knows p. If fresh randomness comes from a base of its own, parities of the noise shine through."""

    SENT = 400
    # For a fair coin, 400 throws leave 130 .. 270 heads with probability above 1 - 1e-11.
    CHANCE = range(130, 271)

    def odd_one(self, secret: SecretKey) -> mpz:
        """Enc(1) whose randomness is no square modulo p, as for half of all ciphertexts."""
        key, stream, (p, _) = secret.public, Stream.system(), factors(secret)
        while residue_mod(bit := encrypt(key, 1, random_unit(key, stream)), p) == 1:
            pass
        return bit

    def guesses(self, secret: SecretKey, sent: list[mpz], noise: NDArray[np.int64]) -> int:
        """How often the symbol of a ciphertext tells the parity of its noise. Modulo p no plaintext is in the way."""
        p, _ = factors(secret)
        parities = [int(residue_mod(ciphertext, p) == -1) for ciphertext in sent]
        return sum(int(parity == eta % 2) for parity, eta in zip(parities, noise.tolist(), strict=True))

    def test_a_base_of_its_own_shows_the_parity(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        bit, noise = self.odd_one(small_secret), discrete_laplace(ALPHA, self.SENT, stream)
        base = encrypt(key, 0, random_unit(key, stream) ** 2)  # a square modulo p: so is every second base
        bound = int(key.n) << 128
        sent = [
            gmpy2.powmod(bit, eta, key.n_squared) * gmpy2.powmod(base, stream.below(bound), key.n_squared)
            for eta in noise.tolist()
        ]
        assert self.guesses(small_secret, sent, noise) == self.SENT

    def test_our_base_shows_nothing(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        bit, noise = self.odd_one(small_secret), discrete_laplace(ALPHA, self.SENT, stream)
        blinder = blinder_of(key, bit, Packing(125, 60), BOUND, self.SENT, stream)
        sent = blinder.blind(noise).spend()
        assert self.guesses(small_secret, sent, noise) in self.CHANCE


class TestRerandomiserUsedTwice:
    @staticmethod
    def difference(secret: SecretKey, one: mpz, other: mpz) -> mpz | None:
        """What anybody reads from two ciphertexts with the same randomness: (1 + n)^(m - m')."""
        key = secret.public
        quotient = one * gmpy2.invert(other, key.n_squared) % key.n_squared
        return (quotient - 1) // key.n if quotient % key.n == 1 else None

    def test_the_difference_of_the_plaintexts_is_public(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        randomness = random_unit(key, stream)
        assert self.difference(small_secret, *(encrypt(key, m, randomness) for m in (812, 800))) == 12

    def test_every_factor_is_drawn_once(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        found = Rerandomisers(key, encrypt(key, 1, random_unit(key, stream)), stream, 50)
        sent = [(1 + key.n * m) * rho % key.n_squared for m, rho in enumerate(found.draw(20) + found.draw(30))]
        assert {self.difference(small_secret, one, other) for one in sent for other in sent if one != other} == {None}

    def test_blinded_noise_refuses_other_values(self, small_secret: SecretKey) -> None:
        key, stream = small_secret.public, Stream.system()
        blinder = blinder_of(key, encrypt(key, 1, random_unit(key, stream)), PACKING, BOUND, 1, stream)
        noise = blinder.blind(np.array([3]))
        blinder.contribution(np.array([812]), noise, [mpz(0)])
        with pytest.raises(Reused):
            blinder.contribution(np.array([800]), noise, [mpz(0)])


class TestSlotOverflow:
    def test_a_width_for_the_parts_wraps_into_the_neighbour(self) -> None:
        narrow = Packing.fit(512, 100, 0)  # made for 100, but three times 100 is summed
        total = sum(narrow.pack(np.array([100, 0]))[0] for _ in range(3))
        assert narrow.unpack([total], 2).tolist() == [300 - 256, 1]

    def test_the_width_for_the_total_holds_it(self) -> None:
        wide = Packing.fit(512, 300, 0)
        total = sum(wide.pack(np.array([100, 0]))[0] for _ in range(3))
        assert wide.unpack([total], 2).tolist() == [300, 0]
