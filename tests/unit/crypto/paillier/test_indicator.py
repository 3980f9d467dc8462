"""The indicator: honest ones pass, each part of a proof matters, and the permutation is the parties'."""

from dataclasses import replace

import pytest
from gmpy2 import mpz

from crypto.errors import MalformedCiphertext, WrongProof
from crypto.paillier.indicator import (
    BitProof,
    Indicator,
    check_indicator,
    hidden_permutation,
    make_indicator,
    opens_to,
)
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream

CONTEXT = b"a plan, its run and its shares"


@pytest.mark.parametrize(("parties", "shares"), [(2, 1), (2, 2), (3, 1), (3, 2), (5, 2)])
def test_honest_indicator_passes(small_secret: SecretKey, parties: int, shares: int) -> None:
    key = small_secret.public
    indicator = make_indicator(key, parties, shares, Stream.system(), CONTEXT)
    received = Indicator.from_bytes(key, indicator.to_bytes(key), parties)
    assert received == indicator
    check_indicator(key, received, shares, CONTEXT)
    assert sorted(small_secret.decrypt(received.ciphertexts)) == [0] * (parties - shares) + [1] * shares


def test_places_are_all_used(small_secret: SecretKey) -> None:
    stream = Stream.keyed(b"places")
    made = [make_indicator(small_secret.public, 3, 1, stream, CONTEXT) for _ in range(40)]
    assert {small_secret.decrypt(indicator.ciphertexts).index(1) for indicator in made} == {0, 1, 2}


@pytest.mark.parametrize("shares", [0, 4, -1])
def test_impossible_shares_are_refused(small_secret: SecretKey, shares: int) -> None:
    with pytest.raises(ValueError, match="of 3 shares of noise"):
        make_indicator(small_secret.public, 3, shares, Stream.system(), CONTEXT)


def test_wrong_number_of_ones_is_refused(small_secret: SecretKey) -> None:
    key = small_secret.public
    with pytest.raises(WrongProof, match="exactly 1 shares"):
        check_indicator(key, make_indicator(key, 3, 2, Stream.system(), CONTEXT), 1, CONTEXT)


def test_every_part_of_a_proof_matters(small_secret: SecretKey) -> None:
    key = small_secret.public
    indicator = make_indicator(key, 3, 2, Stream.system(), CONTEXT)
    (zero, one), (left, right), part = (
        indicator.proofs[0].commitments,
        indicator.proofs[0].answers,
        indicator.proofs[0].challenge_for_zero,
    )
    damaged = [
        BitProof((zero * 2 % key.n_squared, one), (left, right), part),
        BitProof((zero, one * 2 % key.n_squared), (left, right), part),
        BitProof((zero, one), (left * 2 % key.n, right), part),
        BitProof((zero, one), (left, right * 2 % key.n), part),
        BitProof((zero, one), (left, right), part ^ 1),
        BitProof((one, zero), (right, left), part),
        indicator.proofs[1],
    ]
    for proof in damaged:
        with pytest.raises(WrongProof, match="zeros and ones"):
            check_indicator(key, replace(indicator, proofs=(proof, *indicator.proofs[1:])), 2, CONTEXT)


def test_swapped_ciphertexts_are_refused_though_their_product_is_the_same(small_secret: SecretKey) -> None:
    key = small_secret.public
    indicator = make_indicator(key, 3, 2, Stream.system(), CONTEXT)
    one, two, three = indicator.ciphertexts
    swapped = replace(indicator, ciphertexts=(two, one, three))
    assert opens_to(key, swapped.ciphertexts, swapped.opening, 2)
    with pytest.raises(WrongProof):
        check_indicator(key, swapped, 2, CONTEXT)


def test_a_proof_serves_no_other_plan_run_or_number_of_shares(small_secret: SecretKey) -> None:
    key = small_secret.public
    indicator = make_indicator(key, 3, 2, Stream.system(), CONTEXT)
    for other in (b"", CONTEXT[:-1], b"another run"):
        with pytest.raises(WrongProof, match="zeros and ones"):
            check_indicator(key, indicator, 2, other)


def test_numbers_out_of_range_are_refused(small_secret: SecretKey) -> None:
    key = small_secret.public
    good = make_indicator(key, 2, 1, Stream.system(), CONTEXT)
    for opening in (mpz(0), key.n, key.n + good.opening):
        with pytest.raises(WrongProof, match="no honest prover"):
            check_indicator(key, replace(good, opening=opening), 1, CONTEXT)
    with pytest.raises(MalformedCiphertext):
        check_indicator(key, replace(good, ciphertexts=(mpz(0), good.ciphertexts[1])), 1, CONTEXT)
    with pytest.raises(WrongProof, match="8 proofs per ciphertext"):
        check_indicator(key, replace(good, proofs=good.proofs[:1]), 1, CONTEXT)


def test_broken_bytes_are_refused(small_secret: SecretKey) -> None:
    key = small_secret.public
    data = make_indicator(key, 2, 1, Stream.system(), CONTEXT).to_bytes(key)
    for broken, parties in [(data[:-1], 2), (data + b"\0", 2), (data, 3), (b"", 2)]:
        with pytest.raises(MalformedCiphertext, match="parties has"):
            Indicator.from_bytes(key, broken, parties)
    with pytest.raises(MalformedCiphertext, match="ciphertext 0"):
        Indicator.from_bytes(key, bytes(128) + data[128:], 2)
    with pytest.raises(WrongProof, match="no honest prover"):
        Indicator.from_bytes(key, data[:256] + b"\xff" * 64 + data[320:], 2)


def test_digest_names_the_indicator(small_secret: SecretKey) -> None:
    key, stream = small_secret.public, Stream.system()
    one, other = (make_indicator(key, 2, 1, stream, CONTEXT) for _ in range(2))
    assert one.digest(key) == Indicator.from_bytes(key, one.to_bytes(key), 2).digest(key) != other.digest(key)


def test_hidden_permutation_follows_the_group_key() -> None:
    assert hidden_permutation(b"k" * 32, 6) == hidden_permutation(b"k" * 32, 6)
    assert sorted(hidden_permutation(b"k" * 32, 6)) == list(range(6))
    assert len({tuple(hidden_permutation(bytes([i]), 3)) for i in range(100)}) == 6
