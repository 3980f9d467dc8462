"""Laplace noise as numeric libraries draw it, in floating point, and the attack on its last bits (Mironov 2012).

It does not know any count: near a count, such noise leaves gaps that differ from count to count.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEP = 2.0**-53


def float_laplace(scale: float, count: int, generator: np.random.Generator) -> Floats:
    """The inverse distribution function at multiples of 2^-53."""
    return _noise_of(scale, generator.integers(1, 2**53, count) * _STEP)


def reachable(published: Floats, count: float, scale: float) -> NDArray[np.bool_]:
    """Whether some multiple of 2^-53 leads from `count` to what was published: only near ones can."""
    size = published - count
    centred = -np.sign(size) * np.expm1(-np.abs(size) / scale) / 2
    found = np.zeros(len(published), dtype=bool)
    nearest = np.round((centred + 0.5) / _STEP)
    for step in range(-8, 9):
        found |= count + _noise_of(scale, np.clip(nearest + step, 1, 2**53 - 1) * _STEP) == published
    return found


def _noise_of(scale: float, uniform: Floats) -> Floats:
    centred = uniform - 0.5
    noise: Floats = -scale * np.sign(centred) * np.log(1 - 2 * np.abs(centred))
    return noise
