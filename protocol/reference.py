"""What a party compares its rows with before it picks (score M): rows of the model of all tables released so far.

It does not know the party's own rows. Everything here was already private when it left the parties.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crypto.randomness import Stream
from protocol.counting import Rows
from protocol.domain import Variables
from protocol.guidance import REFERENCE_ROWS
from protocol.marginal import Table
from protocol.messages import Place
from protocol.modelling import model_of
from protocol.queries import layout_of
from protocol.secure_sum import retained_variance, split_vector, words_from_bytes
from protocol.terms import Terms

Listed = tuple[tuple[str, tuple[Variables, ...]], ...]


@dataclass(frozen=True, eq=False)
class Reference:
    rows: Rows
    sizes: tuple[int, ...]  # of the model's variables, some categories of which may be merged


def reference_of(terms: Terms, task: Place) -> Reference:
    return _reference(terms, task.released, task.blob)


@lru_cache(maxsize=1)  # a simulation asks all parties of a round about the same tables
def _reference(terms: Terms, listed: Listed, blob: bytes) -> Reference:
    """Privacy: the stream is public, because nothing secret is drawn: the law of a pick holds for any reference."""
    plan = terms.plan
    fitted = model_of(_tables(terms, listed, blob), terms.domain, plan.total_rows, plan.law, plan.merging)
    batches = fitted.sample(REFERENCE_ROWS, Stream.keyed(terms.plan_hash.encode(), "reference"))
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    return Reference(Rows(terms.domain, columns), fitted.merging.sizes)


def _tables(terms: Terms, listed: Listed, blob: bytes) -> list[Table]:
    steps = {step.name: step for step in terms.steps}
    words = words_from_bytes(blob).view(np.int64)
    found, start = [], 0
    for name, tables in listed:
        layout = layout_of(terms, steps[name], tables, terms.plan.total_rows)
        parts = split_vector(words[start : start + layout.size], layout.cells)
        start += layout.size
        found += [
            Table(table, part.reshape(terms.domain.shape(table)), retained_variance(terms.plan, rate))
            for table, part, rate in zip(tables, parts, layout.rates, strict=True)
        ]
    return found
