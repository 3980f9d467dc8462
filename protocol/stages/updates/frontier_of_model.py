"""The search frontier by everything that was released: the model's network, grown by the strongest pairs (CSFC).

It does not know which pairs were picked, or by whom.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from protocol.model.run_model import network_of
from protocol.network.frontier import search_frontier
from protocol.network.mutual_information import mutual_information_matrix
from protocol.plan.terms import Terms
from protocol.stages.knowledge import Knowledge, counted_domain
from protocol.stages.reference_rows import reference_of_guide
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table

_ROWS = 1 << 15  # rows of the model that are looked at: enough to rank its pairs


def frontier_of_model(terms: Terms, known: Knowledge) -> Knowledge:
    """This knowledge, whose model of all tables is up to date, with the frontier that follows from it."""
    plan = terms.plan
    tables, domain = known.heard(plan.total_rows), counted_domain(terms, known)
    network = network_of(tables, domain, plan.total_rows, plan.definition, terms.model_room)
    # Views measure what the model may not hold: a pair counts with whatever says more of it.
    information = np.maximum(_information(terms, known), known.information)
    return replace(known, frontier=search_frontier(network, information, terms.frontier_limits, terms.domain))


def _information(terms: Terms, known: Knowledge) -> NDArray[np.float64]:
    """The mutual information of every pair in the model, whether or not a table holds the pair."""
    assert known.guide is not None
    rows = reference_of_guide(terms, known.merged, known.guide, _ROWS)
    count = terms.domain.count
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    tables = {pair: Table(pair, counts) for pair, counts in zip(pairs, rows.tables(pairs), strict=True)}
    return mutual_information_matrix(tables, Domain.of_sizes(rows.domain.sizes), rows.count)
