"""What a party compares its rows with before it picks (score M): rows of the model of all tables released so far.

It does not know the party's own rows, or how the model was fitted. All of this was private when it left the parties.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crypto.randomness import Stream
from protocol.messages.tasks import Place
from protocol.model.estimation import GraphicalModel
from protocol.model.evidence import LARGEST_MODEL
from protocol.model.junction_tree import JunctionTree, cells
from protocol.model.systematic_sampling import draw_rows
from protocol.picks.by_model import REFERENCE_ROWS
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, split_vector, words_from_bytes, words_to_bytes
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain, Merged, Variables
from protocol.views.cover import LARGEST_VIEW

_WEIGHTS = 1 << 20  # finer than the reference, too coarse to show in which order floats were added
_FEW = 1 << 12


@dataclass(frozen=True)
class Guide:
    """A model as it is sent: the cliques of its tree, each one's parent, and a weight for each combination of codes."""

    tables: int  # how many released tables it was fitted to
    cliques: tuple[Variables, ...]
    parents: tuple[int, ...]
    blob: bytes

    @classmethod
    def of(cls, model: GraphicalModel, tables: int) -> "Guide":
        weights = [np.rint(own.ravel() * _weights(own.size)).astype(np.uint64) for own in model.cliques]
        return cls(tables, model.tree.cliques, model.tree.parents, words_to_bytes(np.concatenate(weights)))


def guide_problem(domain: Domain, task: Place) -> str:
    """What keeps a message's model from being one over this domain's coarsest variables; nothing if it is one."""
    sizes, inside = domain.coarse_sizes, set[int]()
    largest = LARGEST_VIEW + LARGEST_MODEL + sum(sizes)
    if not task.cliques or len(task.parents) != len(task.cliques):
        return "a model without a parent for every clique"
    for place, (clique, parent) in enumerate(zip(task.cliques, task.parents, strict=True)):
        if len(set(clique)) != len(clique) or not clique or max(clique) >= len(sizes):
            return f"a model with a clique over {clique}, which is no set of variables"
        if parent > max(0, place - 1) or not inside & set(clique) <= set(task.cliques[parent]):
            return f"a model whose clique {clique} does not hang together with its parent"
        if set(clique) <= inside:
            return f"a model whose clique {clique} says nothing new"
        inside |= set(clique)
    if len(inside) != len(sizes):
        return f"a model of {len(inside)} variables, {len(sizes)} expected"
    numbers = sum(cells(sizes, clique) for clique in task.cliques)
    if numbers > largest:
        return f"a model of {numbers} numbers, at most {largest} expected"
    expected = WORD_BYTES * numbers
    if len(task.blob) != expected:
        return f"a model of {len(task.blob)} bytes, {expected} expected"
    return ""


def reference_of(terms: Terms, task: Place) -> Rows:
    """Over merged categories."""
    return _reference(terms, task.merged, task.cliques, task.parents, task.blob)


@lru_cache(maxsize=1)  # a simulation asks all parties of a round about the same model
def _reference(
    terms: Terms, merged: Sequence[Merged], cliques: tuple[Variables, ...], parents: tuple[int, ...], blob: bytes
) -> Rows:
    """Privacy: the stream is public, because nothing secret is drawn: the law of a pick holds for any reference."""
    sizes = terms.domain.with_merged(merged).coarse_sizes
    tree = JunctionTree(sizes, cliques, parents)
    words = split_vector(words_from_bytes(blob), [cells(sizes, clique) for clique in cliques])
    weights = tuple(
        own.astype(np.float64).reshape(tree.shape(clique)) for own, clique in zip(words, cliques, strict=True)
    )
    stream = Stream.keyed(terms.plan_hash.encode(), "reference")
    batches = draw_rows(GraphicalModel(tree, weights), REFERENCE_ROWS, stream)
    columns = map(np.concatenate, zip(*batches, strict=True))
    narrow = [column.astype(np.min_scalar_type(size - 1)) for column, size in zip(columns, sizes, strict=True)]
    return Rows(Domain.of_sizes(sizes), narrow)


def _weights(numbers: int) -> int:
    """Of a whole clique: finer for those of very many numbers, each of which has little."""
    return _WEIGHTS * max(1, numbers // _FEW)
