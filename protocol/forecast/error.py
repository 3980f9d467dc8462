"""Prediction of the error of a plan's synthetic table, from public numbers alone, before anything is spent.

It does not know rows. The error is the total variation distance between the published table and the parties' rows,
averaged over all pairs of attributes. `prediction.md` holds the argument, the assumptions, and the limits of the
prediction.
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
_STILL_THERE = 1.0  # noise after the fit over the noise of the best combination of all tables; the fit reaches it
_DRAWN_EVENLY = 0.4  # error of rows drawn evenly from a fitted model over the error of rows drawn one by one
_WEAK_STRONG = (0.5, 2.0)  # how much weaker or stronger than usual the dependence of attributes may be
# Noise above which the prediction for pairs of two-valued attributes rests on their assumed strength alone.
_TOO_NOISY = 1 / 20
_MOST_UNKNOWN = 0.25  # share of the error that may depend on the assumed strength of two-valued attributes' dependence


@dataclass(frozen=True)
class Prediction:
    """A predicted error; `low` and `high` hold for dependence half and twice as strong as usual."""

    error: float | None  # None, like its bounds, if public numbers do not tell the error within FACTOR
    low: float | None
    high: float | None
    noise: float  # the part due to noise in pairs that are counted
    left_out: float  # the part due to pairs that are not counted
    why: str  # the composition of the error, or the reason why there is no prediction


@dataclass(frozen=True)
class _Part:
    """The pairs of attributes of one shape, as the evidence of one table counts or ignores them."""

    shape: Shape
    counted: float  # the share of all pairs that is counted
    ignored: float  # the share of all pairs that is not counted
    single: float  # error of a counted pair, by noise in its two single attributes
    joint: float  # error of a counted pair, by noise in the dependence of its attributes
    is_fitted: bool
    alone: float  # error of an ignored pair, by noise in its two single attributes
    strength: float  # of an ignored pair

    def noise(self, times: float = 1.0) -> float:
        joint = noise_believed(self.shape, self.joint, times) if self.is_fitted else self.joint
        return self.counted * math.hypot(self.single, joint)

    def error(self, times: float = 1.0) -> float:
        return self.noise(times) + self.ignored * math.hypot(self.strength * times, self.alone)

    @property
    def unknown(self) -> float:
        """The part of the error that depends on the assumed dependence between two-valued attributes."""
        if self.shape != (2, 2):
            return 0.0
        return self.error() - (self.noise() if self.joint <= _TOO_NOISY else 0.0)


def predicted(terms: Terms) -> Prediction:
    if terms.domain.count < 2:
        return _not_predicted("a single column has no pairs")
    if terms.plan.encoding != "native" and max(terms.schema.sizes) > 2:
        return _not_predicted("the plan models parts of columns, and how those depend on each other is not public")
    evidence = _evidence(terms)
    return _judged([part for found in evidence for part in _parts(found)], _rounding(terms, evidence[0]))


def _judged(parts: Sequence[_Part], rounding: float) -> Prediction:
    whole, weak, strong = (
        min(1.0, math.hypot(math.fsum(part.error(times) for part in parts), rounding)) for times in (1.0, *_WEAK_STRONG)
    )
    if math.fsum(part.unknown for part in parts) > _MOST_UNKNOWN * whole:
        return _not_predicted(
            "it depends on how strongly columns with two values depend on each other, which differs between tables by "
            "a factor of a hundred"
        )
    noise = math.fsum(part.noise() for part in parts)
    share = round(100 * min(1.0, noise / whole)) if whole else 100
    why = f"{share} % of it is noise in the pairs that are counted; the rest is due to pairs left out"
    return Prediction(whole, weak, strong, noise, max(0.0, whole - noise), why)


def _not_predicted(why: str) -> Prediction:
    return Prediction(None, None, None, 0.0, 0.0, why)


def _evidence(terms: Terms) -> Sequence[Evidence]:
    plan = terms.plan
    if plan.method == "dp-subn" and not plan.picks_pairs:
        return evidence_of_networks(terms)
    if plan.estimate != "graphical-model":
        return evidence_of_networks(terms)
    return [evidence_of_views(terms) if plan.views == "pairs" else evidence_of_picks(terms)]


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
    """The error that noise of this variance leaves after the fit.

    The remaining noise is a sum over many noisy cells, so its mean size is that of Gaussian noise.
    """
    return noise_left(shape, _STILL_THERE * math.sqrt(2 * variance / math.pi) / found.rows, found.tables)


def _rounding(terms: Terms, found: Evidence) -> float:
    """The mean error over all pairs of drawing the published number of rows from the model."""
    evenly = _DRAWN_EVENLY if terms.plan.estimate == "graphical-model" else 1.0
    together = math.fsum(many * drawn(shape, terms.plan.rows) for shape, many in found.kinds.items())
    return evenly * together / found.all_pairs
