"""Reference rows for picks by score M: drawn from the model of all released tables, and compared with a party's rows.

It does not know the party's own rows, or how the model was fitted. The released tables were already private when they
left the parties.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crypto.randomness import Stream
from protocol.messages.tasks import Place
from protocol.model.estimation import GraphicalModel
from protocol.model.junction_tree import JunctionTree
from protocol.model.systematic_sampling import draw_rows
from protocol.model.triangulation import cells
from protocol.picks.by_model import REFERENCE_ROWS
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, split_vector, words_from_bytes, words_to_bytes
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain, Merged, Variables
from protocol.views.cover import LARGEST_VIEW

_WEIGHTS = 1 << 20  # scale of the weights: finer than the reference rows, too coarse to reveal the order of additions
_FEW = 1 << 12  # numbers in a clique up to which this scale suffices


@dataclass(frozen=True)
class Guide:
    """A model as it is sent: the cliques of its tree with their parents, and a weight for each combination of codes."""

    tables: int  # number of released tables that the model was fitted to
    cliques: tuple[Variables, ...]
    parents: tuple[int, ...]
    blob: bytes

    @classmethod
    def of(cls, model: GraphicalModel, tables: int) -> "Guide":
        weights = [np.rint(own.ravel() * _weights(own.size)).astype(np.uint64) for own in model.cliques]
        return cls(tables, model.tree.cliques, model.tree.parents, words_to_bytes(np.concatenate(weights)))


def guide_problem(domain: Domain, task: Place, room: int) -> str:
    """The reason why a task holds no valid model over this domain's coarsest variables; empty if it does."""
    sizes, inside = domain.coarse_sizes, set[int]()
    largest = LARGEST_VIEW + room + sum(sizes)
    if not task.cliques or len(task.parents) != len(task.cliques):
        return "a model without a parent for every clique"
    for place, (clique, parent) in enumerate(zip(task.cliques, task.parents, strict=True)):
        if len(set(clique)) != len(clique) or not clique or max(clique) >= len(sizes):
            return f"a model with a clique over {clique}, which is no set of variables"
        if parent > max(0, place - 1) or not inside & set(clique) <= set(task.cliques[parent]):
            return f"a model whose clique {clique} is not connected by its parent"
        if set(clique) <= inside:
            return f"a model whose clique {clique} adds no variable"
        inside |= set(clique)
    if len(inside) != len(sizes):
        return f"a model of {len(inside)} variables, expected {len(sizes)}"
    numbers = sum(cells(sizes, clique) for clique in task.cliques)
    if numbers > largest:
        return f"a model of {numbers} numbers, expected at most {largest}"
    expected = WORD_BYTES * numbers
    if len(task.blob) != expected:
        return f"a model of {len(task.blob)} bytes, expected {expected}"
    return ""


def reference_of_guide(terms: Terms, merged: Sequence[Merged], guide: Guide, rows: int) -> Rows:
    """So many rows drawn from a model, over merged categories."""
    return _drawn(terms, merged, guide.cliques, guide.parents, guide.blob, rows)


def reference_of(terms: Terms, task: Place) -> Rows:
    """Rows drawn from the task's model, over merged categories."""
    return _reference(terms, task.merged, task.cliques, task.parents, task.blob)


@lru_cache(maxsize=1)  # a simulation asks all parties of a round about the same model
def _reference(
    terms: Terms, merged: Sequence[Merged], cliques: tuple[Variables, ...], parents: tuple[int, ...], blob: bytes
) -> Rows:
    return _drawn(terms, merged, cliques, parents, blob, REFERENCE_ROWS)


def _drawn(
    terms: Terms,
    merged: Sequence[Merged],
    cliques: tuple[Variables, ...],
    parents: tuple[int, ...],
    blob: bytes,
    count: int,
) -> Rows:
    """Rows drawn from a model, the same for everybody.

    Privacy: the stream may be public, because nothing secret is drawn. A pick is private with any reference rows.
    """
    sizes = terms.domain.with_merged(merged).coarse_sizes
    tree = JunctionTree(sizes, cliques, parents)
    words = split_vector(words_from_bytes(blob), [cells(sizes, clique) for clique in cliques])
    weights = tuple(
        own.astype(np.float64).reshape(tree.shape(clique)) for own, clique in zip(words, cliques, strict=True)
    )
    stream = Stream.keyed(terms.plan_hash.encode(), "reference")
    batches = draw_rows(GraphicalModel(tree, weights), count, stream)
    columns = map(np.concatenate, zip(*batches, strict=True))
    narrow = [column.astype(np.min_scalar_type(size - 1)) for column, size in zip(columns, sizes, strict=True)]
    return Rows(Domain.of_sizes(sizes), narrow)


def _weights(numbers: int) -> int:
    """Sum of a clique's integer weights: larger for cliques of very many numbers, each of which has a small share."""
    return _WEIGHTS * max(1, numbers // _FEW)
