"""Synthetic rows from a network and its noisy tables: ancestral sampling of any number of rows, batch by batch.

It does not know whose tables the tables are, or what the codes stand for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.row_order import in_order, row_of
from protocol.network.network import Family, Network, family_table
from protocol.tables.domain import Domain, Variables
from protocol.tables.encoding import Block
from protocol.tables.feasibility import feasible_cells, structural_projection
from protocol.tables.marginal import Table

Column = NDArray[Any]  # codes of one variable, in the narrowest unsigned integers that hold them

_WORD_BITS = 31  # bits used of a random word's 32, so that the threshold for "always" fits into 32 bits as well


@dataclass(frozen=True, eq=False)
class _Draw:
    """The way one variable is drawn, given the variables that were drawn before.

    A row's situation combines the codes of the variable's parents with the codes that the other variables of the
    attribute still allow.
    """

    family: Family
    earlier: Variables  # earlier variables of the same attribute, if their codes can rule out a code
    restriction: NDArray[np.intp]  # for every combination of codes of `earlier`, the index of its set of allowed codes
    thresholds: NDArray[np.uint64]  # situation * 2^31 + the smallest words for which the code exceeds 0, 1, ...
    restrictions: int


@dataclass(frozen=True, eq=False)
class ConditionalNetwork:
    """A distribution of rows: a network with the conditional distribution of each variable."""

    domain: Domain
    draws: tuple[_Draw, ...]

    @classmethod
    def fit(
        cls, network: Network, tables: Sequence[Table], domain: Domain, blocks: Sequence[Block], total: float
    ) -> "ConditionalNetwork":
        """Fit the conditional distributions to noisy tables, which must cover every family. `total` counts the rows."""
        draws = []
        drawn: Variables = ()
        for family in network.families:
            table = structural_projection(family_table(family, tables, domain), blocks, domain, total)
            draws.append(_draw(family, table.counts, drawn, blocks, domain))
            drawn = (*drawn, family.child)
        return cls(domain, tuple(draws))

    def sample(self, count: int, stream: Stream, batch: int = 1 << 16) -> Iterator[list[Column]]:
        """Draw `count` rows, at most `batch` at a time, as one column of codes per base variable."""
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
    """The attribute's variables drawn before, and the child's possible codes for each combination of their codes."""
    size = domain.sizes[child]
    same = [block for block in blocks if child in block.variables]
    earlier = tuple(v for v in drawn if any(v in block.variables for block in same))
    feasible = feasible_cells((*earlier, child), same, domain)
    if feasible is None:
        return (), np.ones((1, size), dtype=bool)
    possible = feasible.reshape(-1, size)
    possible[~possible.any(axis=1)] = True  # combinations that no row reaches
    return earlier, possible


def _weights(counts: NDArray[np.float64], allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of the child's codes, with positive sums, for every parent configuration and every restriction.

    Where the table has no mass, the child's own marginal takes its place. Where the marginal has no mass either, all
    allowed codes get equal weights.
    """
    weights = counts[:, None, :] * allowed
    for substitute in (counts.sum(axis=0) * allowed, allowed):
        empty = weights.sum(axis=2, keepdims=True) == 0
        weights = np.where(empty, substitute, weights)
    return weights


def _thresholds(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Rising thresholds for all situations in one sequence, so that one search finds each row's code.

    A code without weight gets an exactly empty interval, because the cumulative weights on both sides are equal.
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
    thresholds = draw.thresholds.reshape(-1, max(1, size - 1))
    if len(thresholds).bit_length() + _WORD_BITS + len(words).bit_length() <= 64 and 0 < thresholds.size <= len(words):
        return _codes_in_order(thresholds, situation, words)
    keys = situation.astype(np.uint64) << np.uint64(_WORD_BITS) | words >> np.uint32(32 - _WORD_BITS)
    found = np.searchsorted(draw.thresholds, keys, side="right") - situation * (size - 1)
    return found.astype(np.min_scalar_type(size - 1))


def _codes_in_order(thresholds: NDArray[np.uint64], situation: NDArray[np.intp], words: NDArray[np.uint32]) -> Column:
    """Find every row's code as a search for each key does, several times faster: put the rows in order, and count."""
    situations, rising = thresholds.shape
    ends = np.arange(1, situations + 1, dtype=np.uint64) << np.uint64(_WORD_BITS)
    ladder = np.concatenate([thresholds, ends[:, None]], axis=1)
    packed = in_order(situation, np.bincount(situation, minlength=situations), words, _WORD_BITS)
    counts = np.diff(np.searchsorted(packed, ladder.ravel() << np.uint64(len(words).bit_length())), prepend=0)
    codes = np.empty(len(words), dtype=np.min_scalar_type(rising))
    codes[row_of(packed)] = np.repeat(np.tile(np.arange(rising + 1, dtype=codes.dtype), situations), counts)
    return codes


def _flat_index(variables: Variables, columns: Mapping[int, Column], rows: int, domain: Domain) -> NDArray[np.intp]:
    """Every row's index in a table over these variables, with the last variable varying fastest."""
    index = np.zeros(rows, dtype=np.intp)
    for variable in variables:
        codes, groups = columns[domain.base(variable)], domain.variables[variable].groups
        index = index * domain.sizes[variable] + (codes if groups is None else np.asarray(groups)[codes])
    return index
