"""Errors of the cryptography, as one small tree.

CryptoError
├── MalformedKey         a key from outside fails a check
├── MalformedCiphertext  a ciphertext from outside fails a check
├── WrongProof           an indicator vector is not what it claims to be
├── BrokenSum            contributions do not add up to a readable total
├── BrokenSeal           sealed bytes do not open, or a signature does not verify
├── NoiseOutOfReach      the noise asked for is too wide for this sampler
└── Reused               a value that may be used only once was about to be used again

It does not know who is at fault: `protocol.errors` adds that.
"""


class CryptoError(Exception):
    """Base of the tree."""


class MalformedKey(CryptoError):
    pass


class MalformedCiphertext(CryptoError):
    pass


class WrongProof(CryptoError):
    pass


class BrokenSum(CryptoError):
    pass


class BrokenSeal(CryptoError):
    pass


class NoiseOutOfReach(CryptoError):
    pass


class Reused(CryptoError):
    pass
