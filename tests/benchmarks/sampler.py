"""Million draws a second on one core at epsilon 0.1, and of Gaussian noise: this package's samplers beside two others.

Run: python -m tests.benchmarks.sampler   (OpenDP's row needs the extra `bench`)
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from crypto.randomness import Stream
from crypto.sampling.gaussian import discrete_gaussian
from crypto.sampling.laplace import discrete_laplace, polya_share
from tests.benchmarks.ratio import Ratio, seconds

EPSILON = Fraction(1, 10)
DEVIATIONS = (10, 100, 1000, 100_000)  # of Gaussian noise
REPEATS = 5


def rejection(alpha: Fraction, size: int, stream: Stream) -> np.ndarray:
    """Canonne, Kamath and Steinke 2020, Algorithm 2, on arrays: exact; the number of rounds depends on the draws."""
    s, t = alpha.numerator, alpha.denominator
    found: list[np.ndarray] = []
    missing = size
    while missing > 0:
        u = _below(t, missing + missing // 2 + 16, stream)
        u = u[_exp_coin(u, t, stream)]
        v = np.zeros(u.size, dtype=np.int64)
        going = np.arange(u.size)
        while going.size:
            going = going[_exp_coin(np.ones(going.size, dtype=np.uint64), 1, stream)]
            v[going] += 1
        magnitude = (u.astype(np.int64) + t * v) // s
        negative = stream.words32(u.size) >> 31 == 1
        kept = ~(negative & (magnitude == 0))
        found.append(np.where(negative, -magnitude, magnitude)[kept])
        missing -= found[-1].size
    return np.concatenate(found)[:size]


def _exp_coin(u: np.ndarray, t: int, stream: Stream) -> np.ndarray:
    """True with probability exp(-u/t), 0 <= u <= t: the first k with a failing coin u/(t k) is odd."""
    result = np.zeros(u.size, dtype=bool)
    going, k = np.arange(u.size), 1
    while going.size:
        heads = _below(t * k, going.size, stream) < u[going]
        result[going[~heads]] = k % 2 == 1
        going, k = going[heads], k + 1
    return result


def _below(bound: int, size: int, stream: Stream) -> np.ndarray:
    """Uniform below the bound, without modulo bias."""
    words = stream.words64(size).copy()
    last = np.uint64(2**64 - 2**64 % bound - 1)
    while (outside := np.flatnonzero(words > last)).size:
        words[outside] = stream.words64(outside.size)
    return words % np.uint64(bound)


def opendp_sampler(alpha: Fraction, size: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    mechanism = dp.m.make_laplace(*space, scale=float(1 / alpha))
    zeros = [0] * size
    return lambda: mechanism(zeros)


def opendp_gaussian(deviation: int, size: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
    mechanism = dp.m.make_gaussian(*space, scale=float(deviation))
    zeros = [0] * size
    return lambda: mechanism(zeros)


def rate(draw: Callable[[], object], size: int) -> float:
    """Million draws per second of processor time, the best of some repeats."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        draw()
        best = min(best, time.process_time() - start)
    return size / best / 1e6


def rates(alpha: Fraction) -> dict[str, float]:
    stream, many, few = Stream.system(), 1 << 21, 1 << 16
    found = {
        "discrete_laplace": rate(lambda: discrete_laplace(alpha, many, stream), many),
        "polya_share, 3 shares": rate(lambda: polya_share(alpha, 3, many, stream), many),
        "rejection on arrays": rate(lambda: rejection(alpha, many, stream), many),
    }
    return found | _opendp(lambda: opendp_sampler(alpha, few), few)


def gaussian_rates(deviation: int) -> dict[str, float]:
    stream, many, few = Stream.system(), 1 << 21, 1 << 16
    variance = Fraction(deviation**2)
    found = {"discrete_gaussian": rate(lambda: discrete_gaussian(variance, many, stream), many)}
    return found | _opendp(lambda: opendp_gaussian(deviation, few), few)


def _opendp(prepared: Callable[[], Callable[[], object]], size: int) -> dict[str, float]:
    try:
        return {"OpenDP": rate(prepared(), size)}
    except ModuleNotFoundError:
        print("OpenDP is not installed: its row is left out (extra `bench`)")
        return {}


def ratios() -> Iterator[Ratio]:
    stream, size = Stream.system(), 1 << 20
    ours = seconds(lambda: discrete_laplace(EPSILON, size, stream))
    yield Ratio("noise drawn", "rejection on arrays", ours, seconds(lambda: rejection(EPSILON, size, stream)))


def _show(title: str, found: dict[str, float]) -> None:
    slowest = min(found.values())
    print(f"{title}: million draws/s, times the slowest")
    for name, speed in found.items():
        print(f"  {name:24}{speed:9.2f}{speed / slowest:9.0f}")


def main() -> None:
    for sensitivity in (1, 2):
        _show(f"epsilon {EPSILON}, sensitivity {sensitivity}", rates(EPSILON / sensitivity))
    for deviation in DEVIATIONS:
        _show(f"Gaussian, deviation {deviation}", gaussian_rates(deviation))


if __name__ == "__main__":
    main()
