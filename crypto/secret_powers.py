"""Powers for secret exponents, in a time that tells nothing of them: by libcrypto, or by gmpy2 where it is not found.

It does not know what an exponent opens.

The libcrypto is the one that Python's own hashlib is linked with. Its powers are quicker than gmpy2's. They are
computed outside the interpreter's lock, so that several threads compute on several cores.
"""

import _hashlib
import ctypes
import weakref
from typing import Any

import gmpy2
from gmpy2 import mpz

from crypto.errors import CryptoError

_NUMBER = ctypes.c_void_p  # a BIGNUM or one of the structures that go with it
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "BN_new": (_NUMBER, []),
    "BN_bin2bn": (_NUMBER, [ctypes.c_char_p, ctypes.c_int, _NUMBER]),
    "BN_bn2binpad": (ctypes.c_int, [_NUMBER, ctypes.c_char_p, ctypes.c_int]),
    "BN_set_flags": (None, [_NUMBER, ctypes.c_int]),
    "BN_clear_free": (None, [_NUMBER]),
    "BN_CTX_new": (_NUMBER, []),
    "BN_CTX_free": (None, [_NUMBER]),
    "BN_MONT_CTX_new": (_NUMBER, []),
    "BN_MONT_CTX_set": (ctypes.c_int, [_NUMBER, _NUMBER, _NUMBER]),
    "BN_MONT_CTX_free": (None, [_NUMBER]),
    "BN_mod_exp_mont_consttime": (ctypes.c_int, [_NUMBER] * 6),
}
_CONSTANT_TIME = 4  # BN_FLG_CONSTTIME


def _libcrypto() -> Any:
    """Return libcrypto with the types of its functions, or None where Python is not linked with a shared one."""
    try:
        # A library's handle finds the functions of the libraries that it is linked with, too.
        library = ctypes.CDLL(_hashlib.__file__)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (AttributeError, OSError):
        return None
    return library


LIBCRYPTO = _libcrypto()


class SecretPower:
    """Callable that raises numbers below an odd modulus to one secret exponent, which is at least 1."""

    def __init__(self, exponent: mpz, modulus: mpz, library: Any = LIBCRYPTO) -> None:
        self._exponent, self._modulus, self._library = exponent, modulus, library
        if library is None:
            return
        self._bytes = (modulus.bit_length() + 7) // 8
        self._raised, self._below = self._number(exponent), self._number(modulus)
        library.BN_set_flags(self._raised, _CONSTANT_TIME)
        self._montgomery, context = _there(library.BN_MONT_CTX_new()), _there(library.BN_CTX_new())
        _there(library.BN_MONT_CTX_set(self._montgomery, self._below, context))
        library.BN_CTX_free(context)
        weakref.finalize(self, _forget, library, (self._raised, self._below), self._montgomery)

    def __call__(self, number: mpz) -> mpz:
        if self._library is None:
            return gmpy2.powmod_sec(number, self._exponent, self._modulus)
        library, result = self._library, ctypes.create_string_buffer(self._bytes)
        # Each call has numbers of its own, so that threads do not meet.
        context, base, power = _there(library.BN_CTX_new()), self._number(number), _there(library.BN_new())
        try:
            done = library.BN_mod_exp_mont_consttime(
                power, base, self._raised, self._below, context, self._montgomery
            ) and library.BN_bn2binpad(power, result, self._bytes)
        finally:
            for one in (base, power):
                library.BN_clear_free(one)
            library.BN_CTX_free(context)
        _there(done == self._bytes)
        return mpz.from_bytes(result.raw, "big")

    def _number(self, value: mpz) -> Any:
        data = bytes(value.to_bytes((value.bit_length() + 7) // 8, "big"))
        return _there(self._library.BN_bin2bn(data, len(data), None))

    def __reduce__(self) -> str:
        raise TypeError("a secret exponent cannot be copied or pickled")


def _there(found: Any) -> Any:
    if not found:
        raise CryptoError("libcrypto did not compute a power: the machine has no memory left")
    return found


def _forget(library: Any, numbers: tuple[Any, ...], montgomery: Any) -> None:
    for number in numbers:
        library.BN_clear_free(number)
    library.BN_MONT_CTX_free(montgomery)
