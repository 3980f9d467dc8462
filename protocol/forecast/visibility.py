"""What the noise of a plan leaves visible of a usual table: categories, columns and relationships.

It does not know what follows from it for the operator (`protocol.forecast.advice`).
"""

import math
from collections.abc import Sequence

from protocol.forecast.coverage import Evidence, sizes_of
from protocol.model.rare_categories import least_visible
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import Shape, noise_left, typical_size
from protocol.stages.picked_tables import coming_noise

ALL_NOISE = 0.25  # the share of the rows in wrong cells of a table in which nothing is visible any more


def least_count(terms: Terms, found: Evidence, size: int) -> float:
    """The smallest count of a category that rises above the noise."""
    step = next((step for step in terms.steps if step.stage == "levels"), None)
    coming = coming_noise(terms, step) if terms.plan.merging and step is not None else 0.0
    return max(1.0, least_visible(found.single[typical_size(size)], coming))


def error_of_columns(terms: Terms, evidence: Sequence[Evidence], factor: float = 1.0) -> float:
    """The share of the rows that noise puts into wrong categories of a column, at `factor` times epsilon."""
    sizes = sizes_of(terms)
    return math.fsum(
        found.weight * noise_left((size,), _mean_noise(found.single[size], found, factor), found.tables) / len(sizes)
        for found in evidence
        for size in sizes
    )


def visible_pairs(evidence: Sequence[Evidence], factor: float = 1.0) -> float:
    """How many pairs are expected to be counted with noise that leaves most rows in their cells."""
    return math.fsum(
        found.weight * found.kinds[shape] * counted.share
        for found in evidence
        for shape, counted in found.pairs.items()
        if _is_visible(found, shape, factor)
    )


def visible_partners(found: Evidence, size: int, sizes: Sequence[int]) -> float:
    """How many pairs of an attribute of this size are expected to be counted and visible."""
    own, others = typical_size(size), [typical_size(one) for one in sizes]
    others.remove(own)
    shapes = [(min(own, other), max(own, other)) for other in others]
    return math.fsum(found.pairs[shape].share for shape in shapes if shape in found.pairs and _is_visible(found, shape))


def _is_visible(found: Evidence, shape: Shape, factor: float = 1.0) -> bool:
    noise = _mean_noise(found.pairs[shape].variance, found, factor)
    return noise_left(shape, noise, found.tables) < ALL_NOISE


def _mean_noise(variance: float, found: Evidence, factor: float) -> float:
    return math.sqrt(2 * variance / math.pi) / found.rows / factor
