"""Keys that many tests share: small ones, which the product refuses, because big ones are slow to draw."""

import pytest

from crypto.paillier_secret import SecretKey

SMALL_BITS = 512


@pytest.fixture(scope="session")
def small_secret() -> SecretKey:
    return SecretKey.generate(SMALL_BITS)
