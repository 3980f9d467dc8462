"""Binary trees over the categories of an attribute, and the Haar coefficients of counts: differences of two halves.

It does not know noise or prices (`protocol.privacy.wavelets`).

A coefficient is the sum of a node's left categories less the sum of its right categories. Together with the sum of all,
the coefficients tell every count: of a sum s and a difference c, the left half has (s + c) / 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Groups = Sequence["int | Groups"]  # categories in nested groups, from left to right
Node = tuple[int, int, int]  # the places of a node's first category, of its right half's first, and of its end
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class HaarTree:
    order: tuple[int, ...]  # the categories from left to right
    levels: tuple[tuple[Node, ...], ...]  # from the root down; nodes of one level hold one noise

    @classmethod
    def over(cls, groups: Groups) -> "HaarTree":
        """Join neighbours pair by pair, first those of one group; every group is then one node of the tree."""
        order: list[int] = []
        heights: dict[int, list[Node]] = {}
        _join(groups, order, heights)
        return cls(tuple(order), tuple(tuple(sorted(heights[height])) for height in sorted(heights, reverse=True)))

    @property
    def nodes(self) -> Iterator[tuple[int, Node]]:
        """Every node with its level, from the root down: a node comes before the nodes inside it."""
        return ((level, node) for level, nodes in enumerate(self.levels) for node in nodes)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of coefficients of each level."""
        return tuple(map(len, self.levels))

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """The mean number of categories below a node of each level."""
        return tuple(float(np.mean([end - first for first, _, end in nodes])) for nodes in self.levels)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return np.array([node for _, node in self.nodes], dtype=np.intp).reshape(-1, 3)

    def coefficients(self, counts: NDArray[Number]) -> NDArray[Number]:
        """The coefficients along the last axis, level after level from the root down."""
        ordered = counts[..., self.order]
        sums = np.concatenate([np.zeros_like(ordered[..., :1]), np.cumsum(ordered, axis=-1)], axis=-1)
        first, middle, end = self._places.T
        found: NDArray[Number] = 2 * sums[..., middle] - sums[..., first] - sums[..., end]
        return found

    def counts(self, total: float, coefficients: NDArray[Any], is_bounded: bool = False) -> Array:
        """The counts with this sum and these coefficients, exact in binary fractions.

        Bounded, a node's halves share its sum and none is negative, however large its coefficient is. So no noise
        in a few rows moves the sums of many, as it would if all counts were made non-negative at once.
        """
        sums = {(0, len(self.order)): float(total)}
        for (_, (first, middle, end)), found in zip(self.nodes, coefficients.tolist(), strict=True):
            whole = sums.pop((first, end))
            difference = min(max(found, -whole), whole) if is_bounded else found
            sums[first, middle], sums[middle, end] = (whole + difference) / 2, (whole - difference) / 2
        counts = np.empty(len(self.order))
        counts[list(self.order)] = [sums[place, place + 1] for place in range(len(self.order))]
        return counts

    def by_node(self, levels: Sequence[float]) -> Array:
        """One number for each coefficient, from one for each level."""
        return np.repeat(np.array(levels, dtype=np.float64), self.cells)


@dataclass(frozen=True)
class HaarNoise:
    """Noise that is independent in the coefficients of a tree, and so depends on its neighbours in the counts."""

    tree: HaarTree
    variances: tuple[float, ...]  # of a coefficient, by level

    @property
    def variance(self) -> float:
        """The mean variance of a count."""
        below = {(0, len(self.tree.order)): 0.0}
        for level, (first, middle, end) in self.tree.nodes:
            below[first, middle] = below[middle, end] = (below.pop((first, end)) + self.variances[level]) / 4
        return float(np.mean(list(below.values())))

    def averaged(self, own: float, white: float) -> "HaarNoise":
        """The noise of an average in which these counts weigh `own`, beside independent noise of variance `white`."""
        pairs = zip(self.variances, self.tree.sizes, strict=True)
        return HaarNoise(self.tree, tuple(own**2 * variance + size * white for variance, size in pairs))


def _join(groups: Groups, order: list[int], heights: dict[int, list[Node]]) -> tuple[int, int, int]:
    """Put the groups' categories in order, note the nodes that join them, and return first place, end and height."""
    runs = []
    for member in groups:
        if isinstance(member, int):
            order.append(member)
            runs.append((len(order) - 1, len(order), 0))
        else:
            runs.append(_join(member, order, heights))
    while len(runs) > 1:
        joined = []
        for left, right in zip(runs[::2], runs[1::2], strict=False):
            height = max(left[2], right[2]) + 1
            heights.setdefault(height, []).append((left[0], right[0], right[1]))
            joined.append((left[0], right[1], height))
        runs = [*joined, *runs[len(runs) // 2 * 2 :]]
    return runs[0]
