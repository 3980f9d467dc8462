"""Prediction of the error of a plan's synthetic table, from public numbers alone, before anything is spent.

It does not know rows. The error is the total variation distance between the published table and the parties' rows,
averaged over all pairs of attributes. `prediction.md` holds the argument, the assumptions, and the limits of the
prediction.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.forecast.coverage import Counted, Evidence
from protocol.forecast.coverage_by_clusters import evidence_of_clusters
from protocol.forecast.coverage_by_network import evidence_of_networks
from protocol.forecast.coverage_by_picks import evidence_of_picks
from protocol.forecast.coverage_by_views import evidence_of_columns, evidence_of_views
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import (
    STRENGTH,
    USUAL,
    Assumed,
    Shape,
    drawn,
    drawn_evenly,
    noise_believed,
    noise_left,
)

FACTOR = 1.5  # within which a prediction is meant to hold for a table whose evenness and dependence are as assumed
_BELOW = 2.0  # the same at the low end: a table whose pairs hardly depend on each other is easier than assumed
_HIDDEN = 2.5  # a cell whose share of the rows is below this multiple of its noise is not seen
# What tables may be instead of usual: with these strengths (of pairs in general, and of two-valued attributes), or with
# rows that fall into categories this evenly or unevenly.
_OTHERS = (
    Assumed(strength=0.003, of_two_valued=0.001),
    Assumed(strength=0.16, of_two_valued=0.17),
    Assumed(fall=0.5),
    Assumed(fall=5.0),
)
_SLIGHT = 0.001  # an error that is added to both ends of a range: runs of one plan differ by as much
_WIDEST = 7.0  # the high end of a range that is told is at most so many times the low end
_SMALL = 0.01  # a range that ends below this error is told, however wide


@dataclass(frozen=True)
class Prediction:
    """A predicted error, and the range in which tables of many kinds lie."""

    error: float | None  # None, like its bounds, if public numbers do not tell the error
    low: float | None
    high: float | None
    usual: float | None  # the error of a usual table, to compare plans, also where the range is too wide to be told
    noise: float  # the part due to noise in pairs that are counted
    left_out: float  # the part due to pairs that are not counted
    why: str  # the composition of the error, or the reason why there is no prediction


def predicted(terms: Terms) -> Prediction:
    if terms.domain.count < 2:
        return _not_predicted("a single column has no pairs")
    if terms.plan.encoding != "native" and max(terms.schema.sizes) > 2:
        return _not_predicted("the plan models parts of columns, and how those depend on each other is not public")
    evidence = evidence_of(terms)
    whole, noise = _error(terms, evidence, USUAL)
    low, high = _range(terms, evidence, whole)
    if terms.plan.ways > 2:
        why = "sets of three columns are picked too, and how many pairs they leave uncounted is found out privately"
        return replace(_not_predicted(why), usual=whole)
    if high > max(_SMALL, _WIDEST * low):
        return replace(_not_predicted(_too_wide(low, high)), usual=whole)
    share = round(100 * min(1.0, noise / whole)) if whole else 100
    why = f"{share} % of it is noise in the pairs that are counted; the rest is due to pairs left out and to chance"
    return Prediction(whole, low, high, whole, noise, max(0.0, whole - noise), why)


def _range(terms: Terms, evidence: Sequence[Evidence], whole: float) -> tuple[float, float]:
    """The range of the error: effects of all assumptions, and a factor, add up as roots of squares of logarithms."""
    without = _error(terms, evidence, USUAL, is_rounded=False)[0]
    found = [without, *(_error(terms, evidence, other)[0] for other in _OTHERS)]
    by_strength, by_fall = (*found[1:3], whole), (*found[3:5], whole)
    above = [_logarithm(max(one), whole) for one in (by_strength, by_fall)]
    below = [_logarithm(whole, min(one)) for one in (by_strength, by_fall, (without, whole))]
    low = whole * math.exp(-math.hypot(*below, math.log(_BELOW))) - _SLIGHT
    high = whole * math.exp(math.hypot(*above, math.log(FACTOR))) + _SLIGHT
    return max(0.0, low), min(1.0, high)


def _logarithm(one: float, other: float) -> float:
    return math.log(max(one, _SLIGHT**2) / max(other, _SLIGHT**2))


def _too_wide(low: float, high: float) -> str:
    return (
        f"tables with the same public numbers lie between {low:.2g} and {high:.2g}, and how strongly columns depend on "
        "each other, or how evenly rows fall into categories, is not public"
    )


def _not_predicted(why: str) -> Prediction:
    return Prediction(None, None, None, None, 0.0, 0.0, why)


def evidence_of(terms: Terms) -> Sequence[Evidence]:
    """Return what the plan's tables will count."""
    plan = terms.plan
    if plan.method == "jtree":
        return [evidence_of_clusters(terms)]
    if not plan.picks_pairs:
        return evidence_of_networks(terms)
    return [evidence_of_views(terms) if plan.views == "pairs" else evidence_of_picks(terms)]


