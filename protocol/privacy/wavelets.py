"""Privelet: the price of noise in Haar coefficients, its division over the levels of a tree, and when it is worth it.

It does not know counts, plans or rows. `wavelets.md` holds the argument.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import gmpy2

from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.haar import Groups, HaarNoise, HaarTree

MANY = 32  # categories of an attribute, from which on its counts may have wavelet noise
WORTH = 0.5  # mean variance of queries, as a share of plain noise's, up to which recommended plans take wavelets
_SCALE = 1 << 64  # of weights before their roots are taken
_BUDGET = Fraction(1, 1000)  # at which the two kinds of noise are compared; their ratio hardly depends on it


@dataclass(frozen=True)
class Wavelet:
    """The tree of one attribute, and whether its queries are ranges of categories or the groups of a taxonomy."""

    tree: HaarTree
    groups: tuple[tuple[int, int], ...] = ()  # of a taxonomy: the places of each group's first category and end

    def shares(self, definition: PrivacyDefinition) -> tuple[Fraction, ...]:
        """The part of the attribute's budget that sets the noise of each level.

        The dearest change of one row costs the whole budget exactly. The parts may add up to more than 1, since no
        single change touches every level.
        """
        return _shares(self, definition.cost_of_two, 2 if definition.grows_by_root else 3)

    def noise(self, variances: Sequence[float]) -> HaarNoise:
        return HaarNoise(self.tree, tuple(variances))

    def gain(self, definition: PrivacyDefinition) -> float:
        """The mean variance of all queries, as a share of what independent noise of the same price leaves in them."""
        rates = [definition.rate(_BUDGET * share) for share in self.shares(definition)]
        found = sum(float(w) * definition.variance(rate) for w, rate in zip(self._weights, rates, strict=True))
        return found / (float(self._plain) * definition.variance(definition.rate(_BUDGET)))

    @cached_property
    def _weights(self) -> tuple[Fraction, ...]:
        """How often a level's variance enters the sum of the variances of all queries."""
        return _in_groups(self) if self.groups else _in_ranges(self.tree)

    @cached_property
    def _plain(self) -> Fraction:
        """The sum of all queries' variances under independent noise of variance 1; the sum of counts is public."""
        count = len(self.tree.order)
        if self.groups:
            many = Counter([1] * count + [end - first for first, end in self.groups])
        else:
            many = Counter({length: count - length + 1 for length in range(1, count)})
        return sum((Fraction(times * size * (count - size), count) for size, times in many.items()), Fraction(0))


def ordered_wavelet(ordered: int, size: int) -> Wavelet:
    """The wavelet of ordered categories; those without a place in the order are joined to them last."""
    return Wavelet(HaarTree.over((range(ordered), *range(ordered, size))))


def taxonomy_wavelet(groups: Groups) -> Wavelet:
    """The wavelet of a taxonomy's values, given its nested groups."""
    found: list[tuple[int, int]] = []
    count = _places_of_groups(groups, 0, found)
    proper = (group for group in dict.fromkeys(found) if 1 < group[1] - group[0] < count)
    return Wavelet(HaarTree.over(groups), tuple(proper))


def dearest_change(tree: HaarTree, budgets: Sequence[Fraction], cost_of_two: int) -> Fraction:
    """The most that the change of one row's category costs, given the budget that buys the noise of each level.

    The row leaves one side of the node where its two ways part, whose coefficient changes by two, and joins the other.
    Below that node, each coefficient on either way changes by one, half of what a table changes by.
    """
    below: dict[tuple[int, int], Fraction] = {}
    dearest = Fraction(0)
    for level, (first, middle, end) in reversed([*tree.nodes]):
        left, right = below.get((first, middle), Fraction(0)), below.get((middle, end), Fraction(0))
        dearest = max(dearest, cost_of_two * budgets[level] + left + right)
        below[first, end] = budgets[level] / 2 + max(left, right)
    return dearest


@lru_cache(maxsize=256)
def _shares(wavelet: Wavelet, cost_of_two: int, degree: int) -> tuple[Fraction, ...]:
    """Divide the budget in proportion to roots of the levels' weights, which leaves the least noise in all queries."""
    weights = [Fraction(int(gmpy2.iroot(gmpy2.mpz(int(w * _SCALE)), degree)[0])) for w in wavelet._weights]
    whole = dearest_change(wavelet.tree, weights, cost_of_two)
    return tuple(weight / whole for weight in weights)


def _in_ranges(tree: HaarTree) -> tuple[Fraction, ...]:
    """For every level: the sum over all ranges of the squared parts that its coefficients have in the range's count.

    A coefficient's part in a range is a difference of two prefix sums p, and over all ranges of m categories the
    squared differences add up to (m + 1) sum p^2 - (sum p)^2.
    """
    count = len(tree.order)
    # Of a node whose sum is 1, divided evenly at every node below: the sums of its prefix sums, and of their squares.
    sums = {(place, place + 1): (Fraction(1), Fraction(1)) for place in range(count)}
    found = [Fraction(0)] * len(tree.levels)
    for level, (first, middle, end) in reversed([*tree.nodes]):
        (a, b), (c, d), right = sums.pop((first, middle)), sums.pop((middle, end)), end - middle
        prefixes, squares = (a + right - c) / 2, (b + right - 2 * c + d) / 4
        found[level] += (count + 1) * squares - prefixes**2
        sums[first, end] = (a + right + c) / 2, (b + right + 2 * c + d) / 4
    return tuple(found)


def _in_groups(wavelet: Wavelet) -> tuple[Fraction, ...]:
    """For every level: the sum of squared parts in all single categories and groups, each of which is a node."""
    tree, groups = wavelet.tree, set(wavelet.groups)
    queries = {(place, place + 1): Fraction(1) for place in range(len(tree.order))}
    found = [Fraction(0)] * len(tree.levels)
    for level, (first, middle, end) in reversed([*tree.nodes]):
        halves = (queries.pop((first, middle)) + queries.pop((middle, end))) / 4
        found[level] += halves
        queries[first, end] = halves + ((first, end) in groups)
    return tuple(found)


def _places_of_groups(groups: Groups, start: int, found: list[tuple[int, int]]) -> int:
    """Note the places of all groups, and return the end of the last."""
    end = start
    for member in groups:
        end = end + 1 if isinstance(member, int) else _places_of_groups(member, end, found)
    found.append((start, end))
    return end
