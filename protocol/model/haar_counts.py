"""Correct draws of possible counts by noisy Haar coefficients, node by node from the root down.

It does not know how the counts were drawn. `ordered.md` has the argument.
"""

from collections.abc import Sequence

import numpy as np

from protocol.model.ordered_pieces import Array
from protocol.tables.haar import HaarNoise, Node

_ONE_DEVIATION = (0.1587, 0.8413)  # between these quantiles lie two deviations of a normal variable
_SURPRISING = 2.5  # standard deviations of its noise from what the draws say, beyond which a coefficient is believed


def told_by_halves(draws: Array, coefficients: Array, noise: HaarNoise, strays: Array) -> Array:
    """Move rows between the halves of each node, as far as its noisy coefficient is more precise than the draws.

    `strays` holds a standard normal number for every draw and coefficient. All draws keep their sums.
    """
    tree, found = noise.tree, draws[:, noise.tree.order]
    starts = np.cumsum([0, *tree.cells])
    for level, nodes in enumerate(tree.levels):
        own = slice(starts[level], starts[level + 1])
        found = _told(found, nodes, coefficients[own], noise.variances[level], strays[:, own])
    back = np.empty_like(found)
    back[:, tree.order] = found
    return back


def _told(draws: Array, nodes: Sequence[Node], measured: Array, variance: float, strays: Array) -> Array:
    first, middle, end = np.array(nodes).T
    sums = np.concatenate([np.zeros((len(draws), 1)), np.cumsum(draws, axis=1)], axis=1)
    left, right = sums[:, middle] - sums[:, first], sums[:, end] - sums[:, middle]
    whole, difference = left + right, left - right
    lower, upper = np.quantile(difference, _ONE_DEVIATION, axis=0)
    surprise = (measured - np.median(difference, axis=0)) ** 2 - _SURPRISING**2 * variance
    doubt = np.maximum(((upper - lower) / 2) ** 2, surprise)
    told = doubt / (doubt + variance)
    moved = difference + told * (measured + np.sqrt(variance) * strays - difference)
    moved = np.clip(moved, -whole, whole)
    sides = np.stack([left, right], axis=2), np.stack([whole + moved, whole - moved], axis=2) / 2
    return _with_sums(draws, nodes, *(side.reshape(len(draws), -1) for side in sides))


def _with_sums(draws: Array, nodes: Sequence[Node], before: Array, after: Array) -> Array:
    """Scale each half to its new sum; spread rows of a half that was empty evenly."""
    half, size = np.full(draws.shape[1], -1), np.ones(before.shape[1])
    for place, (first, middle, end) in enumerate(nodes):
        half[first:middle], half[middle:end] = 2 * place, 2 * place + 1
        size[2 * place : 2 * place + 2] = middle - first, end - middle
    is_empty = before <= 0
    times = np.where(is_empty, 0.0, after / np.where(is_empty, 1.0, before))
    added = np.where(is_empty, after / size, 0.0)
    same = np.ones((len(draws), 1))  # the last column, for categories in no node of the level
    return np.asarray(draws * np.hstack([times, same])[:, half] + np.hstack([added, 0 * same])[:, half])