def _error(
    terms: Terms, evidence: Sequence[Evidence], assumed: Assumed, is_rounded: bool = True
) -> tuple[float, float]:
    """The mean error over all pairs, and the part of it that is noise in counted pairs."""
    whole = noise = 0.0
    for found in [evidence_of_columns(terms)] if _are_alone(terms, evidence, assumed) else evidence:
        for shape, many in found.kinds.items():
            share = found.weight * many / found.all_pairs
            counted = found.pairs.get(shape, Counted(0.0, 0.0))
            rounding = _rounding(terms, shape, assumed) if is_rounded else 0.0
            if counted.share:
                of_counted = _of_counted(found, shape, counted.variance, assumed)
                noise += share * counted.share * of_counted
                whole += share * counted.share * min(1.0, math.hypot(of_counted, rounding))
            if counted.share < 1:
                whole += (
                    share * (1 - counted.share) * min(1.0, math.hypot(_of_ignored(found, shape, assumed), rounding))
                )
    return min(1.0, whole), noise


def _are_alone(terms: Terms, evidence: Sequence[Evidence], assumed: Assumed) -> bool:
    """Whether the plan asks how strongly columns depend, and finds that such a table's are to be counted alone."""
    if not terms.plan.dependence:
        return False
    (found,) = evidence
    mean = sum(many * assumed.strength_of(shape) for shape, many in found.kinds.items()) / found.all_pairs
    return mean < terms.plan.alone_below


def _of_counted(found: Evidence, shape: Shape, variance: float, assumed: Assumed) -> float:
    """The error of a counted pair: noise in its attributes and in their dependence, and chance that noise hides."""
    a, b = shape
    single = found.single[a] * (1 - 1 / a) / b**2 + found.single[b] * (1 - 1 / b) / a**2
    joint = _remaining(found, shape, variance * (1 - 1 / a) * (1 - 1 / b), assumed)
    kept = noise_believed(shape, joint, assumed) if found.is_fitted else joint
    hidden = drawn(shape, found.rows, assumed.fall, _HIDDEN * _mean_size(variance) / found.rows)
    return math.hypot(_remaining(found, shape, single, assumed), kept, hidden)


def _of_ignored(found: Evidence, shape: Shape, assumed: Assumed) -> float:
    """The error of a pair that is not counted: its dependence, chance, and noise in its single attributes."""
    alone = [_remaining(found, (size,), found.single[size] * (1 - 1 / size), assumed) for size in shape]
    strength = found.strength * assumed.strength_of(shape) / STRENGTH
    return math.hypot(strength, drawn(shape, found.rows, assumed.fall), *alone)


def _remaining(found: Evidence, shape: tuple[int, ...], variance: float, assumed: Assumed) -> float:
    """The error that noise of this variance leaves after the fit.

    The remaining noise is a sum over many noisy cells, so its mean size is that of Gaussian noise.
    """
    return noise_left(shape, _mean_size(variance) / found.rows, found.tables, assumed.fall)


def _mean_size(variance: float) -> float:
    return math.sqrt(2 * variance / math.pi)


def _rounding(terms: Terms, shape: Shape, assumed: Assumed) -> float:
    """The error of drawing the published number of rows from the model."""
    how = drawn_evenly if terms.plan.estimate == "graphical-model" else drawn
    return how(shape, terms.plan.rows, assumed.fall)
