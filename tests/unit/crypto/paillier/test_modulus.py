"""The proof of the modulus, and what the factors of n are good for: roots and quick powers."""

import pytest
from gmpy2 import mpz

from crypto.errors import WrongProof
from crypto.paillier.modulus import ROOTS, check_modulus, prove_modulus
from crypto.paillier.public import encrypt, random_unit
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream


def test_an_honest_modulus_is_proven_in_eight_roots(small_secret: SecretKey) -> None:
    key = small_secret.public
    proof = prove_modulus(key, b"run", small_secret.roots)
    assert len(proof) == ROOTS * 64 == 512
    check_modulus(key, proof, b"run")


def test_every_root_matters(small_secret: SecretKey) -> None:
    key = small_secret.public
    proof = prove_modulus(key, b"run", small_secret.roots)
    for place in range(ROOTS):
        start = 64 * place
        changed = (mpz.from_bytes(proof[start : start + 64], "big") * 2 % key.n).to_bytes(64, "big")
        with pytest.raises(WrongProof, match="free of bad factors"):
            check_modulus(key, proof[:start] + changed + proof[start + 64 :], b"run")


@pytest.mark.parametrize("proof", [b"", bytes(512), b"\xff" * 512, bytes(511), bytes(513)])
def test_nonsense_is_refused(small_secret: SecretKey, proof: bytes) -> None:
    with pytest.raises(WrongProof):
        check_modulus(small_secret.public, proof, b"run")


def test_roots_and_powers_are_those_modulo_n(small_secret: SecretKey) -> None:
    key, stream = small_secret.public, Stream.system()
    for number in [mpz(1), key.n - 1, *(random_unit(key, stream) for _ in range(20))]:
        assert small_secret.powers([number]) == [encrypt(key, 0, number)]
        assert small_secret.roots([small_secret.powers([number])[0] % key.n]) == [number]
