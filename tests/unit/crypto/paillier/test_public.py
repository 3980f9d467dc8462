"""Keys and ciphertexts: what comes back from bytes, what is refused, and that decryption is phe's."""

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import gmpy2
import numpy as np
import phe.paillier
import phe.util
import pytest
from gmpy2 import mpz

from crypto.errors import BrokenSum, CryptoError, MalformedCiphertext, MalformedKey
from crypto.paillier.public import (
    DEFAULT_BITS,
    PublicKey,
    check_ciphertexts,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    encrypt,
    multiply,
    random_unit,
)
from crypto.paillier_secret import SecretKey, require_gmp
from crypto.randomness import Stream

BITS = 512
ROOT = Path(__file__).parents[4]


def factors(secret: SecretKey) -> tuple[mpz, mpz]:
    data = secret.to_bytes()
    return mpz.from_bytes(data[: len(data) // 2], "big"), mpz.from_bytes(data[len(data) // 2 :], "big")


def prime(bits: int) -> mpz:
    return gmpy2.next_prime(mpz(3) << (bits - 2))


BROKEN_KEYS = {
    "empty": (b"", "0 bits"),
    "fifteen": (b"\x0f", "must have 8"),
    "2^64": ((1 << 64).to_bytes(9, "big"), "must have 72"),
    "leading zero": (b"\x00" + b"\xff" * 64, "must have 520"),
    "too short": (b"\xff" * 63, "504 bits"),
    "too long": (b"\xff" * 1025, "8200 bits"),
    "even": (((mpz(1) << 511) + 2).to_bytes(64, "big"), "prime factor below"),
    "small factor": ((prime(496) * 65521).to_bytes(64, "big"), "prime factor below"),
    "prime": (prime(512).to_bytes(64, "big"), "is prime"),
    "square": ((prime(256) ** 2).to_bytes(64, "big"), "perfect power"),
    "cube": ((prime(171) ** 3).to_bytes(64, "big"), "perfect power"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN_KEYS.values(), ids=BROKEN_KEYS.keys())
def test_broken_key_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedKey, match=reason):
        PublicKey.from_bytes(data, smallest_bits=BITS)


def test_key_below_2048_bits_is_refused_outside_tests(small_secret: SecretKey) -> None:
    with pytest.raises(MalformedKey, match="2048 to 8192"):
        PublicKey.from_bytes(small_secret.public.to_bytes())


def test_key_whose_bits_are_no_bytes_is_refused() -> None:
    with pytest.raises(MalformedKey, match="multiple of 8"):
        PublicKey(prime(256) * prime(257)).validate(smallest_bits=BITS)


def test_key_round_trip(small_secret: SecretKey) -> None:
    key = PublicKey.from_bytes(small_secret.public.to_bytes(), smallest_bits=BITS)
    assert key == small_secret.public
    assert (key.bits, key.ciphertext_bytes, key.n_squared) == (BITS, 128, key.n**2)
    with pytest.raises(FrozenInstanceError):
        key.n = mpz(15)


def test_a_real_key_passes_with_the_default_rules() -> None:
    secret = SecretKey.generate(2048)
    key = PublicKey.from_bytes(secret.public.to_bytes())
    assert key.bits == 2048 < DEFAULT_BITS
    stream = Stream.system()
    assert secret.decrypt([encrypt(key, -7, random_unit(key, stream))]) == [-7]


def test_decryption_is_centred_and_agrees_with_phe(small_secret: SecretKey) -> None:
    key, stream = small_secret.public, Stream.system()
    largest = key.n // 2
    plaintexts = [mpz(0), mpz(1), mpz(-1), largest, -largest, mpz(2) ** 500]
    ciphertexts = [encrypt(key, m, random_unit(key, stream)) for m in plaintexts]
    assert small_secret.decrypt(ciphertexts) == plaintexts
    p, q = factors(small_secret)
    private = phe.paillier.PaillierPrivateKey(phe.paillier.PaillierPublicKey(int(key.n)), int(p), int(q))
    assert [private.raw_decrypt(int(c)) for c in ciphertexts] == [m % key.n for m in plaintexts]


def test_secret_round_trip_and_silence(small_secret: SecretKey) -> None:
    again = SecretKey.from_bytes(small_secret.to_bytes())
    assert again.public == small_secret.public
    assert repr(again) == str(again) == "SecretKey(512 bits)"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(again)


@pytest.mark.parametrize(
    ("p", "q"), [(7, 7), (15, 7), (7, 15), (3, 7)], ids=["equal", "composite p", "composite q", "p divides q - 1"]
)
def test_secret_that_is_no_key_is_refused(p: int, q: int) -> None:
    with pytest.raises(MalformedKey):
        SecretKey(mpz(p), mpz(q))


def test_secret_of_odd_length_is_refused() -> None:
    with pytest.raises(MalformedKey, match="3 bytes"):
        SecretKey.from_bytes(b"\x03\x05\x07")


def test_smallest_possible_secret_decrypts_everything() -> None:
    secret = SecretKey(mpz(5), mpz(7))  # n = 35, phi = 24
    for message in range(-17, 18):
        for r in (r for r in range(1, 35) if gmpy2.gcd(r, 35) == 1):
            assert secret.decrypt([encrypt(secret.public, message, mpz(r))]) == [message]


def test_ciphertext_round_trip(small_secret: SecretKey) -> None:
    key = small_secret.public
    ciphertexts = [mpz(1), key.n_squared - 1, key.n + 1]
    data = ciphertexts_to_bytes(key, ciphertexts)
    assert len(data) == 3 * 128
    assert ciphertexts_from_bytes(key, data, 3) == ciphertexts
    assert ciphertexts_from_bytes(key, b"", 0) == []


def test_broken_ciphertexts_are_refused_by_place(small_secret: SecretKey) -> None:
    key = small_secret.public
    p, q = factors(small_secret)
    outside = [mpz(0), key.n_squared, key.n_squared + 1, mpz(-1)]
    sharing = [key.n, p, 5 * q, (key.n - 1) * key.n]
    for ciphertext, reason in [(c, "outside") for c in outside] + [(c, "shares a factor") for c in sharing]:
        with pytest.raises(MalformedCiphertext, match=f"ciphertext 1 .*{reason}"):
            check_ciphertexts(key, [mpz(2), ciphertext, mpz(3)])


@pytest.mark.parametrize("length", [0, 127, 129, 256])
def test_ciphertexts_of_wrong_length_are_refused(small_secret: SecretKey, length: int) -> None:
    with pytest.raises(MalformedCiphertext, match="expected 128"):
        ciphertexts_from_bytes(small_secret.public, b"\x01" * length, 1)


@pytest.mark.parametrize("contributions", [[], [[mpz(1)], [mpz(1), mpz(1)]]], ids=["nobody", "unequal"])
def test_contributions_that_do_not_match_are_refused(small_secret: SecretKey, contributions: list[list[mpz]]) -> None:
    with pytest.raises(BrokenSum):
        multiply(small_secret.public, contributions)


def test_multiply_adds_by_place() -> None:
    assert multiply(PublicKey(mpz(15)), [[mpz(2), mpz(4)], [mpz(7), mpz(8)], [mpz(16), mpz(8)]]) == [224, 31]


def test_random_unit_skips_what_has_no_inverse() -> None:
    stream = Stream.keyed(b"units")
    assert {int(random_unit(PublicKey(mpz(15)), stream)) for _ in range(300)} == {1, 2, 4, 7, 8, 11, 13, 14}


def test_start_up_refuses_phe_without_gmpy2(monkeypatch: pytest.MonkeyPatch) -> None:
    require_gmp()
    monkeypatch.setattr(phe.util, "HAVE_GMP", False)
    with pytest.raises(CryptoError, match="without gmpy2"):
        require_gmp()


def test_importing_refuses_phe_without_gmpy2() -> None:
    script = "import phe.util; phe.util.HAVE_GMP = False; import crypto.paillier_secret"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "CryptoError: the package phe runs without gmpy2" in done.stderr


def test_only_one_module_decrypts() -> None:
    others = [path.stem for path in (ROOT / "crypto").glob("*.py") if path.stem not in ("__init__", "paillier_secret")]
    script = f"import importlib, sys; [importlib.import_module('crypto.' + m) for m in {others!r}]\n"
    script += "assert 'crypto.paillier_secret' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_functions_that_abort_the_interpreter_are_not_used() -> None:
    # gmpy2.powmod_base_list and powmod_exp_list abort on a base without inverse; one such ciphertext would do.
    for path in (ROOT / "crypto").glob("*.py"):
        assert "_list(" not in "".join(line for line in path.read_text().splitlines() if "gmpy2." in line)


def test_numpy_integers_wrap_beside_mpz_which_is_why_packing_goes_through_bytes() -> None:
    product = mpz(2) * np.int64(3)
    assert isinstance(product, np.int64)
