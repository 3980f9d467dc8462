"""Powers for secret exponents: libcrypto and gmpy2 give the same, on one thread and on several."""

import _hashlib
import pickle
from concurrent.futures import ThreadPoolExecutor

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.errors import CryptoError
from crypto.paillier_secret import SecretKey
from crypto.secret_powers import LIBCRYPTO, SecretPower


def test_libcrypto_is_found_wherever_hashlib_is_linked_with_it() -> None:
    assert (LIBCRYPTO is not None) == hasattr(_hashlib, "__file__")


@settings(deadline=None)
@given(st.data())
def test_libcrypto_and_gmpy2_give_the_same_power(data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from((8, 64, 65, 513, 1536)))
    modulus = mpz(data.draw(st.integers(1 << (bits - 1), (1 << bits) - 1)) | 1)
    exponent = mpz(data.draw(st.integers(1, modulus)))
    number = mpz(data.draw(st.integers(0, modulus - 1)))
    expected = gmpy2.powmod(number, exponent, modulus)
    assert SecretPower(exponent, modulus)(number) == expected
    assert SecretPower(exponent, modulus, library=None)(number) == expected


@pytest.mark.parametrize("number", [0, 1, 2, (1 << 521) - 2])
@pytest.mark.parametrize("exponent", [1, 2, (1 << 521) - 2])
def test_the_ends_of_the_range_agree(number: int, exponent: int) -> None:
    modulus = mpz((1 << 521) - 1)
    found = {SecretPower(mpz(exponent), modulus, library)(mpz(number)) for library in (LIBCRYPTO, None)}
    assert found == {gmpy2.powmod(number, exponent, modulus)}


def test_a_key_decrypts_the_same_with_either(small_secret: SecretKey, monkeypatch: pytest.MonkeyPatch) -> None:
    key = small_secret.public
    sent = [(1 + key.n * plaintext) * gmpy2.powmod(7 + plaintext, key.n, key.n_squared) for plaintext in range(40)]
    monkeypatch.setattr(SecretPower.__init__, "__defaults__", (None,))
    without = SecretKey.from_bytes(small_secret.to_bytes())
    assert small_secret.decrypt(sent) == without.decrypt(sent) == list(range(40))
    assert small_secret.powers(sent) == without.powers(sent)
    assert small_secret.roots(sent) == without.roots(sent)


def test_threads_share_a_secret(small_secret: SecretKey) -> None:
    key = small_secret.public
    sent = [(1 + key.n * plaintext) % key.n_squared for plaintext in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda one: small_secret.decrypt([one]), sent)) == [[k] for k in range(200)]


def test_a_library_that_fails_is_an_error_and_not_a_number() -> None:
    class Failing:
        def __getattr__(self, name: str) -> object:
            return lambda *_: 0 if name == "BN_mod_exp_mont_consttime" else 1

    with pytest.raises(CryptoError, match="did not compute"):
        SecretPower(mpz(3), mpz(35), Failing())(mpz(2))


def test_a_secret_exponent_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(SecretPower(mpz(3), mpz(35)))
