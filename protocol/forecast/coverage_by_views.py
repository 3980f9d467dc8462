"""Coverage by views: every pair of attributes is counted in exactly one view, and every attribute in many views.

It does not know networks or picks. Where a plan asks first how strongly columns depend, they may be counted alone.
"""

from collections import Counter, defaultdict
from itertools import combinations
from statistics import fmean

from protocol.forecast.coverage import Counted, Evidence, kinds_of, sizes_of
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import STRENGTH, Shape
from protocol.stages.registry import stage_of

_LEAST = 1e-9  # variance, instead of 0 for budgets so large that no noise is drawn


def evidence_of_columns(terms: Terms) -> Evidence:
    """Return the evidence where columns turn out to depend so little that each is counted alone instead of views."""
    plan, sizes = terms.plan, sizes_of(terms)
    step = next(step for step in terms.steps if step.stage == "correlations")
    layout = stage_of(terms, step).layout(terms, step, terms.single_cover.views, plan.total_rows)
    of_size = defaultdict[int, list[float]](list)
    for size, rate in zip(sizes, layout.rates, strict=True):
        of_size[size].append(max(plan.noise_mode.retained_variance(rate), _LEAST))
    single = {size: fmean(variances) for size, variances in of_size.items()}
    return Evidence(kinds_of(sizes), single, {}, STRENGTH, plan.total_rows, True)


def evidence_of_views(terms: Terms) -> Evidence:
    """Return the evidence for all pairs, each counted by its view."""
    plan, sizes = terms.plan, sizes_of(terms)
    step = next(step for step in terms.steps if step.stage == "correlations")
    views, rates = terms.cover.views, stage_of(terms, step).noise_rates(terms, step, terms.cover.view_cells)
    noise = {rate: plan.noise_mode.retained_variance(rate) for rate in set(rates)}
    precision, variances, seen = [0.0] * len(sizes), defaultdict[Shape, float](float), Counter[Shape]()
    for view, cells, rate in zip(views, terms.cover.view_cells, rates, strict=True):
        whole = max(noise[rate] * cells, _LEAST)
        for variable in view:
            precision[variable] += sizes[variable] / whole
        for a, b in combinations(sorted(sizes[variable] for variable in view), 2):
            variances[a, b] += whole / (a * b)
            seen[a, b] += 1
    single = {size: 1 / precision[variable] for variable, size in enumerate(sizes)}
    pairs = {shape: Counted(1.0, variances[shape] / count) for shape, count in seen.items()}
    return Evidence(kinds_of(sizes), single, pairs, 0.0, plan.total_rows, True)
