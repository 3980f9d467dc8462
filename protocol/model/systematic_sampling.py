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
from protocol.model.triangulation import cells
from protocol.tables.domain import Variables

Column = NDArray[np.intp]
_WORD = 2.0**32


def draw_rows(model: GraphicalModel, count: int, stream: Stream, batch: int = 1 << 16) -> Iterator[list[Column]]:
    """Draw `count` rows, at most `batch` at a time, as one column of codes per variable."""
    conditionals = [_conditional(model, place) for place in range(len(model.tree.cliques))]
    for start in range(0, count, batch):
        rows = min(batch, count - start)
        columns: dict[int, Column] = {}
        for known, fresh, cumulative in conditionals:
            situation = _index(model.tree.sizes, known, columns, rows)
            code = systematic(cumulative, situation, stream)
            for variable in reversed(fresh):
                code, columns[variable] = np.divmod(code, model.tree.sizes[variable])
        yield [columns[variable] for variable in range(len(model.tree.sizes))]


def systematic(cumulative: Array, situation: NDArray[np.intp], stream: Stream) -> NDArray[np.intp]:
    """Draw a code for every row: situation s takes codes in proportion to the rises of cumulative[s], which ends at 1.

    The rows of a situation are put into random order. Codes are then assigned along this order in proportion, from a
    random start.
    """
    rows, situations = len(situation), len(cumulative)
    order = _shuffled(situation, situations, stream)
    sizes = np.bincount(situation, minlength=situations)
    first = np.cumsum(sizes) - sizes
    starts = stream.words32(situations) / _WORD
    sorted_situation = situation[order]
    place = (np.arange(rows) - first[sorted_situation] + starts[sorted_situation]) / sizes[sorted_situation]
    # Situation s looks up its places between s and s + 1, and a place must not be rounded up to s + 1.
    inside = np.minimum(sorted_situation + place, np.nextafter(sorted_situation + 1.0, 0.0))
    ladder = (cumulative + np.arange(situations)[:, None]).ravel()
    found = np.searchsorted(ladder, inside, side="right") - sorted_situation * cumulative.shape[1]
    codes = np.empty(rows, dtype=np.intp)
    codes[order] = np.minimum(found, _last_possible(cumulative)[sorted_situation])
    return codes


def _shuffled(situation: NDArray[np.intp], situations: int, stream: Stream) -> NDArray[np.intp]:
    """Order the rows by situation, and at random within a situation.

    Situation, random word and row are packed into one number; sorting such numbers is many times faster than sorting by
    two keys.
    """
    rows = len(situation)
    row_bits = np.uint64(rows.bit_length())
    word_bits = np.uint64(min(32, 64 - rows.bit_length() - situations.bit_length()))
    words = stream.words32(rows).astype(np.uint64) >> (np.uint64(32) - word_bits)
    packed = (situation.astype(np.uint64) << word_bits | words) << row_bits | np.arange(rows, dtype=np.uint64)
    packed.sort()
    return (packed & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.intp)


def cumulative_shares(weights: Array) -> Array:
    """Cumulative shares along the last axis, from weights; without any weight all codes get equal shares."""
    summed = np.cumsum(np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0), axis=1)
    return np.asarray(summed / summed[:, -1:])


def _last_possible(cumulative: Array) -> NDArray[np.intp]:
    """The last code with a positive probability; rounding must not lead beyond this code."""
    return np.asarray((cumulative < cumulative[:, -1:]).sum(axis=1))


def _conditional(model: GraphicalModel, place: int) -> tuple[Variables, Variables, Array]:
    """A clique's variables that are known before it, its fresh variables, and their distribution given the known."""
    tree, clique = model.tree, model.tree.cliques[place]
    known = tree.separators[place]
    fresh = tuple(v for v in clique if v not in known)
    ordered = model.cliques[place].transpose([clique.index(v) for v in (*known, *fresh)])
    return known, fresh, cumulative_shares(ordered.reshape(cells(tree.sizes, known), -1))


def _index(sizes: Sequence[int], variables: Variables, columns: Mapping[int, Any], rows: int) -> NDArray[np.intp]:
    """Every row's index in a table over these variables, with the last variable varying fastest."""
    index = np.zeros(rows, dtype=np.intp)
    for variable in variables:
        index = index * sizes[variable] + columns[variable]
    return index
