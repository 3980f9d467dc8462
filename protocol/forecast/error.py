"""The error that a plan's synthetic table will have, predicted before anything is spent: from public numbers alone.

It does not know rows. The error is the total variation distance between the published table and the parties' rows,
averaged over all pairs of attributes. `prediction.md` has the argument, the assumptions, and how far to trust it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from protocol.forecast.coverage import Counted, Evidence
from protocol.forecast.coverage_by_network import evidence_of_networks
from protocol.forecast.coverage_by_picks import evidence_of_picks
from protocol.forecast.coverage_by_views import evidence_of_views
from protocol.forecast.typical_tables import Shape, drawn, noise_believed, noise_left
from protocol.plan.terms import Terms

FACTOR = 1.5  # within which a prediction is meant to hold
_STILL_THERE = 1.0  # noise after the fit, over that of the best combination of all tables: the fit reaches it
_DRAWN_EVENLY = 0.4  # of the error of rows drawn one by one, where rows are drawn evenly from a fitted model
_WEAK_STRONG = (0.5, 2.0)  # how much weaker or stronger than usual attributes may hang together
_DROWNED = 1 / 20  # with so much noise in it, a pair of two-valued attributes is as strong as is assumed: who knows?
_MOST_UNKNOWN = 0.25  # of the error may hang on how strongly two-valued attributes hang together


@dataclass(frozen=True)
class Prediction:
    """`error` lies between `low` and `high`: where attributes hang together half, or twice, as much as is usual."""

    error: float | None  # None, as are the bounds, where public numbers do not tell it within FACTOR
    low: float | None
    high: float | None
    noise: float  # the part of noise in pairs that are counted
    left_out: float  # the part of pairs that are not counted
    why: str  # what it rests on, or why there is none


@dataclass(frozen=True)
class _Part:
    """The pairs of one shape, as one evidence has them."""

    shape: Shape
    counted: float  # the share of all pairs that is counted
    ignored: float
    single: float  # error of a pair that is counted, by noise in its two attributes
    joint: float  # by noise in what they have in common
    is_fitted: bool
    alone: float  # error of a pair that is not, by noise in its two attributes
    strength: float  # of a pair that is not

    def noise(self, times: float = 1.0) -> float:
        joint = noise_believed(self.shape, self.joint, times) if self.is_fitted else self.joint
        return self.counted * math.hypot(self.single, joint)

    def error(self, times: float = 1.0) -> float:
        return self.noise(times) + self.ignored * math.hypot(self.strength * times, self.alone)

    @property
    def unknown(self) -> float:
        """The part of the error that hangs on how strongly two-valued attributes depend on each other."""
        if self.shape != (2, 2):
            return 0.0
        return self.error() - (self.noise() if self.joint <= _DROWNED else 0.0)


def predicted(terms: Terms) -> Prediction:
    if terms.domain.count < 2:
        return _not_predicted("a single attribute has no pairs")
    if terms.plan.encoding != "native" and max(terms.schema.sizes) > 2:
        return _not_predicted("the plan models parts of attributes, and how those depend on each other is not public")
    evidence = _evidence(terms)
    return _judged([part for found in evidence for part in _parts(found)], _rounding(terms, evidence[0]))


def _judged(parts: Sequence[_Part], rounding: float) -> Prediction:
    whole, weak, strong = (
        min(1.0, math.hypot(math.fsum(part.error(times) for part in parts), rounding)) for times in (1.0, *_WEAK_STRONG)
    )
    if math.fsum(part.unknown for part in parts) > _MOST_UNKNOWN * whole:
        return _not_predicted(
            "it hangs on how strongly two-valued attributes depend on each other: tables differ in it a hundred times"
        )
    noise = math.fsum(part.noise() for part in parts)
    share = round(100 * min(1.0, noise / whole)) if whole else 100
    why = f"{share} % of it is noise in pairs that are counted, the rest lies in pairs that are not"
    return Prediction(whole, weak, strong, noise, max(0.0, whole - noise), why)


def _not_predicted(why: str) -> Prediction:
    return Prediction(None, None, None, 0.0, 0.0, why)


def _evidence(terms: Terms) -> Sequence[Evidence]:
    if terms.plan.estimate != "graphical-model":
        return evidence_of_networks(terms)
    return [evidence_of_views(terms) if terms.plan.views == "pairs" else evidence_of_picks(terms)]


def _parts(found: Evidence) -> Iterator[_Part]:
    alone = {size: _remaining(found, (size,), variance * (1 - 1 / size)) for size, variance in found.single.items()}
    for shape, many in found.kinds.items():
        counted = found.pairs.get(shape, Counted(0.0, 0.0))
        a, b = shape
        single = found.single[a] * (1 - 1 / a) / b**2 + found.single[b] * (1 - 1 / b) / a**2
        joint = counted.variance * (1 - 1 / a) * (1 - 1 / b)
        of_all = found.weight * many / found.all_pairs
        yield _Part(
            shape,
            of_all * counted.share,
            of_all * (1 - counted.share),
            _remaining(found, shape, single),
            _remaining(found, shape, joint),
            found.is_fitted,
            math.hypot(*(alone[size] for size in shape)),
            found.strength,
        )


def _remaining(found: Evidence, shape: tuple[int, ...], variance: float) -> float:
    """What remains adds up many noisy cells, so that its mean size is that of Gaussian noise."""
    return noise_left(shape, _STILL_THERE * math.sqrt(2 * variance / math.pi) / found.rows, found.tables)


def _rounding(terms: Terms, found: Evidence) -> float:
    """The mean over all pairs of what so many rows cannot hold."""
    evenly = _DRAWN_EVENLY if terms.plan.estimate == "graphical-model" else 1.0
    together = math.fsum(many * drawn(shape, terms.plan.rows) for shape, many in found.kinds.items())
    return evenly * together / found.all_pairs
