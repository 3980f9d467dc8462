"""How cost grows with rows n, attributes d, parties K and the cells of a secure sum: points, slopes, a figure.

A slope is the exponent of the power that fits best, on logarithmic axes. It tells of a change for the worse that a
ratio of one size does not show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from crypto.paillier_secret import SecretKey
from curator.experiments.simulate import ExperimentSettings, prepare, stream_of_seed
from curator.experiments.simulation import simulate
from protocol.run.synthesis import synthetic_codes
from tests.benchmarks.made_tables import wide_table
from tests.benchmarks.ratio import seconds
from tests.benchmarks.secure_sum import fast_seconds

FEWEST = 10_000  # rows


@dataclass(frozen=True)
class Curve:
    """Seconds of a processor by the size of one quantity."""

    name: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def slope(self) -> float:
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


def run(attributes: int, codes: int, rows: int, parties: int, real_crypto: bool) -> None:
    """Plan, run and draw, from coded rows to coded rows. Every attribute has up to `codes` categories.

    Noise is as large beside the rows whatever their number, so that a run of more rows does not count more pairs.
    """
    stream, table, epsilon = stream_of_seed(1), wide_table(attributes, codes, rows), f"{FEWEST}/{rows}"
    noise = "distributed" if real_crypto else "local"
    settings = ExperimentSettings(epsilon, parties, "recommended", "sound", "random", {"noise": noise})
    own, terms, identities = prepare(settings, table, stream)
    found = simulate(terms, own, identities, stream, real_crypto)
    for _ in synthetic_codes(terms, found.state.knowledge, terms.plan.rows, stream.child("rows")):
        pass


@cache
def _secret() -> SecretKey:
    return SecretKey.generate(2048)


# What grows, its sizes, and the run of such a size. Only more parties make more cryptography, so only theirs is real.
CURVES: Mapping[str, tuple[tuple[int, ...], Callable[[int], object]]] = {
    "rows n": ((10_000, 100_000, 1_000_000), lambda n: run(15, 16, n, 3, False)),
    "attributes d": ((10, 20, 40), lambda d: run(d, 2, FEWEST, 3, False)),
    "parties K": ((3, 6, 12), lambda k: run(10, 2, FEWEST, k, True)),
    "cells of a sum": ((2_000, 6_000, 18_000), lambda cells: fast_seconds(_secret(), 3, cells)),
}


def curves() -> list[Curve]:
    return [
        Curve(name, sizes, tuple(seconds(partial(act, size), 1) for size in sizes))
        for name, (sizes, act) in CURVES.items()
    ]


def figure(found: list[Curve], path: Path) -> None:
    """Draw a panel for each curve, with the power that was fitted."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, panels = pyplot.subplots(1, len(found), figsize=(3.6 * len(found), 3.4), squeeze=False)
    for panel, curve in zip(panels[0], found, strict=True):
        sizes, cost = np.array(curve.sizes), np.array(curve.seconds)
        middle = np.exp(np.log(cost).mean() - curve.slope * np.log(sizes).mean())
        panel.loglog(sizes, cost, "o")
        panel.loglog(sizes, middle * sizes**curve.slope, "-", label=f"slope {curve.slope:.2f}")
        panel.set_xlabel(curve.name)
        panel.legend()
    panels[0][0].set_ylabel("seconds of a processor")
    drawn.tight_layout()
    drawn.savefig(path)
    pyplot.close(drawn)
