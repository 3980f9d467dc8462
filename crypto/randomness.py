"""Streams of random words, from the operating system or from a key: the only module that obtains entropy.

It does not know what the words are used for.

A stream is AES-256 in counter mode over zeros. `Stream.system()` takes the key from the operating system's
generator. `Stream.keyed()` derives the key from a shared secret (masks) or from a seed (tests, experiments).
"""

import secrets
import weakref
from os import register_at_fork
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

KEY_BYTES = 32
LARGEST_REQUEST = 2**31 - 64  # the most bytes that one call of the cipher accepts
_SMALL_REQUEST = 1 << 12
_BUFFER = 1 << 14


def derive_key(secret: bytes, label: bytes) -> bytes:
    """Derive 32 bytes that only holders of `secret` know and that differ for every label (HKDF-SHA256)."""
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=b"dp-subn v1 " + label).derive(secret)


class Stream:
    """Uniform random bytes in order; the same key gives the same bytes."""

    _cipher: CipherContext
    _buffer: bytes
    _position: int

    def __init__(self, key: bytes) -> None:
        self._rekey(key)

    @classmethod
    def system(cls) -> "Stream":
        """Open a fresh stream, keyed by the operating system's generator."""
        stream = cls(secrets.token_bytes(KEY_BYTES))
        _live_system_streams.add(stream)
        return stream

    @classmethod
    def keyed(cls, secret: bytes, label: bytes | str = b"") -> "Stream":
        """Open the stream of a shared secret or a seed. Never use it for noise that has to protect somebody."""
        return cls(derive_key(secret, label.encode() if isinstance(label, str) else label))

    def child(self, label: bytes | str) -> "Stream":
        """Open an independent stream for a part of the work; its key is taken from this stream."""
        stream = Stream.keyed(self.take(KEY_BYTES), label)
        if self in _live_system_streams:
            _live_system_streams.add(stream)
        return stream

    def take(self, count: int) -> bytes:
        if count > _SMALL_REQUEST:
            return self._cipher_bytes(count)
        if self._position + count > len(self._buffer):
            self._buffer = self._buffer[self._position :] + self._cipher_bytes(_BUFFER)
            self._position = 0
        start, self._position = self._position, self._position + count
        return self._buffer[start : self._position]

    def words32(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self.take(4 * count), dtype="<u4")

    def words64(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.take(8 * count), dtype="<u8")

    def bits(self, count: int) -> int:
        """Draw a uniform integer of `count` bits."""
        return int.from_bytes(self.take((count + 7) // 8), "little") >> (-count % 8)

    def below(self, bound: int) -> int:
        """Draw a uniform integer in [0, bound), without modulo bias."""
        if bound < 1:
            raise ValueError(f"the bound is {bound}, but must be at least 1")
        length = (bound - 1).bit_length()
        while (value := self.bits(length)) >= bound:
            pass
        return value

    def permutation(self, count: int) -> list[int]:
        """Draw a uniform permutation of range(count) (Fisher and Yates)."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _rekey(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._buffer = b""
        self._position = 0

    def _cipher_bytes(self, count: int) -> bytes:
        if count > LARGEST_REQUEST:
            return b"".join(
                self._cipher_bytes(min(LARGEST_REQUEST, count - done)) for done in range(0, count, LARGEST_REQUEST)
            )
        return self._cipher.update(bytes(count))


class UsedOnce(Protocol):
    """Holder of random values that a forked copy of the process must not use again."""

    def after_fork(self) -> None: ...


_live_system_streams: "weakref.WeakSet[Stream]" = weakref.WeakSet()
_used_once: "weakref.WeakSet[UsedOnce]" = weakref.WeakSet()


def on_fork(owner: UsedOnce) -> None:
    """Arrange that `owner.after_fork()` is called in every forked child, as long as `owner` lives."""
    _used_once.add(owner)


def _rekey_after_fork() -> None:
    # Fork safety: otherwise parent and child would draw the same noise and the same re-randomisers.
    for stream in list(_live_system_streams):
        stream._rekey(secrets.token_bytes(KEY_BYTES))
    for owner in list(_used_once):
        owner.after_fork()


register_at_fork(after_in_child=_rekey_after_fork)
