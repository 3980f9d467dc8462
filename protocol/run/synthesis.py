"""Synthetic rows drawn from a finished run's knowledge, in any number, batch after batch.

It does not know labels or files.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from crypto.randomness import Stream
from protocol.exact import proportional_counts
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.model.run_model import RunModel, model_of
from protocol.plan.terms import Terms
from protocol.stages.knowledge import Knowledge, counted_domain
from protocol.tables.domain import Codes
from protocol.tables.found_edges import with_edges


def published_terms(terms: Terms, known: Knowledge) -> Terms:
    """The terms with the schema of the published rows, in which all edges are found."""
    return replace(terms, schema=with_edges(terms.agreed, known.edges)) if known.edges else terms


def fitted(terms: Terms, known: Knowledge) -> RunModel | None:
    """The model of all released tables, which takes long to fit; None where rows are drawn from networks."""
    plan = terms.plan
    if known.models or plan.estimate != "graphical-model":
        return None
    heard, counted = known.heard(plan.total_rows), counted_domain(terms, known)
    return model_of(heard, counted, plan.total_rows, plan.definition, terms.model_room)


def synthetic_codes(
    terms: Terms, known: Knowledge, rows: int, stream: Stream, model: RunModel | None = None
) -> Iterator[list[Codes]]:
    """Batches of attribute codes, a column per attribute of the schema. `model` is what `fitted` returned, if known."""
    model = model or fitted(terms, known)
    for columns in _variable_columns(terms, known, rows, stream) if model is None else model.sample(rows, stream):
        yield terms.encoding.decode(columns)


def _variable_columns(terms: Terms, known: Knowledge, rows: int, stream: Stream) -> Iterator[list[Codes]]:
    """Columns drawn from networks."""
    domain, blocks = terms.domain, terms.blocks
    if known.models:
        counts = proportional_counts(rows, [model.rows for model in known.models])
        models = [ConditionalNetwork.fit(m.network, m.tables, domain, blocks, m.rows) for m in known.models]
        return chain.from_iterable(m.sample(count, stream) for m, count in zip(models, counts, strict=True))
    tables = [released.table for released in known.released if released.step == "parameters"]
    return ConditionalNetwork.fit(known.network, tables, domain, blocks, terms.plan.total_rows).sample(rows, stream)
