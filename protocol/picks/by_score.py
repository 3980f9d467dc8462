"""Private pick of a variable and its parents on one party's rows (PrivBayes Algorithm 4, line 11).

It does not know how the budget was divided or which pick of the network this is.

Cost: a run counts each family once, by `protocol.tables.counting`. On 15,000 rows of 15 native variables all picks
together take well below a second. At 10^8 rows a native family takes about 0.2 seconds, and a binary family some
milliseconds. With 200 variables the number of candidates dominates the cost;
`protocol.network.parent_sets.count_candidates` computes this number before any row is read.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.choice import exponential_choice, permute_and_flip
from protocol.network.parent_sets import Candidate
from protocol.options import Choice
from protocol.picks.scores import Scoring, scoring
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Domain

Shape = tuple[int, int]  # codes of the child, cells of the parents
_CELLS_AT_ONCE = 1 << 22  # cells (32 MB) of the tables that are counted before they are scored


def choose(
    rows: AnyRows,
    families: Sequence[Candidate],
    score: str,
    epsilon: Fraction,
    mechanism: Choice,
    stream: Stream,
    noise: float = 0.0,
) -> Candidate:
    """Pick one of the families, more likely a family with a better score.

    `noise` is the mean size of the noise that each cell of a family's table will hold, as a share of the rows: half of
    what it adds up to is taken from a family's score.

    Privacy: the pick is epsilon-private for these rows (`scores.md`); what is taken off follows from public numbers.
    """
    rule = scoring(score, rows.count, rows.domain)
    costs = noise_costs(rows.domain, families, rule, noise)
    scores = family_scores(rows, families, rule) - costs
    rate = epsilon / (2 * rule.sensitivity)
    if mechanism == "exponential":
        return families[exponential_choice(scores, rate, stream)]
    span = rule.span(max(rows.domain.sizes[child] for child, _ in families)) + int(costs.max() - costs.min())
    return families[permute_and_flip(scores, rate, span, stream)]


def noise_costs(domain: Domain, families: Sequence[Candidate], rule: Scoring, noise: float) -> NDArray[np.int64]:
    """Half of the distance that noise adds to each family's table, in units of the score; at most its whole range."""
    cells = np.array([domain.cells((child, *parents)) for child, parents in families])
    return np.rint(np.minimum(cells * noise / 2, 1.0) / float(rule.unit)).astype(np.int64)


def family_scores(rows: AnyRows, families: Sequence[Candidate], rule: Scoring) -> NDArray[np.int64]:
    """The score of every family; families that earlier picks have scored are not counted again."""
    known = [rows.remembered((rule.name, family)) for family in families]
    fresh = [place for place, value in enumerate(known) if value is None]
    scores = np.array([value or 0 for value in known], dtype=np.int64)
    scores[fresh] = _fresh_scores(rows, [families[place] for place in fresh], rule)
    for place in fresh:
        rows.remember((rule.name, families[place]), int(scores[place]))
    return scores


def _fresh_scores(rows: AnyRows, families: Sequence[Candidate], rule: Scoring) -> NDArray[np.int64]:
    rows.expect([(*parents, child) for child, parents in families])
    scores = np.zeros(len(families), dtype=np.int64)
    for piece in _pieces(rows.domain, families):
        for shape, places in piece.items():
            scores[places] = rule.scores(_counts(rows, [families[place] for place in places], shape))
    return scores


def _pieces(domain: Domain, families: Sequence[Candidate]) -> Iterator[dict[Shape, list[int]]]:
    """Indices of the families by shape, in pieces whose tables fit in memory; families with equal parents together."""
    piece: dict[Shape, list[int]] = {}
    cells = 0
    for place in sorted(range(len(families)), key=lambda place: families[place][1]):
        child, parents = families[place]
        shape = domain.sizes[child], domain.cells(parents)
        piece.setdefault(shape, []).append(place)
        cells += shape[0] * shape[1]
        if cells >= _CELLS_AT_ONCE:
            yield piece
            piece, cells = {}, 0
    yield piece


def _counts(rows: AnyRows, families: Sequence[Candidate], shape: Shape) -> NDArray[np.int64]:
    """Count the families' tables, in an array of shape (m, codes of the child, cells of the parents)."""
    sets = [(*parents, child) for child, parents in families]
    return rows.flat_tables(sets).reshape(len(sets), shape[1], shape[0]).transpose(0, 2, 1)
