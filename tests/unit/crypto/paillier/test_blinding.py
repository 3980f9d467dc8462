"""A party's contribution: right plaintext, factors used once, forks and copies refused."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from crypto.errors import BrokenSum, NoiseOutOfReach, Reused
from crypto.paillier.blinding import BlindedNoise, Blinder, Rerandomisers
from crypto.paillier.packing import Packing
from crypto.paillier.public import encrypt, random_unit
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from tests.support.blinders import blinder_of

PACKING = Packing(512, 17)
BOUND = 2048


def make_blinder(secret: SecretKey, bit: int, bound: int = BOUND) -> Blinder:
    stream = Stream.system()
    return blinder_of(
        secret.public, encrypt(secret.public, bit, random_unit(secret.public, stream)), PACKING, bound, 5, stream
    )


@pytest.mark.parametrize("bit", [0, 1])
def test_contribution_holds_values_mask_and_selected_noise(small_secret: SecretKey, bit: int) -> None:
    n = small_secret.public.n
    rng = np.random.default_rng(3)
    values, noise = rng.integers(0, 50_000, 60), rng.integers(-BOUND, BOUND, 60)
    noise[:3] = [BOUND, -BOUND, 0]
    masks = [mpz(10) ** 100, n - 1, mpz(0)]
    blinder = make_blinder(small_secret, bit)
    sent = blinder.contribution(values, blinder.blind(noise), masks)
    opened = [(m - mask) % n for m, mask in zip(small_secret.decrypt(sent), masks, strict=True)]
    centred = [m - n if 2 * m > n else m for m in opened]
    assert PACKING.unpack(centred, 60).tolist() == (values + bit * noise).tolist()


def test_bound_need_not_be_a_power_of_two(small_secret: SecretKey) -> None:
    blinder = make_blinder(small_secret, 1, bound=5)
    sent = blinder.contribution(np.array([0, 0, 1]), blinder.blind(np.array([5, -5, 0])), [mpz(0)])
    assert PACKING.unpack(small_secret.decrypt(sent), 3).tolist() == [5, -5, 1]


@pytest.mark.parametrize("noise", [BOUND + 1, -BOUND - 1])
def test_noise_beyond_its_bound_is_refused(small_secret: SecretKey, noise: int) -> None:
    with pytest.raises(NoiseOutOfReach, match="2048"):
        make_blinder(small_secret, 1).blind(np.array([0, noise]))


def test_bound_that_does_not_fit_the_slots_is_refused(small_secret: SecretKey) -> None:
    with pytest.raises(NoiseOutOfReach, match="65536"):
        make_blinder(small_secret, 1, bound=1 << 16)


def test_lengths_must_match(small_secret: SecretKey) -> None:
    blinder = make_blinder(small_secret, 1)
    with pytest.raises(BrokenSum, match="2 plaintexts, 1 noises and 1 masks"):
        blinder.contribution(np.zeros(27, dtype=np.int64), blinder.blind(np.zeros(26, dtype=np.int64)), [mpz(0)])


def test_no_cells_no_ciphertexts(small_secret: SecretKey) -> None:
    blinder = make_blinder(small_secret, 1)
    nothing = np.zeros(0, dtype=np.int64)
    assert blinder.contribution(nothing, blinder.blind(nothing), []) == []


def test_noise_is_spent_once(small_secret: SecretKey) -> None:
    blinder = make_blinder(small_secret, 1)
    noise = blinder.blind(np.array([3]))
    blinder.contribution(np.array([1]), noise, [mpz(0)])
    with pytest.raises(Reused, match="spent"):
        blinder.contribution(np.array([2]), noise, [mpz(0)])


def test_noise_is_gone_in_a_forked_child() -> None:
    noise = BlindedNoise([mpz(4)])
    noise.after_fork()
    with pytest.raises(Reused):
        noise.spend()


def rerandomisers_of(secret: SecretKey, expected: int = 3) -> Rerandomisers:
    stream = Stream.system()
    bit = encrypt(secret.public, 1, random_unit(secret.public, stream))
    return Rerandomisers(secret.public, bit, stream, expected)


def test_every_factor_is_another(small_secret: SecretKey) -> None:
    found = rerandomisers_of(small_secret)
    assert len({*found.draw(3), *found.draw(3)}) == 6


def test_factors_encrypt_zero(small_secret: SecretKey) -> None:
    assert small_secret.decrypt(rerandomisers_of(small_secret).draw(5)) == [0] * 5


def test_the_same_tables_serve_sums_of_different_widths_for_one_bit(small_secret: SecretKey) -> None:
    found = rerandomisers_of(small_secret)
    for packing in (Packing(512, 9), Packing(512, 17)):
        blinder = Blinder(small_secret.public, packing, 5, 1, found)
        sent = blinder.contribution(np.array([2]), blinder.blind(np.array([-4])), [mpz(0)])
        assert packing.unpack(small_secret.decrypt(sent), 1).tolist() == [-2]


def test_exponents_of_factors_are_long_enough(small_secret: SecretKey) -> None:
    found = rerandomisers_of(small_secret)
    assert found.step * found.slots >= 512 + 128


def test_factor_is_the_power_that_its_digits_say(small_secret: SecretKey) -> None:
    key, stream = small_secret.public, Stream.keyed(b"drawn")
    bit = encrypt(key, 1, mpz(2))
    found = Rerandomisers(key, bit, Stream.keyed(b"drawn"), 3)
    words = stream.words64(found.slots).tolist()
    exponent = sum((word % (1 << found.step)) << (found.step * slot) for slot, word in enumerate(words))
    assert found.draw(1) == [gmpy2.powmod(bit, key.n * exponent, key.n_squared)]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(small_secret: SecretKey, duplicate: Callable[[object], object]) -> None:
    for owner in (rerandomisers_of(small_secret), BlindedNoise([mpz(1)])):
        with pytest.raises(Reused):
            duplicate(owner)


FORK = """
import os
from gmpy2 import mpz
from crypto.paillier.blinding import Rerandomisers
from crypto.paillier.public import encrypt
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
key = SecretKey.generate(256).public
stream = Stream.system().child("re-randomisers")
found = Rerandomisers(key, encrypt(key, 1, mpz(2)), stream, 4)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, str(found.draw(1)[0]).encode())
    os._exit(0)
os.wait()
assert int(os.read(read, 4096)) not in found.draw(6)
"""


def test_forked_child_shares_no_factor_with_its_parent() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, cwd=Path(__file__).parents[4])
