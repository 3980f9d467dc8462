"""How surprising a sample is under a law on the integers: p-values, each compared with its share of the false alarms.

Binomial p-values are exact. The chi-square and normal ones are approximations: bins expect at least 1,000 draws,
moments are compared only where their skewness hardly moves the normal tail, and a tenth of the declared rate is given
to each so that the remaining inflation is paid for.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6
APPROXIMATE = 0.1
SMALLEST_BIN = 1000


@dataclass(frozen=True)
class Law:
    """Probabilities of the integers low, low + 1, ..."""

    low: int
    pmf: np.ndarray

    @property
    def values(self) -> np.ndarray:
        return self.low + np.arange(self.pmf.size, dtype=float)

    def quantile_edges(self, parts: int) -> np.ndarray:
        """Last values of at most `parts` bins, the last of which has no end."""
        return self.low + np.unique(np.searchsorted(self.pmf.cumsum(), np.arange(1, parts) / parts))

    def masses(self, edges: np.ndarray) -> np.ndarray:
        return np.diff(np.concatenate([[0.0], self.pmf.cumsum()[edges - self.low], [1.0]]))


def p_values(draws: np.ndarray, law: Law) -> dict[str, float]:
    """Every comparison of a sample with a symmetric law, named."""
    found = {"zeros": _binomial(draws == 0, law.pmf[-law.low]), "signs": _sign(draws)}
    for share in (1e-2, 1e-4):
        far = int(np.abs(law.values[np.searchsorted(law.pmf.cumsum(), share / 2)]))
        mass = law.pmf[np.abs(law.values) >= far].sum()
        found[f"beyond {far}"] = _binomial(np.abs(draws) >= far, min(mass, 1.0))
    found |= _shape(draws, law) | _pairs(draws, law)
    for name, power in (("mean", 1), ("variance", 2)):
        found |= _moment(name, draws, law, power)
    return found


def rejected(found: dict[str, float]) -> list[str]:
    """The names of the comparisons that fail at the declared rate, shared by all of them."""
    return [name for name, p in found.items() if p < FALSE_ALARM / len(found)]


def _binomial(hits: np.ndarray, probability: float) -> float:
    return binomial_p_value(int(hits.sum()), hits.size, probability)


def binomial_p_value(hits: int, draws: int, probability: float) -> float:
    below, above = stats.binom.cdf(hits, draws, probability), stats.binom.sf(hits - 1, draws, probability)
    return min(1.0, 2 * min(below, above))


def _sign(draws: np.ndarray) -> float:
    return binomial_p_value(int((draws > 0).sum()), int((draws != 0).sum()), 0.5)


def _shape(draws: np.ndarray, law: Law) -> dict[str, float]:
    edges = law.quantile_edges(64)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    return _chi_square("shape", observed, draws.size * law.masses(edges))


def _pairs(draws: np.ndarray, law: Law) -> dict[str, float]:
    """Consecutive draws are independent: the classes of disjoint pairs, against the product of the masses."""
    edges = law.quantile_edges(5)
    classes = np.searchsorted(edges, draws)
    count = edges.size + 1
    pairs = classes[0 : draws.size - 1 : 2] * count + classes[1::2]
    observed = np.bincount(pairs, minlength=count**2)
    masses = law.masses(edges)
    return _chi_square("pairs", observed, pairs.size * np.outer(masses, masses).ravel())


def _chi_square(name: str, observed: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """Bins are merged until each expects enough; nothing is compared if only one is left."""
    merged: list[list[float]] = [[0.0, 0.0]]
    for seen, hoped in zip(observed, expected, strict=True):
        if merged[-1][1] >= SMALLEST_BIN:
            merged.append([0.0, 0.0])
        merged[-1][0] += seen
        merged[-1][1] += hoped
    if len(merged) > 1 and merged[-1][1] < SMALLEST_BIN:
        last = merged.pop()
        merged[-1] = [merged[-1][0] + last[0], merged[-1][1] + last[1]]
    if len(merged) == 1:
        return {}
    seen, hoped = np.array(merged).T
    statistic = ((seen - hoped) ** 2 / hoped).sum()
    return {name: stats.chi2.sf(statistic, len(merged) - 1) / APPROXIMATE}


def _moment(name: str, draws: np.ndarray, law: Law, power: int) -> dict[str, float]:
    powers = law.values**power
    mean = (law.pmf * powers).sum()
    deviation = np.sqrt((law.pmf * (powers - mean) ** 2).sum())
    skewness = (law.pmf * np.abs((powers - mean) / deviation) ** 3).sum()
    if 6**3 * skewness / (6 * np.sqrt(draws.size)) > 1.5:
        return {}
    score = (np.mean(draws.astype(float) ** power) - mean) * np.sqrt(draws.size) / deviation
    return {name: 2 * stats.norm.sf(abs(score)) / APPROXIMATE}
