"""Malformed keys, ciphertexts and indicators: plain phe and the naive check take them, ours refuse."""

from dataclasses import replace

import gmpy2
import phe.paillier
import pytest
from gmpy2 import mpz

from crypto.errors import MalformedCiphertext, MalformedKey, WrongProof
from crypto.paillier.indicator import Indicator, check_indicator, opens_to, prove_indicator
from crypto.paillier.public import PublicKey, check_ciphertexts, encrypt
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream

CONTEXT = b"a plan, its run and its shares"


@pytest.mark.parametrize("n", [15, 1 << 64, 101, 3**80], ids=["fifteen", "2^64", "prime", "power"])
def test_phe_encrypts_under_any_key_and_we_refuse(n: int) -> None:
    phe.paillier.PaillierPublicKey(n).raw_encrypt(3, r_value=2)
    data = n.to_bytes((n.bit_length() + 7) // 8, "big")
    with pytest.raises(MalformedKey):
        PublicKey.from_bytes(data)
    with pytest.raises(MalformedKey):
        PublicKey.from_bytes(data, smallest_bits=8)


def test_under_a_prime_key_everybody_decrypts(small_secret: SecretKey) -> None:
    n = gmpy2.next_prime(mpz(3) << 510)
    ciphertext = encrypt(PublicKey(n), 1234, mpz(99))
    opened = (gmpy2.powmod(ciphertext, n - 1, n * n) - 1) // n * gmpy2.invert(n - 1, n) % n
    assert opened == 1234
    with pytest.raises(MalformedKey, match="anybody could decrypt"):
        PublicKey.from_bytes(n.to_bytes(64, "big"), smallest_bits=512)


def test_phe_takes_ciphertexts_that_are_none_and_we_refuse(small_secret: SecretKey) -> None:
    key = small_secret.public
    reference = phe.paillier.PaillierPublicKey(int(key.n))
    for bad in (mpz(0), key.n, key.n_squared, key.n_squared + 1):
        phe.paillier.EncryptedNumber(reference, int(bad)) + reference.encrypt(1)
        with pytest.raises(MalformedCiphertext):
            check_ciphertexts(key, [bad])


@pytest.mark.parametrize(
    "values", [[0, 0, 0], [1, 1, 1], [2, 0, 0], [3, -1, 0], [1, 0, 0]], ids=lambda values: "".join(map(str, values))
)
def test_indicator_without_two_ones_is_refused(small_secret: SecretKey, values: list[int]) -> None:
    key = small_secret.public
    forged = prove_indicator(key, values, Stream.system(), CONTEXT)
    assert opens_to(key, forged.ciphertexts, forged.opening, 2) == (sum(values) == 2)
    with pytest.raises(WrongProof):
        check_indicator(key, forged, 2, CONTEXT)


def test_proofs_of_honest_bits_do_not_carry_over(small_secret: SecretKey) -> None:
    key, stream = small_secret.public, Stream.system()
    honest, forged = prove_indicator(key, [1, 1, 0], stream, CONTEXT), prove_indicator(key, [2, 0, 0], stream, CONTEXT)
    assert opens_to(key, forged.ciphertexts, forged.opening, 2)
    with pytest.raises(WrongProof, match="zeros and ones"):
        check_indicator(key, replace(forged, proofs=honest.proofs), 2, CONTEXT)


def test_indicator_of_the_size_of_n_is_refused(small_secret: SecretKey) -> None:
    # (1 + n)^n = 1: opening the product says nothing about multiples of n, so the bits must be proven one by one.
    key, stream = small_secret.public, Stream.system()
    half = (key.n + 1) // 2
    forged = prove_indicator(key, [int(half), int(key.n - half), 2], stream, CONTEXT)
    assert opens_to(key, forged.ciphertexts, forged.opening, 2)
    with pytest.raises(WrongProof, match="zeros and ones"):
        check_indicator(key, forged, 2, CONTEXT)


def test_ciphertext_in_bytes_with_a_factor_of_n_is_refused(small_secret: SecretKey) -> None:
    key = small_secret.public
    data = prove_indicator(key, [1, 0], Stream.system(), CONTEXT).to_bytes(key)
    with pytest.raises(MalformedCiphertext, match="ciphertext 1 shares a factor"):
        Indicator.from_bytes(key, data[:128] + key.n.to_bytes(128, "big") + data[256:], 2)
