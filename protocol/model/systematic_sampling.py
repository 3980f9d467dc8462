"""Synthetic rows from a fitted model, drawn batch by batch with as little random variation as whole rows allow.

It does not know how the model was fitted or what its codes stand for.

Rows in the same situation share out their codes systematically: of m rows that have a code with probability p, m p rows
get the code, up to one row. Every row still follows the model, but a batch deviates from the model far less than
independent draws would.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.estimation import GraphicalModel
from protocol.model.junction_tree import Array
from protocol.model.row_order import in_order, row_of
from protocol.model.triangulation import cells
from protocol.tables.domain import Variables

Column = NDArray[Any]  # codes, in the narrowest unsigned integers that hold them
_WORD = 2.0**32


def draw_rows(model: GraphicalModel, count: int, stream: Stream, batch: int = 1 << 16) -> Iterator[list[Column]]:
    """Draw `count` rows, at most `batch` at a time, as one column of codes per variable."""
    sizes = model.tree.sizes
    conditionals = [_conditional(model, place) for place in range(len(model.tree.cliques))]
    parts = [_parts(sizes, fresh) for _, fresh, _ in conditionals]
    for start in range(0, count, batch):
        rows = min(batch, count - start)
        columns: dict[int, Column] = {}
        for (known, _, cumulative), codes_of in zip(conditionals, parts, strict=True):
            code = systematic(cumulative, _index(sizes, known, columns, rows), stream)
            columns |= {variable: codes[code] for variable, codes in codes_of.items()}
        yield [columns[variable] for variable in range(len(sizes))]


def systematic(cumulative: Array, situation: NDArray[Any], stream: Stream) -> Column:
    """Draw a code for every row: situation s takes codes in proportion to the rises of cumulative[s], which ends at 1.

    The rows of a situation are put into random order. Codes are then assigned along this order in proportion, from a
    random start.
    """
    situations, codes = cumulative.shape
    sizes = np.bincount(situation, minlength=situations)
    word_bits = min(32, 64 - len(situation).bit_length() - situations.bit_length())
    order = row_of(in_order(situation, sizes, stream.words32(len(situation)), word_bits))
    starts = stream.words32(situations) / _WORD
    here = np.flatnonzero(sizes)
    ends = _ends(cumulative[here], here, sizes[here], starts[here])
    counts = np.diff(ends, axis=1, prepend=0).ravel()
    found = np.empty(len(situation), dtype=np.min_scalar_type(codes - 1))
    found[order] = np.repeat(np.tile(np.arange(codes, dtype=found.dtype), len(here)), counts)
    return found


def _ends(
    cumulative: Array, situations: NDArray[np.intp], sizes: NDArray[np.intp], starts: NDArray[np.float64]
) -> NDArray[np.intp]:
    """For every situation and code: how many of the situation's rows, in order, get this code or a smaller one.

    Row k of a situation lies at place s + (k + start) / size, and gets the first code whose step of the ladder,
    s + share, lies above. The exact comparison decides, because everybody must draw the same reference rows.
    """
    s, size, start = situations[:, None], sizes[:, None], starts[:, None]
    steps = cumulative + s
    near = np.clip(np.ceil(cumulative * size - start), 0, size).astype(np.intp)
    # A place must not be rounded up to the next situation's first step.
    highest = np.nextafter(s + 1.0, 0.0)
    is_below = [np.minimum(s + (near + k + start) / size, highest) < steps for k in (-1, 0)]
    near += is_below[1].astype(np.intp) - ~is_below[0]
    ends = np.clip(near, 0, size)
    return np.where(cumulative < cumulative[:, -1:], ends, size)  # behind the last code with a share is no row


def cumulative_shares(weights: Array) -> Array:
    """Cumulative shares along the last axis, from weights; without any weight all codes get equal shares."""
    summed = np.cumsum(np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0), axis=1)
    return np.asarray(summed / summed[:, -1:])


def _conditional(model: GraphicalModel, place: int) -> tuple[Variables, Variables, Array]:
    """A clique's variables that are known before it, its fresh variables, and their distribution given the known."""
    tree, clique = model.tree, model.tree.cliques[place]
    known = tree.separators[place]
    fresh = tuple(v for v in clique if v not in known)
    ordered = model.cliques[place].transpose([clique.index(v) for v in (*known, *fresh)])
    return known, fresh, cumulative_shares(ordered.reshape(cells(tree.sizes, known), -1))


def _parts(sizes: Sequence[int], variables: Variables) -> dict[int, Column]:
    """For each of these variables, its code in every cell of a table over them."""
    codes = np.unravel_index(np.arange(cells(sizes, variables)), [sizes[variable] for variable in variables])
    narrow = (own.astype(np.min_scalar_type(sizes[v] - 1)) for v, own in zip(variables, codes, strict=True))
    return dict(zip(variables, narrow, strict=True))


def _index(sizes: Sequence[int], variables: Variables, columns: Mapping[int, Any], rows: int) -> NDArray[np.intp]:
    """Every row's index in a table over these variables, with the last variable varying fastest."""
    index = np.zeros(rows, dtype=np.intp)
    for variable in variables:
        index *= sizes[variable]
        index += columns[variable]
    return index
