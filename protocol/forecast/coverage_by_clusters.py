"""Coverage by a junction tree: the pairs inside its cliques, and what the views before it count.

It does not know the tree itself.
"""

from dataclasses import replace

from protocol.forecast.coverage import Evidence, variances_alone
from protocol.forecast.coverage_by_network import evidence_of_networks
from protocol.forecast.coverage_by_views import evidence_of_views
from protocol.plan.terms import Terms


def evidence_of_clusters(terms: Terms) -> Evidence:
    """Return the evidence of all pairs, if views count them; otherwise that of cliques beside every column alone."""
    if terms.plan.views == "pairs" and terms.plan.split[0]:
        return evidence_of_views(terms)
    (cliques,) = evidence_of_networks(terms)
    alone = variances_alone(terms)
    single = {size: min(variance, alone.get(size, variance)) for size, variance in cliques.single.items()}
    return replace(cliques, single=single, is_fitted=terms.plan.estimate == "graphical-model")
