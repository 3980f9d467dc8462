"""Synthetic rows from a network and its noisy tables: ancestral sampling, any number of rows, batch after batch.

It does not know whose tables they are, or what the codes stand for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.network.network import Family, Network, family_table
from protocol.tables.domain import Domain, Variables
from protocol.tables.encoding import Block
from protocol.tables.feasibility import feasible_cells, structural_projection
from protocol.tables.marginal import Table

Column = NDArray[Any]  # codes of one variable, in the narrowest unsigned integers that hold them

_WORD_BITS = 31  # of a random word's 32, so that the threshold of "always" fits into 32 bits as well


@dataclass(frozen=True, eq=False)
class _Draw:
    """How one variable is drawn, given the variables that were drawn before it.

    A row's situation is the codes of its parents and which codes its attribute's other variables have left it.
    """

    family: Family
    earlier: Variables  # of the same attribute, where what they are can rule a code out
    restriction: NDArray[np.intp]  # for every combination of codes of `earlier`, which of `allowed` holds
    thresholds: NDArray[np.uint64]  # situation * 2^31 + the words below which a code is larger than 0, 1, ...
    restrictions: int


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution of rows: a network with the conditional distribution of every variable."""

    domain: Domain
    draws: tuple[_Draw, ...]

    @classmethod
    def fit(
        cls, network: Network, tables: Sequence[Table], domain: Domain, blocks: Sequence[Block], total: float
    ) -> "Model":
        """The conditionals from noisy tables, one of which has to cover each family; `total` is the number of rows."""
        draws = []
        drawn: Variables = ()
        for family in network.families:
            table = structural_projection(family_table(family, tables, domain), blocks, domain, total)
            draws.append(_draw(family, table.counts, drawn, blocks, domain))
            drawn = (*drawn, family.child)
        return cls(domain, tuple(draws))

    def sample(self, count: int, stream: Stream, batch: int = 1 << 16) -> Iterator[list[Column]]:
        """`count` rows, at most `batch` at a time, as one column of codes per base variable."""
        for start in range(0, count, batch):
            columns: dict[int, Column] = {}
            for draw in self.draws:
                words = stream.words32(min(batch, count - start))
                columns[draw.family.child] = _codes(draw, columns, words, self.domain)
            yield [columns[variable] for variable in range(self.domain.count)]


def _draw(
    family: Family, counts: NDArray[np.float64], drawn: Variables, blocks: Sequence[Block], domain: Domain
) -> _Draw:
    size = domain.sizes[family.child]
    earlier, possible = _possible_codes(family.child, drawn, blocks, domain)
    allowed, restriction = np.unique(possible, axis=0, return_inverse=True)
    weights = _weights(counts.reshape(size, -1).T, allowed).reshape(-1, size)
    return _Draw(family, earlier, restriction.reshape(-1), _thresholds(weights), len(allowed))


def _possible_codes(
    child: int, drawn: Variables, blocks: Sequence[Block], domain: Domain
) -> tuple[Variables, NDArray[np.bool_]]:
    """The attribute's variables drawn before, and for each combination of their codes what the child can still be."""
    size = domain.sizes[child]
    same = [block for block in blocks if child in block.variables]
    earlier = tuple(v for v in drawn if any(v in block.variables for block in same))
    feasible = feasible_cells((*earlier, child), same, domain)
    if feasible is None:
        return (), np.ones((1, size), dtype=bool)
    possible = feasible.reshape(-1, size)
    possible[~possible.any(axis=1)] = True  # combinations that no row gets to
    return earlier, possible


def _weights(counts: NDArray[np.float64], allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For every parent configuration and every restriction, weights of the child's codes with some mass.

    Where the table has no mass left, the child's own marginal stands in; where that has none, all codes are alike.
    """
    weights = counts[:, None, :] * allowed
    for substitute in (counts.sum(axis=0) * allowed, allowed):
        empty = weights.sum(axis=2, keepdims=True) == 0
        weights = np.where(empty, substitute, weights)
    return weights


def _thresholds(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """One rising sequence for all situations, in which one search finds each row's code.

    A code without weight gets an empty interval exactly: cumulative weights on both of its sides are equal.
    """
    cumulative = np.cumsum(weights, axis=1)
    within = np.floor(cumulative[:, :-1] / cumulative[:, -1:] * 2**_WORD_BITS).astype(np.uint64)
    situations = np.arange(len(weights), dtype=np.uint64) << np.uint64(_WORD_BITS)
    thresholds: NDArray[np.uint64] = situations[:, None] + within
    return thresholds.ravel()


def _codes(draw: _Draw, columns: Mapping[int, Column], words: NDArray[np.uint32], domain: Domain) -> Column:
    child, parents = draw.family.child, draw.family.parents
    size = domain.sizes[child]
    situation = _flat_index(parents, columns, len(words), domain) * draw.restrictions
    situation += draw.restriction[_flat_index(draw.earlier, columns, len(words), domain)]
    keys = situation.astype(np.uint64) << np.uint64(_WORD_BITS) | words >> np.uint32(32 - _WORD_BITS)
    found = np.searchsorted(draw.thresholds, keys, side="right") - situation * (size - 1)
    return found.astype(np.min_scalar_type(size - 1))


def _flat_index(variables: Variables, columns: Mapping[int, Column], rows: int, domain: Domain) -> NDArray[np.intp]:
    """Every row's place in a table over these variables, counted with the last variable fastest."""
    index = np.zeros(rows, dtype=np.intp)
    for variable in variables:
        codes, groups = columns[domain.base(variable)], domain.variables[variable].groups
        index = index * domain.sizes[variable] + (codes if groups is None else np.asarray(groups)[codes])
    return index
